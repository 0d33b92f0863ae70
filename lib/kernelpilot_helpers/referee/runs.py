"""Run directories: ``artifacts/runs/<id>/`` holds one measuring job, from its intent to what was judged from it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.attempt import job as jobs
from kernelpilot_helpers.attempt import raw as raws
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import CaseFloor
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.ledger.model import Motivation, Provenance, Row
from kernelpilot_helpers.referee.decide import RunRole
from kernelpilot_helpers.referee.workspace import LOCAL, RUNS

AGAIN = 'kernelpilot attempt VARIANT --again --motivation "recheck"'
FIX = "git checkout -- artifacts/runs"


class Intent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is for, written before it starts, so that a killed command can be finished or reported."""

    format: Literal["kernelpilot.intent"] = "kernelpilot.intent"
    version: int = 1
    run: str
    role: RunRole
    kind: Literal["attempt", "recheck", "lock", "tune"]
    label: str
    """Version label of the row that will cite this run."""
    variant: str
    tree: str
    commit: str
    parent: str
    incumbent: str
    motivation: Motivation
    language: str
    provenance: tuple[Provenance, ...] = ()
    tier: str
    max_pairs: int | None = None
    epoch: int
    bias_bound: float = 0.0
    unfit: str = ""
    subject: str = ""
    """Version that a tune run measures."""
    at: str


class FloorRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An A/A control of one booking: the same program in both arms. Ratios are fractions."""

    format: Literal["kernelpilot.floor"] = "kernelpilot.floor"
    version: int = 1
    run: str
    at: str
    booking: dict[str, Any]
    half_width: float
    point: float
    fit: bool
    reason: str = ""
    cases: tuple[CaseFloor, ...] = ()
    """The same by case, log ratios; they decide nothing."""


INTENT = records.Owner(format="kernelpilot.intent", version=1, type=Intent, fix=FIX)
FLOOR = records.Owner(format="kernelpilot.floor", version=1, type=FloorRecord, fix=FIX)
RAW = records.Owner(format=raws.FORMAT, version=raws.VERSION, type=Raw, fix=FIX)
JOB = records.Owner(format=jobs.FORMAT, version=jobs.VERSION, type=jobs.Job, fix=FIX)


def run_dir(root: Path, run: str) -> Path:
    """Where a run is kept."""
    return root / RUNS / run


def job_dir(root: Path, run: str) -> Path:
    """Where a run is executed (git-ignored)."""
    return root / LOCAL / "jobs" / run


def next_run(root: Path, label: str) -> str:
    """``<label>.<n>``, the first n that no directory has. Called under the repo lock."""
    taken = {path.name for path in (root / RUNS).glob(f"{label}.*")}
    number = 1
    while f"{label}.{number}" in taken:
        number += 1
    return f"{label}.{number}"


def orphans(root: Path, rows: Iterable[Row]) -> list[str]:
    """Run directories that no row cites, oldest first."""
    cited = {run for row in rows for run in row.runs}
    found = [path.name for path in (root / RUNS).glob("*") if path.is_dir() and path.name not in cited]
    return sorted(found, key=_run_order)


def _run_order(run: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.*)\.(\d+)", run)
    return (match[1], int(match[2])) if match else (run, 0)


def begin(root: Path, intent: Intent) -> None:
    """Write the intent; from here on a killed command is noticed."""
    records.save(run_dir(root, intent.run) / "intent.json", intent)
    records.crash_point("attempt.intent")


def keep(root: Path, run: str) -> Raw:
    """Copy job and raw from the job directory into the run directory, then drop the job directory."""
    source, target = job_dir(root, run), run_dir(root, run)
    for name in ("job.json", "raw.json"):
        records.write_bytes(target / name, records.read_bytes(source / name, fix=AGAIN))
    records.crash_point("attempt.raw")
    shutil.rmtree(source, ignore_errors=True)
    return records.load(target / "raw.json", RAW)


def put_aside(root: Path, run: str) -> None:
    """Move a run that no row will cite to ``.kernelpilot/interrupted``; nothing of it is lost."""
    aside = root / LOCAL / "interrupted" / run
    shutil.rmtree(aside, ignore_errors=True)
    aside.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(str(run_dir(root, run)), str(aside))


def load_raw(root: Path, run: str) -> Raw | None:
    """The raw of a run, adopting one that a killed command left in the job directory; None when there is none."""
    if not (run_dir(root, run) / "raw.json").exists():
        pending = job_dir(root, run)
        if not ((pending / "raw.json").exists() and (pending / "job.json").exists()):
            return None
        return keep(root, run)
    return records.load(run_dir(root, run) / "raw.json", RAW)


def load_intent(root: Path, run: str) -> Intent | None:
    """The intent of a run, None when it is absent or unreadable."""
    try:
        return records.load(run_dir(root, run) / "intent.json", INTENT)
    except BadRecord:
        return None


def note(root: Path, run: str, files: Mapping[str, object]) -> None:
    """Store what was judged from a run (``verify.json``, ``bench.json``, ``floor.json``)."""
    for name, record in files.items():
        records.save(run_dir(root, run) / name, record)
        records.crash_point(f"attempt.{name.removesuffix('.json')}")


def floors(root: Path, runs: Sequence[str]) -> list[FloorRecord]:
    """Every readable A/A record among the runs."""
    out: list[FloorRecord] = []
    for run in runs:
        path = run_dir(root, run) / "floor.json"
        if path.exists():
            try:
                out.append(records.load(path, FLOOR))
            except BadRecord:
                continue  # no floor is read out of a damaged file; a new A/A run replaces it
    return out
