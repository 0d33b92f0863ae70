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
    ),
    Act(
        slug="pointer_cache",
        motivation="buffers come back at the same address, so results can be kept",
        expect=("WRONG",),
        reason="cheat.cache",
        shows="a cheat: replays results",
    ),
    Act(
        slug="fused_again",
        motivation="a tidier version of the fused loop",
        expect=("SAME",),
        reason="identical.binary",
        shows="the same program rebuilt",
    ),
    Act(
        slug="fused_wide",
        motivation="one running sum is a chain of additions; sixteen partial sums fill the vector unit",
        expect=("IMPROVED",),
        shows="a further honest gain",
    ),
)
