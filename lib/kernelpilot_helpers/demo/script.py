"""What the scripted writer tries, in order, and the verdict that a sound referee must give."""

from __future__ import annotations

from dataclasses import dataclass

from kernelpilot_helpers.ledger.model import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Act:
    """One candidate. ``expect`` lists the acceptable verdicts, ``reason`` the start of the acceptable reason."""

    slug: str
    motivation: str
    expect: tuple[Verdict, ...]
    reason: str = ""
    shows: str
    round: int = 0
    """Round of the loop in which the writer tries it."""


ACTS = (
    Act(
        slug="rowwise",
        motivation="one row at a time keeps the temporaries in the cache",
        expect=("REGRESSED",),
        shows="correct and slower",
    ),
    Act(
        slug="fused_tail",
        motivation="one pass in C with sixteen partial sums removes every temporary",
        expect=("WRONG",),
        reason="wrong",
        shows="wrong on the tail",
    ),
    Act(
        slug="fused",
        motivation="the plain loop first: add, sum of squares and scaling in one C function",
        expect=("IMPROVED",),
        shows="correct and faster",
        round=1,
    ),
    Act(
        slug="pointer_cache",
        motivation="buffers come back at the same address, so results can be kept",
        expect=("WRONG",),
        reason="cheat.cache",
        shows="a cheat: replays results",
        round=1,
    ),
    Act(
        slug="fused_again",
        motivation="a tidier version of the fused loop",
        expect=("SAME",),
        reason="identical.binary",
        shows="the same program rebuilt",
        round=2,
    ),
    Act(
        slug="fused_wide",
        motivation="one running sum is a chain of additions; sixteen partial sums fill the vector unit",
        expect=("IMPROVED",),
        shows="a further honest gain",
        round=2,
    ),
)

OBJECTIVES = (
    ("a first candidate that is correct, and the harness seen at work", "AC-8"),
    ("one pass over memory instead of five", "AC-8, AC-9"),
    ("the last gain, then which version for which shape", "AC-9"),
)
"""What each round is for: (objective, criteria)."""
GATE = "kernelpilot gate --final"
ROWS = "artifacts/lineage.jsonl"
NOTES = "artifacts/research-digest.md"
STANDS_ON = {
    "repo": GATE, "framework": GATE, "stall": GATE, "reassess": GATE, "stop": GATE, "inventory": "artifacts/FINAL.md",
    "language": ROWS, "provenance": ROWS, "from_scratch": ROWS, "correctness": ROWS, "benchmark": ROWS,
    "bringup": ROWS, "attempts": ROWS, "lineage": ROWS, "krw": "artifacts/contract.lock.json", "research": NOTES,
    "sources": NOTES, "optimizations": "artifacts/optimization-ledger.md", "dispatch": "artifacts/tuning-decisions.md",
}  # fmt: skip
"""What the writer names as evidence in the goal tracker, by the topic of a criterion."""
PUT_OFF = "no GPU profiler runs on a CPU"
"""Why the other topics, which ask for profiles, are put off."""
BOAST_ROUND = 1
"""The round at whose end the writer improves a ledger by hand, to show what the gate does with it."""
TUNE_ROUND = 2
QUERY = "fused add rmsnorm"
"""The scoped knowledge pass before the plan."""
