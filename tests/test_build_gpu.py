"""``kernelpilot build`` of a GPU task: resources a kernel, what changed against the incumbent, SAME at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Artifact, Build, Died, KernelUsage, Raw
from kernelpilot_helpers.cli import scratch_output
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.referee import locking, machine_code, scratch
from kernelpilot_helpers.runtime import build_worker, forge
from kernelpilot_helpers.runtime.frames import NumpyFrame
from kernelpilot_helpers.runtime.guard import Guard
from tests import gpu_sim
from tests.referee_sim import clock, quiet, write_variant

OLD = KernelUsage(name="norm<4>", registers=40, shared=1024, sass_sha256="1" * 64)
SAXPY = KernelUsage(name="saxpy", registers=12, sass_sha256="2" * 64)
NVDISASM = """	.target	sm_90a
	.section	.text._Z4normILi4EEvPf,"ax",@progbits
_Z4normILi4EEvPf:
.text._Z4normILi4EEvPf:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/              @UP1 LDG.E R4, desc[UR4][R2.64] ;
        /*0030*/                   EXIT ;
.L_x_0:
        /*0040*/                   BRA `(.L_x_0);
"""
CUOBJDUMP = """
		Function : add
	.headerflags	@"EF_CUDA_ACCELERATORS EF_CUDA_SM90"
        /*0000*/                   LDC.64 R2, c[0x0][0x210] ;                /* 0x00008400ff027b82 */
                                                                             /* 0x000e620000000a00 */
        /*0010*/                   EXIT ;                                    /* 0x00008400ff027b82 */
"""


class Lab(FakeLab):
    """Builds that hold the given kernels; ``died`` may be the incumbent alone."""

    def __init__(self, *, old: tuple[KernelUsage, ...], new: tuple[KernelUsage, ...], **how: Any) -> None:
        super().__init__(**how)
        self._kernels = {"A": old, "B": new}

    def run(self, job: Job, workdir: Path) -> Raw:
        raw = super().run(job, workdir)
        builds = (self._build_of(b) for b in raw.builds if self.died is None or b.arm != self.died.arm)
        return msgspec.structs.replace(raw, builds=tuple(builds))

    def _build_of(self, build: Build) -> Build:
        artifact = Artifact(
            path="kernel.cubin", sha256="", normal_sha256="", build_id="", command=(), compiler="",
            usage=self._kernels[build.arm],
        )  # fmt: skip
        return msgspec.structs.replace(build, artifacts=(artifact,), ok=True)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = gpu_sim.repo(tmp_path_factory.mktemp("gpu"))
    locking.lock(made, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    write_variant(made, "fused", gpu_sim.CODE)
    return made


def look(repo: Path, lab: FakeLab) -> tuple[dict[str, Any], str]:
    tried = scratch.run(repo, "fused", mode="build", lab=lab, clock=clock)
    data = scratch_output.as_object(tried)
    return data, scratch_output.words(tried, data)


def test_a_changed_kernel_is_told_by_what_changed(repo: Path) -> None:
    """Breaks when spills, new kernels or equal machine code are not told."""
    new = msgspec.structs.replace(OLD, registers=64, spill_stores=8, sass_sha256="3" * 64)
    data, text = look(repo, Lab(old=(OLD, SAXPY), new=(new, SAXPY, msgspec.structs.replace(SAXPY, name="more"))))
    assert data["kernels"][0] == {
        "name": "norm<4>", "registers": 64, "spill_stores": 8, "spill_loads": 0, "shared": 1024, "stack": 0,
        "file": "kernel.cubin",
    }  # fmt: skip
    assert data["verdict"] == "BUILT" and data["ok"] and not data["against"]["same"]
    assert "norm<4>: different machine code; registers 40 -> 64, spill stores 0 -> 8" in text
    assert "saxpy: same machine code" in text and "more: new" in text


def test_the_same_program_is_said_to_be_the_same_at_once(repo: Path) -> None:
    """Breaks when an unchanged program has to be timed to be found unchanged."""
    data, text = look(repo, Lab(old=(OLD,), new=(OLD,), binary="same"))
    assert (data["verdict"], data["against"]["same"]) == ("SAME", True)
    assert "one and the same program as v000_baseline" in text


def test_an_incumbent_that_cannot_be_built_here_says_nothing_of_the_candidate(repo: Path) -> None:
    """Breaks when a machine without the incumbent's framework makes every candidate BROKEN."""
    data, text = look(repo, Lab(old=(), new=(OLD,), died=Died(arm="A", stage="load", log="no torch")))
    assert (data["verdict"], data["ok"], data["reason"]) == ("BUILT", True, "built")
    assert "not compared with an incumbent: it could not be built here" in text


def test_a_candidate_that_does_not_build_is_broken(repo: Path) -> None:
    """Breaks when a failed build passes because there is nothing to compare."""
    data, text = look(repo, Lab(old=(OLD,), new=(), died=Died(arm="B", stage="build", log="kernel.cu(1): error")))
    assert (data["verdict"], data["ok"]) == ("BROKEN", False)
    assert "kernel.cu(1): error" in text


def test_opcodes_are_counted_by_kernel_without_suffix_and_predicate() -> None:
    """Breaks when a label, a directive or the encoding's comment is counted, or a predicate hides an opcode."""
    assert machine_code.count(NVDISASM) == {"norm<4>": {"LDC": 1, "LDG": 2, "EXIT": 1, "BRA": 1}}
    assert machine_code.count(CUOBJDUMP) == {"add": {"LDC": 1, "EXIT": 1}}


def test_changes_in_instructions_come_largest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the two sides are exchanged or small changes push large ones out."""
    counts = iter([{"k": machine_code.Counter(LDG=8, FFMA=1)}, {"k": machine_code.Counter(LDG=2, FFMA=1, STS=1)}])
    monkeypatch.setattr(machine_code, "opcodes", lambda _folder, _files: next(counts))
    sides = []
    for sass in ("1", "2"):
        use = KernelUsage(name="k", registers=1, sass_sha256=sass)
        artifact = Artifact(
            path="k.cubin", sha256="", normal_sha256="", build_id="", command=(), compiler="", usage=(use,)
        )  # fmt: skip
        sides.append(Build(arm="A", build_key="", ok=True, binary_id="", artifacts=(artifact,), seconds=0))
    (change,) = machine_code.changes(*sides, tmp_path)
    assert list(change.instructions.items()) == [("LDG", (8, 2)), ("STS", (0, 1))]


CANDIDATE = """
import absent_framework as torch
import absent_framework.nn
from absent_framework.nn import functional as F

NAMES = {torch.bfloat16: "bf16", torch.float16: "f16"}
assert NAMES[torch.bfloat16] == "bf16"


@torch.jit(num_warps=4)
def fused(x, BLOCK: F.constexpr = 4):
    return 1


assert fused(0) == 1


def entry(*, x):
    raise AssertionError("a build never calls it")
"""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (*forge.CACHES, *forge.FIXED, "TORCH_CUDA_ARCH_LIST"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(build_worker, "STOOD_IN", ("absent_framework",))
    modules = dict(sys.modules)
    yield
    sys.modules.clear()
    sys.modules.update(modules)
    forge._session.clear()


@pytest.mark.usefixtures("bare")
def test_a_candidate_builds_where_its_framework_is_not_installed(tmp_path: Path) -> None:
    """Breaks when a build without a GPU needs torch only to read a type's name or to decorate."""
    (tmp_path / "candidate.py").write_text(CANDIDATE)
    spec = {
        "source": str(tmp_path), "build": str(tmp_path), "build_key": "k", "known": {}, "stages": ["entry"],
        "entry": "candidate.py:entry", "watch": False, "builds_gpu": True,
    }  # fmt: skip
    guard = Guard(closed=[], own=[str(tmp_path)], readable=[])
    worker = build_worker.BuildOnly(spec, NumpyFrame(), guard)
    assert worker.load({}, []) == {"artifacts": []}
    with pytest.raises(ModuleNotFoundError):
        import another_absent_framework  # noqa: F401
