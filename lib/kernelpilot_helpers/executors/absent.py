"""A machine without the GPU that a job needs: nothing is measured, so there is nothing to judge or to record."""

from __future__ import annotations

import shlex
from pathlib import Path

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import Refused, ToolMissing
from kernelpilot_helpers.executors import presence
from kernelpilot_helpers.executors.lab import RAW_FILE, Lab
from kernelpilot_helpers.executors.task_python import GPU_FIX, TaskPython

FIXES = {
    "gpu.absent": GPU_FIX,
    "gpu.busy": "nvidia-smi  # wait for that process to end, or take another GPU: export CUDA_VISIBLE_DEVICES=NUMBER",
    "gpu.memory": 'nvidia-smi  # free memory, or lower target.memory_gib: kernelpilot lock --amend --why "less memory"',
}
"""Reason code with which the runtime's oracle ends -> what helps, on a machine that has a GPU."""
NOWHERE = "no NVIDIA GPU here"
AFTER = ".humanize is not committed, so the plan is made there too; git pull then brings the lock here"


def elsewhere(root: Path, *then: str) -> str:
    """What helps where there is no GPU: this repo on a machine that has one, and these commands there."""
    steps = (f"git clone HOST:{shlex.quote(str(root))}", f"cd {shlex.quote(root.name)}", *then)
    return f"{' && '.join(steps)}  # on a machine with an NVIDIA GPU, HOST being this one; {AFTER}"


def require_here(*, where: str, fix: str) -> None:
    """Refuse on a machine without any NVIDIA GPU, before a Python is looked for. Raises Refused."""
    if not presence.gpu_here():
        raise Refused(f"{NOWHERE}, and this is measured on one", where=where, fix=fix)


def require_cuda(lab: Lab) -> None:
    """Refuse a Python of this machine whose torch was built without CUDA, before a job starts in it.

    Raises ToolMissing. A lab elsewhere has no Python that could be looked at.
    """
    python = getattr(lab, "python", None)
    if isinstance(python, TaskPython) and not python.cuda:
        what = f"the task's Python {shlex.join(python.argv)} has a torch without CUDA, and this is measured on a GPU"
        raise ToolMissing(what, fix=GPU_FIX)


def code_of(raw: Raw) -> str:
    """The code with which the oracle ended for want of a GPU; empty for every other end."""
    died = raw.died
    code = died.log.partition(":")[0].strip() if died is not None and died.stage == "oracle" else ""
    if code == "gpu.memory" and any(b.arm == "B" and b.ok for b in raw.builds):
        return ""  # the candidate ran and may have taken it: that is an attempt, and stays on record
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
    fix = FIXES[code]
    if code == "gpu.absent" and not presence.gpu_here():
        fix = "nvidia-smi -L  # names this machine's GPUs; where it has none: git clone this repo where one is"
    raise Refused(f"no GPU to measure on: {first}", where="contract.toml: target.gpu", fix=fix)
