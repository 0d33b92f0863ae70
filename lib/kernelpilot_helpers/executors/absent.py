"""A machine without the GPU that a job needs: nothing was measured, so there is nothing to judge or to record."""

from __future__ import annotations

from pathlib import Path

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors.lab import RAW_FILE

FIXES = {
    "gpu.absent": "export KERNELPILOT_PYTHON=PYTHON  # a Python whose torch sees an NVIDIA GPU of this machine",
    "gpu.busy": "nvidia-smi  # wait for that process to end, or take another GPU: export CUDA_VISIBLE_DEVICES=NUMBER",
    "gpu.memory": 'nvidia-smi  # free memory, or lower target.memory_gib: kernelpilot lock --amend --why "less memory"',
}
"""Reason code with which the runtime's oracle ends -> what helps."""


def code_of(raw: Raw) -> str:
    """The code with which the oracle ended for want of a GPU; empty for every other end."""
    died = raw.died
    code = died.log.partition(":")[0].strip() if died is not None and died.stage == "oracle" else ""
    return code if code in FIXES else ""


def require_gpu(raw: Raw, workdir: Path | None = None) -> Raw:
    """``raw`` itself, where the job had its GPU.

    Raises Refused where it had none; ``workdir`` then loses its raw.json, or a later command would judge the program
    by a run that never took place.
    """
    code = code_of(raw)
    if not code or raw.died is None:
        return raw
    if workdir is not None:
        (workdir / RAW_FILE).unlink(missing_ok=True)
    first = raw.died.log.strip().splitlines()[0]
    raise Refused(f"no GPU to measure on: {first}", where="contract.toml: target.gpu", fix=FIXES[code])
