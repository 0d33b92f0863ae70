"""The checks of scripts/dispatcher_gpu.py: over a CPU twin of the repo here, and in short on a real GPU."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers.runtime.build_worker import arch_here
from tests import taskpy

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
PLAIN = """\
import torch.nn.functional as F


def entry(*, x, residual, weight, out, eps):
    residual.add_(x)
    out.copy_(F.rms_norm(residual, (residual.shape[-1],), weight, eps))
"""
COMPILED = """\
import ctypes

from kernelpilot_runtime import build

LIB = build.cc("kernel.c", flags=("-O2",), libs=("m",))
LIB.add_rmsnorm.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long] * 2 + [ctypes.c_float]


def entry(*, x, residual, weight, out, eps):
    LIB.add_rmsnorm(*(build.ptr(t) for t in (x, residual, weight, out)), *x.shape, eps)
"""
KERNEL = """\
#include <math.h>
#include <stdint.h>
#include <string.h>
static float f(uint16_t h) { uint32_t u = (uint32_t)h << 16; float v; memcpy(&v, &u, 4); return v; }
static uint16_t h(float v) {
  uint32_t u; memcpy(&u, &v, 4);
  return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
void add_rmsnorm(const uint16_t* x, uint16_t* r, const uint16_t* w, uint16_t* out, long m, long n, float eps) {
  for (long i = 0; i < m; i++) {
    float sum = 0;
    for (long j = i * n; j < (i + 1) * n; j++) { r[j] = h(f(x[j]) + f(r[j])); sum += f(r[j]) * f(r[j]); }
    for (long j = 0; j < n; j++) out[i * n + j] = h(f(r[i * n + j]) / sqrtf(sum / n + eps) * f(w[j]));
  }
}
"""
RUN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import dispatcher_bed, dispatcher_checks
from pathlib import Path
bed = dispatcher_bed.Bed(Path(sys.argv[2]), "cpu", late=(12, 16))
dispatcher_checks.ROUNDS = 2
good = list(dispatcher_checks.results(bed, dispatcher_checks.CHECKS))
version = bed.loaded("v002_compiled")
served = version.function
def last_element(**given):
    served(**given)
    given["out"][-1, -1] += 1
version.function = last_element
names = ("eager", "operator", "threads", "graph", "lost_builds")
bad = list(dispatcher_checks.results(bed, {n: dispatcher_checks.CHECKS[n] for n in names}))
seen = []
def first_call_of_a_tensor(**given):
    if not any(given["out"] is other for other in seen):
        served(**given)
    seen.append(given["out"])
version.function = first_call_of_a_tensor
bad += dispatcher_checks.results(bed, {"graph": dispatcher_checks.CHECKS["graph"]})
print("\\n" + json.dumps([good, bad]))
"""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``script(name)`` is one of the scripts as a module."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module


def twin(scripts: Any, folder: Path) -> Path:
    """A dispatched repo of the GPU task whose versions run in host memory."""
    made = scripts("dispatcher_repo")
    compiled = {"candidate.py": COMPILED, "kernel.c": KERNEL}
    slow = {"candidate.py": f"import time\n\ntime.sleep(0.05)\n{COMPILED}"}
    versions = (
        made.Version(name="plain", rows=4, files={"candidate.py": PLAIN}),
        made.Version(name="compiled", rows=8, files=compiled),
        *(made.Version(name=f"late_{n}", rows=n, files=slow | {"kernel.c": f"{KERNEL}// {n}\n"}) for n in (12, 16)),
    )
    return Path(made.make(folder / "repo", versions))


@taskpy.needs_torch
def test_the_checks_pass_over_a_twin_in_host_memory_and_each_sees_a_wrong_version(scripts: Any, tmp_path: Path) -> None:
    """Breaks when the dispatcher, its operator or its binding fails in a process of its own, a version is not built
    again after its folder is gone, or a check of the GPU script can no longer fail."""
    repo = twin(scripts, tmp_path)
    done = subprocess.run(
        [taskpy.TORCH, "-c", RUN, str(SCRIPTS), str(repo)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    good, bad = json.loads(done.stdout.splitlines()[-1])
    assert [(r["check"], r["said"]) for r in good if r["ok"] is not True] == [("second_gpu", "no GPU here")]
    assert [r["version"] for r in next(r for r in good if r["check"] == "overhead")["host"]] == [
        "v001_plain", "v002_compiled",
    ]  # fmt: skip
    wrong = "v002_compiled{}: out is wrong in 1 of 32768 elements"
    said = [wrong.format(how) for how in ("", " by name", " in a thread", "", "")]
    said.append("v002_compiled: entry replayed: residual is not the sum")
    assert [(r["ok"], r["said"]) for r in bad] == [(False, f"Wrong: {words}") for words in said]


def test_what_never_came_and_what_is_left_are_failures(scripts: Any, tmp_path: Path) -> None:
    """Breaks when a process that dies, or one that leaves its builds behind, passes for a good one."""
    script = scripts("dispatcher_gpu")
    machine, rows = script.checked(
        tmp_path, tmp_path, [sys.executable, "-c", "raise SystemExit(3)"], device="cpu", late=()
    )
    assert machine == {}
    names = [*script.NAMES, "left_behind"]
    assert [(r["check"], r["ok"], r["said"]) for r in rows] == [
        (name, False, "never came: the process ended with 3") for name in names
    ]
    assert script.left_behind(tmp_path / "builds")["ok"] is True
    (tmp_path / "builds" / "dispatch-x").mkdir()
    assert script.left_behind(tmp_path / "builds")["ok"] is False
    found = script.document({}, rows, thorough=False, made_s=1.0)
    assert (found["failed"], found["skipped"]) == (names, [])


@pytest.mark.gpu
@pytest.mark.skipif(not arch_here(), reason="no NVIDIA GPU here")
@taskpy.needs_torch
def test_the_checks_pass_on_this_gpu(scripts: Any, tmp_path: Path) -> None:
    """Breaks when NVRTC, Triton or torch versions are not served from the dispatcher as its page says; the extension
    and the autotuned version are left to the script."""
    made, script = scripts("dispatcher_repo"), scripts("dispatcher_gpu")
    repo = made.make(tmp_path / "repo", made.QUICK)
    _, rows = script.checked(repo, tmp_path, [taskpy.TORCH], device="cuda", late=[v.rows for v in made.LATE])
    assert [(r["check"], r["said"]) for r in rows if r["ok"] is False] == []
