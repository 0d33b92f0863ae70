"""What to try instead, where nothing was found: filters to leave out, near words, or the families."""

from __future__ import annotations

import sqlite3

import msgspec

from kernelpilot_helpers.knowledge import filters as conditions
from kernelpilot_helpers.knowledge import listing, text
from kernelpilot_helpers.knowledge.model import Filters
from kernelpilot_helpers.knowledge.question import Question
from kernelpilot_helpers.knowledge.rank import ranked

MOST = 6
MOST_NAMES = 4000
"""Names that are compared letter by letter with a word that was not found."""
OPTIONS = {"tokens": "token"}
"""Filters whose option has another name."""
TOLD = {
    "near": "near words",
    "filters": "found without",
    "families": "no word of the index is near; name a mechanism, a symptom or a family",
    "stop": "only words that stand everywhere, which are not looked for; name a mechanism, a symptom or a family",
}
"""What each kind of suggestion is called."""


def suggestions(
    tables: sqlite3.Connection, question: Question, filters: Filters, said: str = ""
) -> tuple[str, tuple[str, ...]]:
    """Kind and at most six: filters without which something is found, else near words, else families.

    ``said`` is the question as it was typed, to tell one of stop words only.
    """
    words = listing.vocabulary(tables)
    excluding = []
    for name in filters.__struct_fields__:
        without = msgspec.structs.replace(filters, **{name: getattr(Filters(), name)})
        if without != filters and ranked(tables, question, conditions.condition(tables, words, without), 1):
            excluding.append("--" + OPTIONS.get(name, name.replace("_", "-")))
    if excluding:
        return "filters", tuple(excluding[:MOST])
    near = _near(tables, question)
    if near:
        return "near", near
    rows = tables.execute(
        "SELECT value FROM facet WHERE kind = 'family' AND value != 'unknown' GROUP BY value"
        " ORDER BY count(*) DESC, value LIMIT ?",
        (MOST,),
    )
    return "stop" if text.only_stop_words(said) else "families", tuple(row[0] for row in rows)


def told(kind: str, names: tuple[str, ...], *, pages: bool = False) -> str:
    """The suggestions as one line; ``pages``: only records were not found."""
    return f"{'no record' if pages else 'nothing'} found; {TOLD[kind]}: {', '.join(names)}"


def _near(tables: sqlite3.Connection, question: Question) -> tuple[str, ...]:
    """Names that begin like a word that was typed, then names spelled much like it; none when nothing is near."""
    import difflib  # noqa: PLC0415 - only when nothing was found

    out: dict[str, None] = {}
    for typed in [word for word in question.words if len(word) > 3][:8]:
        lower = typed.lower()
        stump = lower[: max(4, len(lower) - 3)]
        near = _names(tables, stump, 3)
        alike = [name for name in _names(tables, lower[:2], MOST_NAMES) if abs(len(name) - len(lower)) <= 3]
        near += difflib.get_close_matches(lower, alike, n=3, cutoff=0.8)
        out.update(dict.fromkeys(near))
    return tuple(list(out)[:MOST])


def _names(tables: sqlite3.Connection, start: str, limit: int) -> list[str]:
    rows = tables.execute(
        "SELECT name FROM name WHERE name >= ? AND name < ? ORDER BY name LIMIT ?", (start, start + "\U0010ffff", limit)
    )
    return [row[0] for row in rows]
