"""``kernelpilot lock``: audit the task, measure the A/A floor, write the hash lock and the baseline row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from kernelpilot_helpers import contract as contracts
from kernelpilot_helpers import correctness, ledger, proc, records, scaffold
from kernelpilot_helpers.contract.model import Lock
from kernelpilot_helpers.correctness import AuditReport
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors import absent, requires
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.ledger.model import Motivation, Row
from kernelpilot_helpers.referee import floor as floor_control
from kernelpilot_helpers.referee import frameworks, jobs, measure, recover, runs, seals, workspace
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.runs import FloorRecord, Intent
from kernelpilot_helpers.referee.workspace import LOCAL, LOCK, Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class Locked:
    """What the lock rests on; ``audit`` and ``floor`` are None when nothing had to be done."""

    lock: Lock
    row: Row
    audit: AuditReport | None
    floor: FloorRecord | None
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    """Walls that lie ahead of this task although it locks."""


def lock(start: Path, *, amend: bool, why: str, lab: Lab, clock: Clock, say: measure.Say) -> Locked:
    """Lock the contract of the repo around ``start``.

    Raises Refused when the skeleton is incomplete, the machine has no GPU for a GPU target, the audit finds the task
    unfit, or a locked file changed and ``amend`` was not asked for.
    """
    ws = workspace.open_repo(start, need_lock=False)
    with workspace.held(ws):
        notes = tuple(recover.recover(ws, clock))
        ws = workspace.open_repo(start, need_lock=False)
        workspace.require_sound(ws)
        _require_skeleton(ws)
        advice = scaffold.notes(ws.contract)
        held = frameworks.read(ws)
        moved = frameworks.moved(ws, held)
        done = _already(ws, amend=amend, why=why, moved=moved)
        if done is not None:
            return Locked(lock=ws.lock or _never(), row=done, audit=None, floor=None, notes=notes, advice=advice)
        frameworks.require_sources(held)
        if ws.device.kind == "gpu":
            absent.require_cuda(lab)
        requires.require_packages(lab, ws.contract)
        intent = _intent(ws, why, clock, moved=bool(moved))
        bench = measure.Bench(workspace=ws, lab=lab, clock=clock, say=say)
        say("task audit: deliberately wrong outputs must fail, legal variations must pass")
        audit_run, report = _audit(bench, intent)
        say("A/A control: the baseline against itself")
        floor = measure.measure_floor(bench, intent)
        files = sorted(workspace.locked_files(ws))
        proc.commit(ws.root, f"contract for lock, epoch {intent.epoch}", files)
        intent = msgspec.structs.replace(intent, commit=proc.head(ws.root) or "")
        held = frameworks.require_sources(frameworks.read(ws))  # the audit's builds may have written there
        advice = (*advice, *frameworks.notes(held))
        record = _record(ws, report, why, clock, epoch=intent.epoch, held=held)
        records.save(ws.root / LOCK, record)
        records.crash_point("lock.saved")
        row = _row(ws, intent, record, (audit_run, floor.run), clock)
        records.append(ws.root / ledger.LINEAGE_PATH, row, ledger.LINEAGE, chained=True)
        recover.finish(workspace.open_repo(start), row)
    return Locked(lock=record, row=row, audit=report, floor=floor, notes=notes, advice=advice)


def _never() -> Lock:
    raise AssertionError("a baseline row of an epoch without a lock")


def _require_skeleton(ws: Workspace) -> None:
    unwritten = scaffold.stubs(ws.root, ws.contract)
    if unwritten:
        what = "; ".join(f"{f.where} is {f.what}" for f in unwritten)
        raise Refused(what, where=str(ws.root), fix="write " + " and ".join(f.where for f in unwritten))
    faults = scaffold.check(ws.root)
    if faults:
        what = "; ".join(f"{f.where}: {f.what}" for f in faults)
        raise Refused(f"the standalone repo is incomplete: {what}", where=str(ws.root), fix=faults[0].fix)


def _already(ws: Workspace, *, amend: bool, why: str, moved: list[records.Fault]) -> Row | None:
    """The baseline row when this lock stands and nothing has to be done."""
    if ws.lock is None:
        if amend:
            raise Refused("there is no lock to amend", where=LOCK, fix="kernelpilot lock")
        return None
    row = next((r for r in ws.rows if r.kind == "baseline" and r.epoch == ws.epoch), None)
    faults = workspace.lock_faults(ws)
    if row is None and not faults and not moved:
        return None  # killed between lock and row: do it again
    if not faults and not moved:
        if amend:
            raise Refused("nothing that the lock covers has changed", where=LOCK, fix=contracts.CONTRACT.fix)
        return row
    if not amend:
        workspace.require_lock(ws)  # raises, naming what changed
        frameworks.require_unmoved(moved)
    if not why.strip():
        raise Refused("an amended lock needs a reason", where=LOCK, fix="kernelpilot lock --amend --why TEXT")
    return None


def _intent(ws: Workspace, why: str, clock: Clock, *, moved: bool) -> Intent:
    fresh = ws.lock is not None and not workspace.lock_faults(ws) and not moved
    epoch = ws.epoch if fresh else ws.epoch + 1
    tree = proc.snapshot(ws.root, "baseline")  # committed with the rest once the audit has passed
    label = ledger.BASELINE
    return Intent(
        run="",
        role="audit",
        kind="lock",
        label=label,
        variant="baseline",
        tree=tree,
        commit="",
        parent="",
        incumbent=label,
        motivation=Motivation(kind="baseline", text=why or "the contract's baseline"),
        language="python",
        tier="accept",
        epoch=epoch,
        at=stamp(clock),
    )


def _audit(bench: measure.Bench, base: Intent) -> tuple[str, AuditReport]:
    ws = bench.workspace
    run = runs.next_run(ws.root, base.label)
    program = jobs.baseline_program(ws, base.tree)
    question = jobs.Question(job_id=run, phases=("audit",), arms={"A": program})
    raw = measure.run_job(bench, msgspec.structs.replace(base, run=run, role="audit"), question)
    report = correctness.audit(
        raw, numerics=ws.numerics, outputs=ws.outputs, shapes=floor_control.expectation(ws).shapes
    )
    if report.refused:
        runs.put_aside(ws.root, run)
        requires.require_imported(raw, bench.lab, ws.contract, ws.root)
        more = f"; and {len(report.reasons) - 5} more" if len(report.reasons) > 5 else ""
        raise Refused(
            "the task cannot tell right from wrong: " + "; ".join(report.reasons[:5]) + more,
            where=f"{LOCAL}/interrupted/{run}",
            fix="mend reference.py, baseline/ or the generators in contract.toml",
        )
    runs.note(ws.root, run, {"audit.json": report})
    return run, report


def _record(ws: Workspace, report: AuditReport, why: str, clock: Clock, *, epoch: int, held: frameworks.Found) -> Lock:
    previous = ""
    if ws.lock is not None:  # the same epoch again: the command was killed between lock and row
        previous = ws.lock.previous if ws.lock.epoch == epoch else records.file_sha256(ws.root / LOCK)
    made = contracts.lock.make(
        workspace.locked_files(ws),
        epoch=epoch,
        locked_at=stamp(clock),
        why=why or "first lock",
        previous=previous,
        mutation_score=report.score,
        survivors=report.survivors,
        not_applicable=report.not_applicable,
    )
    return msgspec.structs.replace(made, frameworks=frameworks.recorded(held))


def _row(ws: Workspace, intent: Intent, record: Lock, made: tuple[str, ...], clock: Clock) -> Row:
    return Row(
        version=intent.label,
        kind="baseline",
        parent="",
        variant="baseline",
        tree=intent.tree,
        commit=intent.commit,
        epoch=record.epoch,
        at=stamp(clock),
        motivation=intent.motivation,
        language=intent.language,
        runs=made,
        evidence=seals.evidence(ws.root, list(made), lock=True),
        reason=f"locked: {record.why}",
        mutation_score=record.mutation_score,
        status="selected",
        at_head=proc.head(ws.root) or "",
    )
