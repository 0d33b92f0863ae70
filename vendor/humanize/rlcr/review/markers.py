"""The older way to answer: plain text with marker lines, for a reviewer that knows no schema.

Read over the whole final message, never over a log or its tail.
"""

from __future__ import annotations

import re

from rlcr.review.model import Finding, Mainline, Outcome, Priority, Verdict

_MAINLINE = re.compile(
    r"^[ \t>*_#`-]{0,40}mainline progress verdict[\s*_`]{0,40}:[\s*_`]{0,40}(advanced|stalled|regressed)\b",
    re.I | re.M,
)
_FINDING = re.compile(r"^\W{0,6}(?:\d{1,3}[.)]\W{0,4})?\[P(\d)\][\s*_:—-]*(.*)$")
_PLACE = re.compile(r"(?<![\w./+-])([\w./+-]+\.[A-Za-z]\w{0,9}):(\d{1,7})")
_BANNER = re.compile(r"^\W{0,4}(?:fatal|stream |api |unexpected )?(?:error|traceback|panicked|status \d{3})\b", re.I)
_CLAUSE = re.compile(r"[.;!?](?=\s)|\n")
_CRITERION = re.compile(r"\bAC[-_. ]?\d", re.I)
_NEGATED = re.compile(
    r"\b(?:not|never|deferred|partial(?:ly)?|incomplete|missing|pending|fail(?:s|ed|ing)?)\b|n['\u2019]t\b", re.I
)
_UNMET = re.compile(r"\bun-?met\b|\bnot (?:\w{1,20} )?(?:met|satisfied|fulfilled)\b", re.I)
_LAST: dict[str, Outcome] = {"COMPLETE": "complete", "STOP": "blocked"}


def is_error(message: str) -> bool:
    """Whether the message opens as a program's error does rather than as a review."""
    opening = next((line for line in message.splitlines() if line.strip()), "")
    return _BANNER.match(opening) is not None


def verdict(message: str) -> Verdict | None:
    """The verdict that the markers spell, or None when they spell none or contradict each other.

    The last non-empty line is exactly ``COMPLETE`` or ``STOP``, or the review says continue. The progress line is
    wanted except with ``STOP``. ``COMPLETE`` below words that call a criterion not met spells none.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    outcome = _LAST.get(lines[-1], "continue") if lines else "continue"
    said: set[Mainline] = {_word(found) for found in _MAINLINE.findall(message)}
    if len(said) > 1 or (not said and outcome != "blocked"):
        return None
    if outcome == "complete" and _against(message):
        return None
    named = tuple(findings(message))
    if outcome == "blocked" and not named:
        # These words know no place of a fault: the first of them are what stands in the way.
        why = next((line for line in lines[:-1] if not _MAINLINE.match(line)), "the reviewer says STOP and no reason")
        named = (Finding(id="", priority="P1", file="", line=0, claim=why[:600], locus="external"),)
    return Verdict(
        verdict=outcome, mainline=said.pop() if said else "stalled", acs=(), findings=named, text=message.strip()
    )


def _against(message: str) -> bool:
    """Whether words call a criterion not met: such a phrase anywhere, or a negation behind a criterion's id."""
    if _UNMET.search(message):
        return True
    clauses = ((clause, _CRITERION.search(clause)) for clause in _CLAUSE.split(message))
    return any(named is not None and _NEGATED.search(clause, named.end()) for clause, named in clauses)


def _word(found: str) -> Mainline:
    words: dict[str, Mainline] = {"advanced": "advanced", "stalled": "stalled", "regressed": "regressed"}
    return words[found.lower()]


def findings(message: str) -> list[Finding]:
    """Every line that opens with ``[P0]`` to ``[P9]``; 3 and up are P3."""
    found = []
    for line in message.splitlines():
        mark = _FINDING.match(line)
        if mark is None:
            continue
        place = _PLACE.search(mark[2])
        found.append(
            Finding(
                id="",
                priority=_priority(int(mark[1])),
                file=place[1] if place else "",
                line=int(place[2]) if place else 0,
                claim=mark[2].strip() or "(no text)",
                locus="in-round",
            )
        )
    return found


def _priority(number: int) -> Priority:
    known: tuple[Priority, ...] = ("P0", "P1", "P2", "P3")
    return known[min(number, 3)]
