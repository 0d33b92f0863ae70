"""Profiling without a GPU: a stage that answers at once, and an ncu that is a small script.

Run as a script: ``python -m tests.profile_sim REPO VERSION NCU_FOLDER`` makes one profile (crash points work).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import lzma
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.profile_stage import Kernel, Rehearsal, Scene, Usage
from kernelpilot_helpers.referee import locking, profiling
from tests import gpu_sim
from tests.referee_sim import attempt, clock, quiet, write_variant

GOLDEN = Path(__file__).parent / "golden" / "ncu"
CASE = "prefill"
PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
    "target device 0."
)
BODIES = {
    "report": 'cp "{report}" "$out.ncu-rep"',
    "packed": 'cp "{report}" "$out.ncu-repz"',
    "permission": f'echo "{PERMISSION}"; echo "==WARNING== No kernels were profiled."',
    "hang": "sleep 60 & wait",
    "silent": "exit 0",
    "no_kernels": 'echo "==WARNING== No kernels were profiled."',
    "library": 'echo "==ERROR== LibraryNotLoaded: /opt/private/libcuda.so"; exit 1',
    "mismatch": 'echo "==ERROR== Cuda driver is not compatible: unsupported driver 470"; exit 1',
    "garbage": 'echo nothing > "$out.ncu-rep"',
    "run": '"$@" || exit; cp "{report}" "$out.ncu-rep"',
    "daemon": '(setsid sleep 77 &) ; cp "{report}" "$out.ncu-rep"',
    "loud": 'head -c 30000000 /dev/zero | tr "\\0" x; echo; echo "==ERROR== the last words"; exit 3',
    "crash": 'cp "{report}" "$out.ncu-rep"; exit 9',
}
SCRIPT = """#!/bin/sh
case "$1" in
  --version) echo "NVIDIA (R) Nsight Compute Command Line Profiler"; echo "Version {version} (build 1) (public-release)"
    exit 0;;
  --list-sections) echo "Identifier Display"; echo "SpeedOfLight  GPU Speed Of Light"; echo "Occupancy  Occupancy"
    exit 0;;
esac
for word in "$@"; do echo "$word"; done > {log}
while [ $# -gt 0 ]; do [ "$1" = -o ] && out="$2" && shift 2 && break; shift; done
{body}
"""
GOOD = Rehearsal(
    ok=True, gpu="NVIDIA H200", driver="580.1", framework="torch 2.13.0", arch="sm_90a", sm_count=132,
    kernels=(
        Kernel(name="void copy_vec4<32>(float4*)", ns=9700, grid=(264, 1, 1), block=(256, 1, 1), registers=20),
        Kernel(name="fill", ns=300, grid=(4, 1, 1), block=(64, 1, 1), registers=8),
    ),
    usage=(Usage(name="_Z9copy_vec4ILi32EEvP6float4", registers=20, spill_stores=16, spill_loads=24, shared=4096),),
)  # fmt: skip


def ncu(folder: Path, mode: str = "report", *, report: str = "two-processes", version: str = "2025.3.1.0") -> Path:
    """An ``ncu`` in ``folder``; its arguments are kept in ``folder/argv``."""
    folder.mkdir(exist_ok=True)
    packed = GOLDEN / f"{report}.ncu-rep.xz"
    plain = folder / f"{report}.ncu-rep"
    if not plain.exists():
        plain.write_bytes(lzma.decompress(packed.read_bytes()))
    body = BODIES[mode].replace("{report}", str(plain))
    path = folder / "ncu"
    path.write_text(SCRIPT.format(version=version, log=shlex.quote(str(folder / "argv")), body=body))
    path.chmod(0o755)
    return folder


class FakeStage:
    """Rehearses at once and gives ncu a program that does nothing."""

    marks = False

    def __init__(self, tools: Path, rehearsal: Rehearsal = GOOD) -> None:
        self.tools, self.rehearsal = tools, rehearsal
        self.scenes: list[Scene] = []

    def held(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def rehearse(self, scene: Scene) -> Rehearsal:
        self.scenes.append(scene)
        return self.rehearsal

    def program(self, scene: Scene) -> tuple[list[str], Mapping[str, str]]:
        path = f"{self.tools}{os.pathsep}/usr/bin{os.pathsep}/bin"
        return [str(scene.folder / "python3"), "-I", str(scene.jobdir)], {"PATH": path}


def repo(folder: Path) -> Path:
    """A GPU repo with a lock and one improved version, v001_fused; a copy of one that is made once."""
    return Path(shutil.copytree(_made(), folder, symlinks=True))


@functools.cache
def _made() -> Path:
    top = Path(tempfile.mkdtemp(prefix="kp-profile-"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    made = gpu_sim.repo(top / "repo")
    locking.lock(made, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    write_variant(made, "fused", "# tuned\n" + gpu_sim.CODE)
    attempt(made, FakeLab(speedup=1.25, noise=0.001))
    return made


def profile(made: Path, tools: Path, version: str | None = None, **options: object) -> profiling.Profiled:
    """One profile."""
    request = profiling.Request(**{"version": version, "case_id": CASE, **options})  # type: ignore[arg-type]
    return profiling.profile_version(made, request, stage=FakeStage(tools), clock=clock, say=quiet)


if __name__ == "__main__":
    done = profile(Path(sys.argv[1]), Path(sys.argv[3]), sys.argv[2])
    print(done.profile.id, done.digest.name)
