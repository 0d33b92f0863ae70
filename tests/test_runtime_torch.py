"""The same job where the task's Python has torch and perhaps no numpy at all."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers.attempt.job import Limits, TimeSpec, VerifySpec
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.executors.task_python import find
from tests.jobs import WRAPPER, materialise, norm_case

PYTHON = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON") or (
    sys.executable if importlib.util.find_spec("torch") else ""
)
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="no torch here: set KERNELPILOT_TEST_TORCH_PYTHON to a Python that has it"
)


def test_a_whole_job_with_torch_tensors_finds_a_library_call(tmp_path: Path) -> None:
    lab = LocalLab(find(explicit=[PYTHON]), tmp_path / "lock", cache=tmp_path / "cache")
    from tests.jobs import KERNEL

    call = "LIB.kernel(p(x), p(residual), p(weight), p(out), x.shape[0], x.shape[1], eps)"
    lazy = {"candidate.py": WRAPPER.replace(call, "y = x * 1.0\n    " + call), "kernel.c": KERNEL}
    job = materialise(
        tmp_path / "job", b=lazy, cases=(norm_case(4, 64),), phases=("audit", "verify", "time"), framework="torch",
        verify=VerifySpec(seeds=2, calls=2), time=TimeSpec(pairs=2, blocks=4, sample_us=20.0),
        limits=Limits(call_s=20.0, build_s=60.0, wall_s=120.0),
    )  # fmt: skip
    raw = lab.run(job, tmp_path / "job")
    assert (raw.died, raw.framework) == (None, "torch")
    assert [(e.kind, e.detail) for e in raw.events] == [("policy.library_call", "mul")]
    assert not [c for c in raw.checks if c.where is not None]
    assert {m.name for m in raw.mutants if m.kind == "must_pass" and m.applicable} == {
        "baseline", "storage_precision", "reversed",
    }  # fmt: skip
    assert len(raw.samples) == 4
