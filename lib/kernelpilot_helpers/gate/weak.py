"""Weak rounds: attempts that gained little, and the decisions that stand on them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.facts import epoch_rows
from kernelpilot_helpers.ledger import Row
from kernelpilot_helpers.policy import Policy

_BRING_UP = re.compile(r"^\W*type\W+bring-up\b", re.IGNORECASE | re.MULTILINE)


def gains(rows: Sequence[Row]) -> list[tuple[str, float | None, int]]:
    """(round, best point gain, place of its last row) in order; a row outside rounds is a round of its own.

    Attempts in a row with one number are one round; the next loop begins at 0 again. A round without a correct
    attempt has no gain and counts as weak. Rows that speak of the machine or the harness are passed over, and so are
    rechecks, which try nothing new; a round that has no other row is no round here.
    """
    out: list[tuple[str, float | None, int]] = []
    for ix, row in enumerate(rows):
        if row.kind != "attempt" or facts.void(row):
            continue
        name = f"round {row.round}" if row.round is not None else row.version
        point = row.gain.speedup - 1 if row.gain is not None and row.verdict not in ("WRONG", "BROKEN") else None
        before = out.pop()[1] if out and out[-1][0] == name else None
        best = max((p for p in (point, before) if p is not None), default=None)
        out.append((name, best, ix))
    return out


def streak(evidence: Evidence, policy: Policy, attempt: int | None = None) -> tuple[tuple[str, ...], Row | None]:
    """Names of the weak rounds in a row at the end, oldest first, and the row after which that begins.

    With the place of an attempt among the epoch's rows: as it stood before it, of rounds that had ended by then.

    That row is the last decision that counts or the last row of a round that was not weak, whichever is later; the
    epoch's first row where there is neither. A round that goes on after a decision counts by the best of all its
    attempts. Raises NotEvaluated without a lock.
    """
    rows = epoch_rows(evidence)
    end = len(rows) if attempt is None else attempt
    begin = max((ix for ix in range(end) if decides(evidence, policy, rows, ix)), default=-1)
    ended = rows if attempt is None else rows[: _first(rows, attempt)]
    weak, last = _tail(evidence, policy, ended, begin)
    return weak, rows[max(last, 0)] if rows else None


def _first(rows: Sequence[Row], attempt: int) -> int:
    """The place of the first attempt of an attempt's round."""
    rounds = gains(rows[: attempt + 1])
    return rounds[-2][2] + 1 if len(rounds) > 1 else 0


def before(evidence: Evidence, policy: Policy, rows: Sequence[Row]) -> int:
    """Weak rounds in a row at the end of these rows, whatever was decided between them."""
    return len(_tail(evidence, policy, rows, -1)[0])


def decides(evidence: Evidence, policy: Policy, rows: Sequence[Row], ix: int) -> bool:
    """Whether a row is a decision that counts: a stop needs ``policy.weak_rounds`` weak rounds in a row before it."""
    said = facts.word(rows[ix])
    if said == facts.STOP:
        return before(evidence, policy, rows[:ix]) >= policy.weak_rounds
    return said in facts.DECISIONS


def _tail(evidence: Evidence, policy: Policy, rows: Sequence[Row], begin: int) -> tuple[tuple[str, ...], int]:
    """Weak rounds after a row, and the place after which they begin.

    A round whose contract says ``Type: bring-up`` and that has no correct attempt is passed over.
    """
    weak: list[str] = []
    for name, gain, ix in reversed(gains(rows)):
        if ix < begin:
            break
        if gain is not None and gain >= policy.weak_gain:
            begin = ix
            break
        if gain is not None or not _bring_up(evidence, rows[ix]):
            weak.append(name)
    return tuple(reversed(weak)), begin


def _bring_up(evidence: Evidence, row: Row) -> bool:
    """Whether the contract of a row's round says so; the loop is the last one set up before the row was written."""
    at = facts.places(evidence)
    here = at.get(row.at_head, -1)
    mine = [loop for loop in facts.loops(evidence) if at.get(loop.start, len(at)) <= here]
    text = mine[-1].contracts.get(row.round, "") if mine and row.round is not None else ""
    return _BRING_UP.search(text) is not None
