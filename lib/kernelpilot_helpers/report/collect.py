"""Read a repo for its report. A file that is missing or garbled becomes a finding on the page, never a crash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernelpilot_helpers import benchmark, correctness, ledger, records
from kernelpilot_helpers.attempt.raw import FigureTime, GpuLook, Residency
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.evidence.gpu_run import GpuRun
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate.model import Report
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.report.model import FloorFacts, ReportData, RunFacts

T = TypeVar("T")
RUNS = "artifacts/runs"
CONTRACT = "contract.toml"
LOCK = "artifacts/contract.lock.json"


class _Task(msgspec.Struct):
    name: str
    summary: str = ""


class _Target(msgspec.Struct):
    gpu: str = "cpu"
    speedup: float | None = None


class _Contract(msgspec.Struct):
    """The few words of the contract that the page prints; its own package judges the rest."""

    task: _Task
    target: _Target = msgspec.field(default_factory=_Target)
    baseline: tuple[dict[str, Any], ...] = ()


class _Lock(msgspec.Struct):
    epoch: int
    mutation_score: str = ""
    survivors: tuple[str, ...] = ()


class _Env(msgspec.Struct):
    env: dict[str, Any] = {}
    figures: tuple[FigureTime, ...] = ()
    residency: tuple[Residency, ...] = ()
    gpu: tuple[GpuLook, ...] = ()


def collect(repo: Path, *, evidence: Evidence | None = None, gate: Report | None = None) -> ReportData:
    """Everything the page tells, from the files of a standalone repo; nothing is written.

    Loop, tuning and findings come with ``evidence`` and ``gate``; the page is made without them, too.
    """
    faults: list[Fault] = []
    contract = _try(faults, repo / CONTRACT, CONTRACT, _contract)
    lock = _try(faults, repo / LOCK, LOCK, lambda data, at: _lenient(data, _Lock, at))
    rows, chain = _rows(repo)
    faults += chain
    runs = {run: _run(repo, run) for row in rows for run in row.runs}
    for run in runs.values():
        faults += [Fault(where=f"{RUNS}/{run.run}", what=what, fix=f"git checkout -- {RUNS}") for what in run.problems]
    return ReportData(
        task=contract.task.name if contract else repo.resolve().name,
        summary=contract.task.summary if contract else "",
        gpu=contract.target.gpu if contract else "cpu",
        target=contract.target.speedup if contract else None,
        baselines=max(len(contract.baseline), 1) if contract else 1,
        epoch=lock.epoch if lock else max((row.epoch for row in rows), default=0),
        mutation_score=lock.mutation_score if lock else "",
        survivors=lock.survivors if lock else (),
        rows=rows,
        runs=runs,
        faults=tuple(faults),
        evidence=evidence,
        gate=gate,
    )


def _rows(repo: Path) -> tuple[tuple[ledger.Row, ...], tuple[Fault, ...]]:
    path = repo / ledger.LINEAGE_PATH
    if not path.exists():
        return (), (
            Fault(where=ledger.LINEAGE_PATH, what="no such file: nothing was attempted", fix="kernelpilot lock"),
        )
    return ledger.load(path.read_bytes(), ledger.LINEAGE_PATH)


def _try(faults: list[Fault], path: Path, name: str, read: Callable[[bytes, str], T]) -> T | None:
    try:
        return read(records.read_bytes(path, fix="kernelpilot lock"), name)
    except BadRecord as error:
        faults.append(Fault(where=name, what=error.what, fix=error.fix))
        return None


def _contract(data: bytes, at: str) -> _Contract:
    return records.convert(records.parse_toml(data, at=at), _Contract, at=at, fix="mend contract.toml")


def _lenient(data: bytes, kind: type[T], at: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRecord(f"not readable: {error}", where=at, fix=f"git checkout -- {at}") from None


def _run(repo: Path, run: str) -> RunFacts:
    folder = repo / RUNS / run
    if not folder.is_dir():
        return RunFacts(run=run, problems=("no such run directory",))
    problems: list[str] = []

    def read(name: str, parse: Callable[[bytes, str], T]) -> T | None:
        path = folder / name
        if not path.exists():
            return None
        try:
            return parse(records.read_bytes(path, fix=""), f"{RUNS}/{run}/{name}")
        except BadRecord as error:
            problems.append(f"{name}: {error.what}")
            return None

    raw = read("raw.json", lambda data, at: _lenient(data, _Env, at))
    return RunFacts(
        run=run,
        bench=read("bench.json", benchmark.parse),
        verification=read("verify.json", correctness.parse),
        floor=read("floor.json", lambda data, at: _lenient(data, FloorFacts, at)),
        env=raw.env if raw else {},
        gpu=GpuRun(figures=raw.figures, residency=raw.residency, looks=raw.gpu) if raw else GpuRun(),
        problems=tuple(problems),
    )
