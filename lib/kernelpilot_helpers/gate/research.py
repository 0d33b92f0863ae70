"""What a wider search has come to: new sources that count, and hypotheses that differ. Pure.

The course and rule 19 both count here, so what one of them asks for is what the other accepts.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.sources import Place, Source, read
from kernelpilot_helpers.ledger import IDEAS_PATH, Row
from kernelpilot_helpers.policy import Policy

NEXT = f"kernelpilot knowledge next --want {{want}} --seen {IDEAS_PATH}"
MARK = "kernelpilot knowledge mark-read ID --hypothesis TEXT"
WORDS = 3
"""Words, numbers left out, that a mechanism takes at the least."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """The rows that were noted in one stretch of the history."""

    sources: int
    """Rows that count."""
    hypotheses: int
    """Hypotheses of those rows that name a mechanism and a number, and differ by more than case, signs and numbers."""
    keys: tuple[str, ...]
    """Keys of the rows with such a hypothesis."""
    want: int
    want_hypotheses: int
    bare: int = 0
    """New rows without a sha256 of their own file: nothing shows that it was opened."""
    again: int = 0
    """Rows of a source, or of bytes, that an earlier row is of."""
    doubtful: int = 0
    """New rows whose file stands with another sha256 elsewhere."""
    early: int = 0
    """Prose that was noted before the code that has to come first."""
    vague: int = 0
    """Rows that count, with a hypothesis that names no number or hardly a word."""

    @property
    def missing(self) -> int:
        """Sources still to be noted."""
        return max(self.want - self.sources, 0)

    @property
    def missing_hypotheses(self) -> int:
        """Hypotheses still to be written."""
        return max(self.want_hypotheses - self.hypotheses, 0)

    @property
    def whole(self) -> bool:
        """Whether nothing is missing but the attempt that cites one of ``keys``."""
        return not self.missing and not self.missing_hypotheses

    def hand_out(self) -> str:
        """The command that hands out what is missing: a hypothesis comes with a source of its own."""
        return NEXT.format(want=max(self.missing, self.missing_hypotheses))

    def left_out(self) -> str:
        """Which rows do not count, and why; empty where all do."""
        said = (
            (self.bare, "without a sha256 of the file (kernelpilot knowledge mark-read records it)"),
            (self.again, "of a source or of bytes noted before"),
            (self.doubtful, "whose file stands with another sha256 elsewhere"),
            (self.early, "of prose noted before the code"),
        )
        parts = [f"{count} {words}" for count, words in said if count]
        return f"not counted: {', '.join(parts)}" if parts else ""


def study(evidence: Evidence, policy: Policy, begin: Row | None, until: Row | None = None) -> Study:
    """What was noted after one row was written and before another was; up to now without the second.

    Order is that of the history: ``kernelpilot knowledge mark-read`` commits each row, and a row of the lineage names
    the HEAD it was written at. An idea that no commit holds yet is the newest; where a row's HEAD is not in the
    history nothing can be shown to come after or before it, and nothing counts.

    A source counts once, by its key and by its bytes. Prose counts once more than ``policy.research_code_share`` of
    the sources wanted is code.
    """
    noted, true = read(evidence.ideas)
    first = 0 if begin is None else _held(evidence, begin)
    end = len(noted) if until is None else _held(evidence, until)
    if first is None or end is None:
        first = end = len(noted)
    return _judge(noted, true, first, end, policy)


def _held(evidence: Evidence, row: Row) -> int | None:
    """How many ideas the history held when a row was written; None where its HEAD is not in the history."""
    at = facts.places(evidence)
    here = at.get(row.at_head)
    if here is None:
        return None
    return max((n for commit, n in evidence.git.ideas_held.items() if at.get(commit, here + 1) <= here), default=0)


def _judge(noted: Sequence[Source], true: Mapping[Place, str], first: int, end: int, policy: Policy) -> Study:
    keys = {(source.place, source.symbol) for source in noted[:first]}
    seen = {source.sha for source in noted[:first] if source.sha}
    code_first = policy.research_sources * policy.research_code_share
    out = {"bare": 0, "again": 0, "doubtful": 0, "early": 0}
    counted: list[Source] = []
    code = 0
    for source in noted[first:end]:
        why = _left_out(source, keys, seen, true[source.place] if source.sha else "")
        if not why and not source.code and code <= code_first:
            why = "early"
        if why:
            out[why] += 1
        else:
            counted.append(source)
            code += source.code
        if source.sha:  # a row that shows nothing does not keep its source from being read
            keys.add((source.place, source.symbol))
            seen.add(source.sha)
    ideas = {source.key: mechanism(source.idea.hypothesis) for source in counted}
    return Study(
        sources=len(counted),
        hypotheses=len(set(ideas.values()) - {""}),
        keys=tuple(key for key, said in ideas.items() if said),
        want=policy.research_sources,
        want_hypotheses=policy.research_hypotheses,
        vague=sum(not said for said in ideas.values()),
        **out,
    )


def _left_out(source: Source, keys: set[tuple[Place, str]], seen: set[str], true: str) -> str:
    """Why a row does not count as a new source; empty when it does."""
    if (source.place, source.symbol) in keys or (source.sha and source.sha in seen):
        return "again"
    if not source.sha:
        return "bare"
    return "" if source.sha == true else "doubtful"


@functools.lru_cache(maxsize=8192)
def mechanism(hypothesis: str) -> str:
    """The words of a hypothesis that tell it from others; empty when it names no number, or too few words.

    >>> mechanism("Wider  loads: DRAM throughput 60 -> 80 %"), mechanism("wider loads, dram throughput 50 -> 90 %")
    ('wider loads dram throughput', 'wider loads dram throughput')
    >>> mechanism("make it much faster"), mechanism("faster by 5 %")
    ('', '')
    """
    plain = unicodedata.normalize("NFKC", hypothesis).casefold()
    words = re.findall(r"[^\W\d_]+", plain)
    return " ".join(words) if len(words) >= WORDS and re.search(r"\d", plain) else ""
