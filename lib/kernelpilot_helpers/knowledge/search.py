"""Find records by identifier, mechanism or symptom, and say which fields matched."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.knowledge import filters as conditions
from kernelpilot_helpers.knowledge import listing, reasons, shelf, store, suggest
from kernelpilot_helpers.knowledge.corpus import Source
from kernelpilot_helpers.knowledge.lexicon import Lexicon
from kernelpilot_helpers.knowledge.model import Answer, Filters, Hit
from kernelpilot_helpers.knowledge.question import Question, ask
from kernelpilot_helpers.knowledge.rank import TUNING, Tuning, ranked

T = TypeVar("T")


def search(
    source: Source, said: str, filters: Filters, limit: int, *, cache: Path | None = None, tuning: Tuning = TUNING
) -> Answer:
    """The best records for a text, or suggestions. Raises Refused for an unknown filter value, BadRecord, ToolMissing.

    A cache file that breaks under the query is built anew.
    """
    return asked(source, lambda tables: answer(tables, said, filters, limit, tuning), cache=cache)


def asked(source: Source, question: Callable[[sqlite3.Connection], T], *, cache: Path | None = None) -> T:
    """What a function of the tables says; a cache file that breaks under it is built anew, once.

    Raises Refused for a question that SQLite cannot take.
    """
    try:
        with store.opened(source, cache) as tables:
            return question(tables)
    except (sqlite3.DatabaseError, msgspec.MsgspecError):
        with store.opened(source, cache, anew=True) as tables:
            return _anew(tables, question)


def _anew(tables: sqlite3.Connection, question: Callable[[sqlite3.Connection], T]) -> T:
    """Over tables that are new no question breaks but one that SQLite cannot take."""
    try:
        return question(tables)
    except sqlite3.DatabaseError as error:
        fix = "ask with fewer or shorter words and filters"
        raise Refused(f"the tables cannot answer this: {error}", where="knowledge", fix=fix) from None


def answer(tables: sqlite3.Connection, said: str, filters: Filters, limit: int, tuning: Tuning = TUNING) -> Answer:
    """The same over open tables."""
    allowed = conditions.condition(tables, listing.vocabulary(tables), filters)
    lexicon = listing.lexicon(tables)
    question = shelf.taught(tables, ask(said, lexicon))
    hits = tuple(
        _hit(tables, number, score, question, lexicon)
        for score, number in ranked(tables, question, allowed, limit, tuning)
    )
    kind, suggestions = ("", ()) if hits else suggest.suggestions(tables, question, filters, said)
    return Answer(hits=hits, suggestions=suggestions, kind=kind, pages=shelf.found(tables, question, allowed.wanted))


def _hit(tables: sqlite3.Connection, number: int, score: float, question: Question, lexicon: Lexicon) -> Hit:
    record = listing.record_at(tables, number)
    return Hit(record=record, why=reasons.why(record, question, lexicon), score=round(score, 3))
