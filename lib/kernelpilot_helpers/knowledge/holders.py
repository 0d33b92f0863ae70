"""Who holds a token: records that name it, records that add its mechanism, and pages that speak of it."""

from __future__ import annotations

import sqlite3

import msgspec

from kernelpilot_helpers.knowledge import filters as conditions
from kernelpilot_helpers.knowledge import listing, shelf, suggest, text
from kernelpilot_helpers.knowledge import page as leaf
from kernelpilot_helpers.knowledge.filters import Condition
from kernelpilot_helpers.knowledge.model import Filters, PageHit, Record, Vocabulary
from kernelpilot_helpers.knowledge.page import Page
from kernelpilot_helpers.knowledge.question import ask

NAMING = "words label symbols context paths lesson"
"""Columns of what a record itself says; the others are made from counts."""
MOST_PAGES = 4


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A record, and how it holds the token."""

    record: Record
    lines: int
    """Added lines of the mechanism that the token stands for; 0 where it stands for none."""
    names: bool
    """True when title, symbols, paths or our words hold the token itself; else only its mechanism was counted."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    mechanism: str
    """The one that the token stands for; empty for a plain word."""
    own: bool
    """True when the token is the mechanism's own name."""
    holders: tuple[Holder, ...]
    pages: tuple[PageHit, ...]
    kind: str = ""
    suggestions: tuple[str, ...] = ()
    """Where nothing holds it: as a search suggests."""


def held(tables: sqlite3.Connection, token: str, filters: Filters, limit: int) -> Held:
    """Records that name the token, then those that add most lines of its mechanism; pages that hold it.

    Under the mechanism's own name the lines alone decide. Raises Refused for an unknown filter value.
    """
    words = listing.vocabulary(tables)
    allowed = conditions.condition(tables, words, filters)
    name = _mechanism(tables, token, words)
    own = bool(name) and text.phrase(name) == text.phrase(token)
    naming = _naming(tables, token, allowed)
    counts = _adding(tables, name, allowed)
    order = list(counts) if own else list(dict.fromkeys((*naming, *counts)))
    those = set(naming)
    holders = tuple(
        Holder(record=listing.record_at(tables, number), lines=counts.get(number, 0), names=own or number in those)
        for number in order[:limit]
    )
    pages = _pages(tables, token, name if own else "", allowed)
    nothing = not holders and not pages
    question = ask(token, listing.lexicon(tables))
    kind, near = suggest.suggestions(tables, question, filters, token) if nothing else ("", ())
    return Held(mechanism=name, own=own, holders=holders, pages=pages, kind=kind, suggestions=near)


def _mechanism(tables: sqlite3.Connection, token: str, words: Vocabulary) -> str:
    if tables.execute("SELECT 1 FROM term WHERE token = ?", (token.lower(),)).fetchone():
        return token.lower()
    said = text.phrase(token)
    return next((n for n, other in words.mechanisms.items() if said in {text.phrase(a) for a in (n, *other)}), "")


def _adding(tables: sqlite3.Connection, name: str, allowed: Condition) -> dict[int, int]:
    rows = tables.execute(
        f"SELECT doc, lines FROM term WHERE token = ?{allowed.sql('doc')} ORDER BY lines DESC, doc",  # noqa: S608
        (name, *allowed.values),
    )
    return dict(rows.fetchall())


def _naming(tables: sqlite3.Connection, token: str, allowed: Condition) -> list[int]:
    whole = text.query_words(token, limit=1)
    if not whole:
        return []
    rows = tables.execute(
        f"SELECT rowid FROM fts WHERE fts MATCH ?{allowed.sql('+rowid')} ORDER BY rank",  # noqa: S608
        (f'{{{NAMING}}} : "{next(iter(whole.values()))[0]}"', *allowed.values),
    )
    return [row[0] for row in rows]


def _pages(tables: sqlite3.Connection, token: str, mechanism: str, allowed: Condition) -> tuple[PageHit, ...]:
    """Pages that hold the token; of a mechanism first those that are about it."""
    said = next(iter(text.query_words(token, limit=1).values()), [""])[0]
    out = []
    for slug, document, about in tables.execute(
        "SELECT slug, page, instr(have, ?) > 0 AS about FROM page WHERE instr(have, ?) > 0 OR about",
        (f" {text.concept('m', mechanism)} " if mechanism else "\n", f" {said} "),
    ):
        page = msgspec.json.decode(document, type=Page)
        if said and page.kind not in leaf.INDEXES and leaf.fits(page, allowed.wanted):
            why = f"about: {mechanism}" if about else f"words: {token[:60]}"
            out.append((shelf.PRIOR.get(page.kind, shelf.OTHER), slug, page, why))
    best = sorted(out, key=lambda item: (not item[3].startswith("about"), -item[0], item[1]))[:MOST_PAGES]
    return tuple(PageHit(path=page.path, title=page.title, kind=page.kind, why=why) for _, _, page, why in best)
