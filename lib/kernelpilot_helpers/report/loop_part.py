"""The page's part about the loop and the gate: rounds with their attempts, findings, and what is not judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelpilot_helpers.evidence.model import Evidence, LoopFacts, StopFacts
from kernelpilot_helpers.gate.final_facts import amendments_of
from kernelpilot_helpers.gate.model import Report
from kernelpilot_helpers.ledger import Row
from kernelpilot_helpers.report import timeline

COMPLETED = "The reviewer was evidence-only: it read no code, it completed what the gate had passed."
TERMINALS = {
    "COMPLETE": "the loop was accepted",
    "CANCEL": "cancelled by the user",
    "MAXITER": "the rounds were used up without acceptance",
    "STOP": "stopped without acceptance",
    "PARKED": "parked: it waits for a person",
    "UNEXPECTED": "ended by something that may not happen",
}


def loop_part(evidence: Evidence | None) -> dict[str, Any]:
    """Words of the loop's section; ``absent`` says why there is none."""
    if evidence is None:
        return {"absent": "The loop's journal was not read for this page."}
    if evidence.loop is None:
        return {"absent": "No loop is on record: attempts were made by hand, outside rounds."}
    loop = evidence.loop
    ended = TERMINALS.get(loop.phase)
    return {
        "absent": "",
        "state": f"When this page was written: {loop.phase} in round {loop.round} of at most {loop.max_rounds}"
        + (f": {ended}" if ended else ""),
        "reviewer": _reviewer(loop),
        "svg": timeline.rounds(loop),
        "legend": timeline.legend(),
        "lines": _lines(evidence, loop),
        "faults": loop.faults,
        "tampered": loop.tampered,
        "amended": _amended(evidence),
        "directory": loop.directory,
    }


def _amended(evidence: Evidence) -> str:
    """The same words as in the final inventory: what the loop was judged by was changed on purpose."""
    said = amendments_of(evidence)
    return f"Amended while the loop ran: {'; '.join(said) if said else 'none, neither plan nor evidence'}"


def _reviewer(loop: LoopFacts) -> str:
    if loop.reviewer == "evidence-only" and loop.phase == "COMPLETE":
        return COMPLETED
    return f"Reviewer: {loop.reviewer}" + ("; it reads no code." if loop.reviewer == "evidence-only" else ".")


def _lines(evidence: Evidence, loop: LoopFacts) -> list[dict[str, Any]]:
    places = [placed(evidence, loop.stops, row) for row in evidence.rows]
    tried = [(row, at) for row, at in zip(evidence.rows, places, strict=True) if row.kind in ("attempt", "recheck")]
    lines = [
        {
            "round": stop.round,
            "head": stop.head[:10],
            "gate": timeline.words(stop),
            "findings": stop.findings,
            "outcome": stop.outcome.replace("setup", "") or "set-up",
            "reason": stop.reason,
            "attempts": [_attempt(row) for row, at in tried if at == ix],
        }
        for ix, stop in enumerate(loop.stops)
    ]
    late = [_attempt(row) for row, at in tried if at == len(loop.stops)]
    if late:
        gone = {"head": "", "gate": "-", "findings": (), "outcome": "no Stop since", "reason": ""}
        lines.append({"round": loop.round, "attempts": late, **gone})
    return lines


def _attempt(row: Row) -> tuple[str, str]:
    return row.version, row.verdict or "none"


def placed(evidence: Evidence, stops: Sequence[StopFacts], row: Row) -> int:
    """Index of the Stop that a row's commit led to: it lies after the previous Stop's HEAD and not after this one's.

    ``len(stops)`` when no Stop has followed yet. Where git does not tell, the round in the row decides.
    """
    order = {commit.commit: ix for ix, commit in enumerate(evidence.git.commits)}
    mine = order.get(row.commit)
    if mine is not None:
        for ix, stop in enumerate(stops):
            head = order.get(stop.head)
            if head is not None and mine <= head:
                return ix
        return len(stops)
    found = [ix for ix, stop in enumerate(stops) if stop.round == row.round]
    return found[-1] if found else len(stops)


def gate_part(report: Report | None) -> dict[str, Any]:
    """Words of the gate's section; ``absent`` says why there is none."""
    if report is None:
        return {"absent": "The gate was not asked for this page. Ask it: kernelpilot gate"}
    worst = ("block", "repair", "trend")
    found = sorted(report.findings, key=lambda f: (worst.index(f.severity), f.rule.zfill(3), f.where))
    return {
        "absent": "",
        "passed": report.passed,
        "done": report.done,
        "findings": found,
        "not_evaluated": report.not_evaluated,
    }
