"""From an outcome to the row that records it, and the words of its commit."""

from __future__ import annotations

from kernelpilot_helpers import evidence, proc
from kernelpilot_helpers.ledger import DISPATCH, TUNE
from kernelpilot_helpers.ledger.model import Row
from kernelpilot_helpers.referee import runs, seals
from kernelpilot_helpers.referee.decide import Outcome
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.runs import Intent
from kernelpilot_helpers.referee.workspace import Workspace
from kernelpilot_helpers.units import percent


def make_row(ws: Workspace, intent: Intent, outcome: Outcome, made: list[str], clock: Clock) -> Row:
    """The row of an outcome."""
    selected = outcome.verdict == "IMPROVED" and intent.kind == "attempt"
    return Row(
        version=intent.label,
        kind="recheck" if intent.kind == "recheck" else "attempt",
        parent=intent.parent,
        variant=intent.variant,
        tree=intent.tree,
        commit=intent.commit,
        epoch=intent.epoch,
        round=evidence.active_round(ws.root),
        at=stamp(clock),
        motivation=intent.motivation,
        language=intent.language,
        provenance=intent.provenance,
        runs=tuple(made),
        evidence=seals.evidence(ws.root, made),
        tier=intent.tier,
        verdict=outcome.verdict,
        reason=outcome.reason,
        partial=outcome.partial,
        gain=outcome.gain,
        vs_baseline=outcome.vs_baseline,
        incumbent=intent.incumbent,
        confirmed_by=confirmation(ws, made) if outcome.confirmed else None,
        build_id=outcome.build_id,
        binary_id=outcome.binary_id,
        mutation_score=ws.lock.mutation_score if ws.lock else "",
        status="selected" if selected else "rejected",
        at_head=proc.head(ws.root) or "",
    )


def confirmation(ws: Workspace, made: list[str]) -> str | None:
    """The run that confirmed, by its intent."""
    for run in made:
        intent = runs.load_intent(ws.root, run)
        if intent is not None and intent.role == "confirm":
            return run
    return None


def headline(row: Row) -> str:
    """``v003 IMPROVED +12.0 %``: the evidence commit's message."""
    if row.reason.startswith((TUNE, DISPATCH)):
        return row.reason
    label = row.version.split("_")[0]
    gain = f" {percent(row.gain.speedup)}" if row.gain is not None else ""
    return f"{label} {row.verdict}{gain}" if row.verdict else f"{label} {row.kind}"
