"""Outcomes that end an attempt before its times are read: not correct, or clocks that contradict each other."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpilot_helpers import benchmark
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.correctness import Broken, Correct, Wrong
from kernelpilot_helpers.ledger.model import Verdict
from kernelpilot_helpers.referee.state import QUIET, Outcome


def not_correct(verified: Correct | Wrong | Broken, ids: tuple[str, str]) -> Outcome | None:
    """WRONG or BROKEN, as it was judged; None for Correct. ``ids`` are the candidate's build and binary id."""
    if isinstance(verified, Correct):
        return None
    word: Verdict = "WRONG" if isinstance(verified, Wrong) else "BROKEN"
    return Outcome(verdict=word, reason=verified.reason, verification=verified, build_id=ids[0], binary_id=ids[1])


def clocks(raws: Sequence[Raw], verified: Correct | Wrong | Broken, ids: tuple[str, str]) -> Outcome | None:
    """The clocks must tell one story: a lying candidate is WRONG, a disturbed machine decides nothing."""
    findings = sorted(benchmark.suspicions(raws), key=lambda f: not f.code.startswith("cheat."))
    if not findings:
        return None
    first = findings[0]
    cheat = first.code.startswith("cheat.")
    return Outcome(
        verdict="WRONG" if cheat else "AMBIGUOUS",
        reason=f"{first.code}: {first.text}" + ("" if cheat else f"; {QUIET}"),
        verification=verified,
        build_id=ids[0],
        binary_id=ids[1],
        notes=tuple(f"{f.code}: {f.text}" for f in findings[1:]),
    )
