"""Whether a hypothesis will count in a wider search, said when it is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.ledger import Idea

COUNTS = (
    "A hypothesis counts in a wider search when it names a mechanism in at least three words and the figure that it "
    'should move, with a number, such as "swizzled tile, shared wavefronts 2.1 -> 1.0 per request", and differs from '
    "those noted before by more than numbers, case and signs."
)


def faults(hypothesis: str, earlier: Iterable[Idea]) -> list[str]:
    """Why the gate will not count it; empty when it will."""
    import re

    from kernelpilot_helpers.gate import research

    told = research.mechanism(hypothesis)
    if not told:
        few = len(re.findall(r"[^\W\d_]+", hypothesis)) < research.WORDS
        out = [f"it names no mechanism in {research.WORDS} words"] if few else []
        return [*out, "it names no figure with a number"] if not re.search(r"\d", hypothesis) else out
    same = next((idea.key for idea in earlier if research.mechanism(idea.hypothesis) == told), "")
    return [f"it is that of {same} but for numbers, case and signs"] if same else []


def warn(hypothesis: str, earlier: Iterable[Idea], *, of: str) -> None:
    """Say at once on stderr that a hypothesis will not count, and why; nothing is refused."""
    found = faults(hypothesis, earlier)
    if found:
        common.say(f"{of}: noted, but this hypothesis will not count in a wider search: {', and '.join(found)}")
