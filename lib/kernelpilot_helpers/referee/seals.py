"""Rows against the files they rest on: every run's bytes are hashed into its row, and a verdict can be judged anew."""

from __future__ import annotations

import json
from pathlib import Path

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.ledger.model import Row
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee import decide, derived, measure, runs
from kernelpilot_helpers.referee.decide import Outcome, Runs
from kernelpilot_helpers.referee.runs import Intent
from kernelpilot_helpers.referee.workspace import LOCK, RUNS, Workspace

FIX = "git checkout -- artifacts  # brings back what was committed"


def run_sha256(root: Path, run: str) -> str:
    """One hash over names and bytes of a run's files; empty when the directory is not there."""
    folder = runs.run_dir(root, run)
    if not folder.is_dir():
        return ""
    held = {p.name: records.file_sha256(p) for p in sorted(folder.iterdir()) if p.is_file()}
    return records.sha256(json.dumps(held, sort_keys=True).encode())


def evidence(root: Path, made: list[str], *, lock: bool = False) -> dict[str, str]:
    """What a row rests on, by name: each run, and for a baseline row the lock."""
    found = {run: run_sha256(root, run) for run in made}
    if lock:
        found[LOCK] = records.file_sha256(root / LOCK)
    return found


def faults(ws: Workspace, row: Row) -> list[Fault]:
    """Runs of a row that are gone or no longer hold the bytes it was judged from."""
    out: list[Fault] = []
    for run in row.runs:
        now = run_sha256(ws.root, run)
        if not now:
            out.append(Fault(where=f"{RUNS}/{run}", what=f"cited by {row.version}, but missing", fix=FIX))
        elif row.evidence.get(run) != now:
            out.append(Fault(where=f"{RUNS}/{run}", what=f"not the files that {row.version} was judged from", fix=FIX))
    return out


def rejudged(ws: Workspace, row: Row) -> list[Fault]:
    """What a row of this epoch says, judged again from its raws: verdict or map must come out the same."""
    if derived.kind(row) == "tune" and row.epoch == ws.epoch:
        return derived.faults(ws, row)
    if row.kind not in ("attempt", "recheck") or row.epoch != ws.epoch or _says_unjudgeable(row):
        return []
    try:
        intents = [_intent(ws, row, run) for run in row.runs]
        outcome = outcome_of(ws, intents)
    except (KernelPilotError, ArithmeticError, ValueError) as fault:
        return [Fault(where=row.version, what=f"its runs cannot be judged: {fault}", fix=FIX)]
    if (outcome.verdict, outcome.gain, outcome.vs_baseline) != (row.verdict, row.gain, row.vs_baseline):
        what = f"the row says {row.verdict}, its runs say {outcome.verdict} ({outcome.reason})"
        return [Fault(where=row.version, what=what, fix=FIX)]
    return []


def _says_unjudgeable(row: Row) -> bool:
    """Whether a row claims nothing: BROKEN because its runs could not be judged. Words alone excuse no other one."""
    return row.verdict == "BROKEN" and row.reason.startswith("evidence.")


def _intent(ws: Workspace, row: Row, run: str) -> Intent:
    intent = runs.load_intent(ws.root, run)
    if intent is None:
        raise ValueError(f"{run} has no readable intent")
    if (intent.run, intent.label, intent.tree, intent.incumbent) != (run, row.version, row.tree, row.incumbent):
        raise ValueError(f"{run} was made for another row")
    return intent


def outcome_of(ws: Workspace, intents: list[Intent]) -> Outcome:
    """The outcome that the recorded raws of one attempt allow; BROKEN (interrupted) when they end too early."""
    state = Runs()
    for intent in intents:
        if intent.role in ("floor", "audit"):
            continue
        raw = runs.load_raw(ws.root, intent.run)
        if raw is None:
            return Outcome(verdict="BROKEN", reason=f"interrupted: killed while measuring {intent.run}")
        state = state.with_raw(intent.role, raw)
    answer = decide.step(measure.facts_of(ws, intents[-1]), state)
    if isinstance(answer, Outcome):
        return answer
    return Outcome(verdict="BROKEN", reason=f"interrupted: killed before the {answer.role} run")
