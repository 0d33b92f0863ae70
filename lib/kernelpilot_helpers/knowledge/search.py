"""Find records by identifier, mechanism or symptom, and say which fields matched."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from kernelpilot_helpers.knowledge import filters as conditions
from kernelpilot_helpers.knowledge import listing, reasons, store
from kernelpilot_helpers.knowledge.corpus import Source
from kernelpilot_helpers.knowledge.lexicon import Lexicon
from kernelpilot_helpers.knowledge.model import Answer, Filters, Hit
from kernelpilot_helpers.knowledge.question import Question, ask
from kernelpilot_helpers.knowledge.rank import TUNING, Tuning, ranked

SUGGESTIONS = 6
MOST_NAMES = 4000
"""Names that are compared letter by letter with a word that was not found."""
OPTIONS = {"tokens": "token"}
"""Filters whose option has another name."""
T = TypeVar("T")


def search(
    source: Source, said: str, filters: Filters, limit: int, *, cache: Path | None = None, tuning: Tuning = TUNING
) -> Answer:
    """The best records for a text, or suggestions. Raises Refused for an unknown filter value, BadRecord, ToolMissing.

    A cache file that breaks under the query is built anew.
    """
    return asked(source, lambda tables: answer(tables, said, filters, limit, tuning), cache=cache)


def asked(source: Source, question: Callable[[sqlite3.Connection], T], *, cache: Path | None = None) -> T:
    """What a function of the tables says; a cache file that breaks under it is built anew, once."""
    try:
        with store.opened(source, cache) as tables:
            return question(tables)
    except (sqlite3.DatabaseError, msgspec.MsgspecError):
        with store.opened(source, cache, anew=True) as tables:
            return question(tables)


def answer(tables: sqlite3.Connection, said: str, filters: Filters, limit: int, tuning: Tuning = TUNING) -> Answer:
    """The same over open tables."""
    allowed = conditions.condition(tables, listing.vocabulary(tables), filters)
    lexicon = listing.lexicon(tables)
    question = ask(said, lexicon)
    hits = tuple(
        _hit(tables, number, score, question, lexicon)
        for score, number in ranked(tables, question, allowed, limit, tuning)
    )
    kind, suggestions = ("", ()) if hits else _suggestions(tables, question, filters)
    return Answer(hits=hits, suggestions=suggestions, kind=kind)


def _hit(tables: sqlite3.Connection, number: int, score: float, question: Question, lexicon: Lexicon) -> Hit:
    record = listing.record_at(tables, number)
    return Hit(record=record, why=reasons.why(record, question, lexicon), score=round(score, 3))


def _suggestions(tables: sqlite3.Connection, question: Question, filters: Filters) -> tuple[str, tuple[str, ...]]:
    """Filters without which something is found, else words that are near, else the families that there are."""
    words = listing.vocabulary(tables)
    excluding = []
    for name in filters.__struct_fields__:
        without = msgspec.structs.replace(filters, **{name: getattr(Filters(), name)})
        if without != filters and ranked(tables, question, conditions.condition(tables, words, without), 1):
            excluding.append("--" + OPTIONS.get(name, name.replace("_", "-")))
    if excluding:
        return "filters", tuple(excluding[:SUGGESTIONS])
    near = _near(tables, question)
    if near:
        return "near", near
    rows = tables.execute(
        "SELECT value FROM facet WHERE kind = 'family' AND value != 'unknown' GROUP BY value"
        " ORDER BY count(*) DESC, value LIMIT ?",
        (SUGGESTIONS,),
    )
    return "families", tuple(row[0] for row in rows)


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
    return tuple(list(out)[:SUGGESTIONS])


def _names(tables: sqlite3.Connection, start: str, limit: int) -> list[str]:
    rows = tables.execute(
        "SELECT name FROM name WHERE name >= ? AND name < ? ORDER BY name LIMIT ?", (start, start + "\U0010ffff", limit)
    )
    return [row[0] for row in rows]
