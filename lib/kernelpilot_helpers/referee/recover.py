"""What every writing command does first: finish or report what a killed command left behind."""

from __future__ import annotations

from itertools import groupby

from kernelpilot_helpers import ledger, proc, records
from kernelpilot_helpers.errors import BadRecord, KernelPilotError
from kernelpilot_helpers.ledger.model import Row
from kernelpilot_helpers.referee import derived, history, rows, runs, seals, views, workspace
from kernelpilot_helpers.referee.decide import Outcome
from kernelpilot_helpers.referee.floor import Clock
from kernelpilot_helpers.referee.runs import Intent
from kernelpilot_helpers.referee.workspace import LOCAL, Workspace


def recover(ws: Workspace, clock: Clock) -> list[str]:
    """Mend what can be mended, under the repo lock; one line per thing done."""
    notes: list[str] = []
    if records.repair(ws.root / ledger.LINEAGE_PATH):
        notes.append(f"a torn last line of {ledger.LINEAGE_PATH} was moved to {ledger.LINEAGE_PATH}.torn")
    ws = workspace.open_repo(ws.root, need_lock=False)
    if ws.faults or history.head_faults(ws.root):
        return notes  # nothing is added to a lineage that does not hold together
    pending = _uncommitted_row(ws)
    if pending is not None:
        _require_true(ws, pending)
        finish(ws, pending)
        notes.append(f"{pending.version}: the ledgers and the evidence commit of a killed command were finished")
    intents: list[Intent] = []
    for run in runs.orphans(ws.root, ws.rows):
        intent = runs.load_intent(ws.root, run)
        if intent is not None:
            intents.append(intent)
            continue
        runs.put_aside(ws.root, run)  # killed before its intent was whole: nothing had been measured
        notes.append(f"{run}: an unstarted run was moved to {LOCAL}/interrupted")
    for label, group in groupby(intents, key=lambda i: i.label):
        notes.append(_finish_orphans(workspace.open_repo(ws.root, need_lock=False), label, list(group), clock))
    return notes


def _uncommitted_row(ws: Workspace) -> Row | None:
    """The last row, when git does not hold it yet: the killed command had acknowledged nothing after it."""
    if not ws.rows or not proc.dirty(ws.root, ledger.LINEAGE_PATH):
        return None
    return ws.rows[-1]


def _require_true(ws: Workspace, row: Row) -> None:
    """A row that git does not hold yet is finished only when its runs say what it says. Raises BadRecord."""
    found = [*seals.faults(ws, row), *seals.rejudged(ws, row)]
    found += derived.faults(ws, row) if derived.kind(row) == "dispatch" else []
    if found:
        what = "; ".join(f"{f.where}: {f.what}" for f in found)
        fix = f"git checkout -- {ledger.LINEAGE_PATH}  # drops the row that is not committed"
        raise BadRecord(
            f"the last row, {row.version}, is not backed by its runs: {what}", where=ledger.LINEAGE_PATH, fix=fix
        )


def _finish_orphans(ws: Workspace, label: str, intents: list[Intent], clock: Clock) -> str:
    first = intents[0]
    if first.kind in ("lock", "tune") or first.epoch != ws.epoch or ws.lock is None:
        for intent in intents:
            runs.put_aside(ws.root, intent.run)
        return f"{label}: runs of a killed command were moved to {LOCAL}/interrupted; run it again"
    try:
        outcome = seals.outcome_of(ws, intents)
    except (KernelPilotError, ArithmeticError, ValueError) as fault:
        outcome = Outcome(verdict="BROKEN", reason=f"evidence.garbled: its runs cannot be judged: {fault}")
    made = [i.run for i in intents]
    row = rows.make_row(ws, intents[-1], outcome, made, clock)
    records.append(ws.root / ledger.LINEAGE_PATH, row, ledger.LINEAGE, chained=True)
    finish(workspace.open_repo(ws.root, need_lock=False), row)
    return f"{label}: a killed attempt was recorded as {row.verdict} ({row.reason})"


def finish(ws: Workspace, row: Row) -> None:
    """After the row: ``current``, map or dispatcher, ledgers, evidence commit. Safe to repeat."""
    if row.status == "selected":
        views.set_current(ws, row)
    records.crash_point("attempt.current")
    derived.write(ws, row)
    views.render(ws, put_aside=False)
    records.crash_point("attempt.views")
    try:
        proc.commit(ws.root, rows.headline(row), evidence_paths(ws, row))
    except KernelPilotError as fault:
        what = (
            f"{rows.headline(row)} is recorded in {ledger.LINEAGE_PATH}, but its evidence commit failed: {fault.what}"
        )
        fix = "mend what git says (finish a merge, remove a stale .git/index.lock); the next command commits it"
        raise KernelPilotError(what, where=str(ws.root), fix=fix) from None
    records.crash_point("attempt.evidence")


def evidence_paths(ws: Workspace, row: Row) -> list[str]:
    """What the evidence commit of a row holds: the referee's own files, nothing else that lies beside them."""
    own = (ledger.LINEAGE_PATH, ledger.IDEAS_PATH, workspace.LOCK, *views.rendered(ws), f"src/{ws.task}/current")
    made = [f"{workspace.RUNS}/{run}" for run in row.runs]
    return [path for path in (*own, *made, *derived.paths(row)) if (ws.root / path).exists()]
