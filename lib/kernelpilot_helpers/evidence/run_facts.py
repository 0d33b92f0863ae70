"""Run directories as facts: only the fields that rules compare are decoded, the audit judges the rest again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernelpilot_helpers import benchmark, correctness, records
from kernelpilot_helpers.attempt.raw import FigureTime, GpuLook, KernelUse, Residency
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.evidence import files
from kernelpilot_helpers.evidence.gpu_run import GpuRun
from kernelpilot_helpers.evidence.model import RunFacts

RUNS = "artifacts/runs"
T = TypeVar("T")


class _Intent(msgspec.Struct, kw_only=True):
    role: str
    label: str = ""
    tree: str = ""


class _Case(msgspec.Struct, kw_only=True):
    case_id: str
    timed: bool = False


class _Arm(msgspec.Struct, kw_only=True):
    name: str


class _Limits(msgspec.Struct, kw_only=True):
    build_s: float = 0
    call_s: float = 0
    wall_s: float = 0


class _Time(msgspec.Struct, kw_only=True):
    pairs: int = 0
    recheck_share: float = 0.0


class _Verify(msgspec.Struct, kw_only=True):
    seeds: int = 0


class _Job(msgspec.Struct, kw_only=True):
    cases: tuple[_Case, ...]
    phases: tuple[str, ...]
    arms: tuple[_Arm, ...] = ()
    limits: _Limits
    time: _Time | None = None
    verify: _Verify | None = None


class _Raw(msgspec.Struct, kw_only=True):
    framework: str = ""
    env: dict[str, Any]
    figures: tuple[FigureTime, ...] = ()
    residency: tuple[Residency, ...] = ()
    gpu: tuple[GpuLook, ...] = ()
    inventory: tuple[KernelUse, ...] = ()


def collect(root: Path) -> dict[str, RunFacts]:
    """Every run directory by its id."""
    folder = root / RUNS
    try:
        found = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        return {}
    return {path.name: load(path) for path in found}


def load(folder: Path) -> RunFacts:
    """One run; what is absent keeps its default, what cannot be read is a problem in words."""
    problems: list[str] = []
    intent = _part(folder / "intent.json", _Intent, problems)
    job = _part(folder / "job.json", _Job, problems)
    raw = _part(folder / "raw.json", _Raw, problems)
    limits = job.limits if job else None
    return RunFacts(
        run=folder.name,
        role=intent.role if intent else "",
        bench=_record(folder / "bench.json", benchmark.OWNER, problems),
        verification=_record(folder / "verify.json", correctness.OWNER, problems),
        env={**raw.env, "framework": raw.framework} if raw else {},
        limits=limits is None or min(limits.build_s, limits.call_s, limits.wall_s) > 0,
        problems=tuple(problems),
        label=intent.label if intent else "",
        tree=intent.tree if intent else "",
        cases=tuple(case.case_id for case in job.cases) if job else (),
        timed=tuple(case.case_id for case in job.cases if case.timed) if job else (),
        phases=job.phases if job else (),
        arms=tuple(arm.name for arm in job.arms) if job else (),
        seeds=job.verify.seeds if job and job.verify else 0,
        recheck_share=job.time.recheck_share if job and job.time else 0.0,
        gpu=GpuRun(figures=raw.figures, residency=raw.residency, looks=raw.gpu) if raw else GpuRun(),
        inventory=_inventory(raw.inventory) if raw else {},
    )


def _inventory(uses: tuple[KernelUse, ...]) -> dict[tuple[str, str], tuple[tuple[str, int], ...]]:
    found: dict[tuple[str, str], tuple[tuple[str, int], ...]] = {}
    for use in uses:
        key = use.arm, use.case_id
        found[key] = (*found.get(key, ()), (use.name, use.count))
    return found


def _part(path: Path, kind: type[T], problems: list[str]) -> T | None:
    """The fields named by ``kind``, all others passed over."""
    if not files.plain(path):
        if path.exists() or path.is_symlink():
            problems.append(f"{path.name}: not a plain file")
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        problems.append(f"{path.name}: {error}")
        return None


def _record(path: Path, owner: records.Owner[T], problems: list[str]) -> T | None:
    if not files.plain(path):
        return None
    try:
        return records.load(path, owner)
    except BadRecord as error:
        problems.append(f"{path.name}: {error.what}")
        return None
