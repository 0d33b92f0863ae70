"""Find records by identifier, mechanism or symptom, and say which fields matched."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.knowledge import store, text
from kernelpilot_helpers.knowledge.corpus import Source
from kernelpilot_helpers.knowledge.model import Answer, Filters, Hit, Record, Vocabulary

WEIGHTS = (10.0, 6.0, 5.0, 3.0, 2.0, 2.0, 1.2, 3.0)
"""Of store.FIELDS in their order: title words lead, then our label, symbols, paths."""
PRIOR = {"A": 1.25, "B": 1.15, "C": 1.1}
"""By tier: how sure it is that a record is about speed at all."""
SUGGESTIONS = 6


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, in the words of the index."""

    words: dict[str, list[str]]
    """As typed -> search words."""
    concepts: dict[str, tuple[str, str]]
    """Search word of a mechanism, family or architecture -> its name, and what was said for it."""


def search(source: Source, said: str, filters: Filters, limit: int, *, cache: Path | None = None) -> Answer:
    """The best records for a text, or suggestions. Raises Refused for an unknown filter value, BadRecord, ToolMissing.

    A cache file that breaks under the query is built anew.
    """
    try:
        with store.opened(source, cache) as tables:
            return _answer(tables, said, filters, limit)
    except (sqlite3.DatabaseError, msgspec.MsgspecError):
        with store.opened(source, cache, anew=True) as tables:
            return _answer(tables, said, filters, limit)


def _answer(tables: sqlite3.Connection, said: str, filters: Filters, limit: int) -> Answer:
    words = msgspec.json.decode(tables.execute("SELECT document FROM vocabulary").fetchone()[0], type=Vocabulary)
    allowed = _allowed(tables, words, filters)
    question = ask(said, words)
    ranked = _ranked(tables, question, allowed)
    hits = tuple(_hit(tables, number, score, question, words) for score, number in ranked[:limit])
    return Answer(hits=hits, suggestions=() if hits else _suggestions(tables, question))


def ask(said: str, words: Vocabulary) -> Question:
    """A text as search words, with the mechanisms that its symptoms lead to."""
    typed = text.query_words(said)
    concepts: dict[str, tuple[str, str]] = {}
    for symptom in words.symptoms:
        for heard in text.named_in(said, {symptom.says[0]: symptom.says}).values():
            for name in symptom.look_for:
                concepts.setdefault(text.concept("m", name), (name, heard))
    for kind, names in (("m", words.mechanisms), ("f", words.families), ("a", words.archs)):
        for name, heard in text.named_in(said, names).items():
            concepts[text.concept(kind, name)] = name, heard
    for arch in filter(None, map(text.normal_arch, typed)):
        concepts[text.concept("a", arch)] = arch, arch
    return Question(words=typed, concepts=concepts)


def _ranked(tables: sqlite3.Connection, question: Question, allowed: dict[int, str]) -> list[tuple[float, int]]:
    typed = dict.fromkeys(token for tokens in question.words.values() for token in tokens)
    known = [token for token in (*typed, *question.concepts) if _is_known(tables, token)]
    if not known:
        return []
    match = " OR ".join(f'"{token}"' for token in known)
    weights = ", ".join(str(weight) for weight in WEIGHTS)
    rows = tables.execute(
        f"SELECT rowid, -bm25(fts, {weights}) FROM fts WHERE fts MATCH ?",  # noqa: S608 - numbers of ours
        (match,),
    )
    scored = [(score * PRIOR.get(allowed[number], 1.0), number) for number, score in rows if number in allowed]
    return sorted(scored, key=lambda item: (-item[0], item[1]))


def _is_known(tables: sqlite3.Connection, token: str) -> bool:
    return tables.execute("SELECT 1 FROM known WHERE term = ?", (token,)).fetchone() is not None


def _hit(tables: sqlite3.Connection, number: int, score: float, question: Question, words: Vocabulary) -> Hit:
    (stored,) = tables.execute("SELECT record FROM doc WHERE id = ?", (number,)).fetchone()
    record = msgspec.json.decode(stored, type=Record)
    return Hit(record=record, why=_why(record, question, words), score=round(score, 3))


def _why(record: Record, question: Question, words: Vocabulary) -> str:
    found = store.fields(record, words)
    out = []
    for name in store.FIELDS[:-1]:
        have = set(found[name])
        said = [_heard(typed, tokens, have) for typed, tokens in question.words.items()]
        if any(said):
            out.append(f"{name}: {', '.join(dict.fromkeys(filter(None, said)))}")
    have = set(found["concepts"])
    led: dict[str, list[str]] = {}
    for token, (name, heard) in question.concepts.items():
        if token in have:
            led.setdefault("" if heard == name else f" (for {heard!r})", []).append(name)
    if led:
        out.append(f"concepts: {'; '.join(', '.join(names) + said for said, names in led.items())}")
    return "; ".join(out)


def _heard(typed: str, tokens: list[str], have: set[str]) -> str:
    """The word as typed when it stands there whole, else the longer parts of it that do."""
    if tokens[0] in have or text.normal_arch(typed) in have:
        return typed
    looked_for = have.intersection(tokens)
    return " ".join(piece for piece in text.surfaces(typed) if len(piece) > 1 and text.stem(piece) in looked_for)


def _allowed(tables: sqlite3.Connection, words: Vocabulary, filters: Filters) -> dict[int, str]:
    """Row -> tier of the records that the filters let through. Raises Refused for an unknown value."""
    rows = tables.execute("SELECT id, repo, archs, families, tier FROM doc").fetchall()
    facts = [(n, repo, json.loads(archs), json.loads(families), tier) for n, repo, archs, families, tier in rows]
    repo = _value("repo", filters.repo, {f[1] for f in facts}, {})
    arch = _value("arch", text.normal_arch(filters.arch) or filters.arch, {a for f in facts for a in f[2]}, words.archs)
    family = _value("family", filters.family, {a for f in facts for a in f[3]}, words.families)
    return {
        number: tier
        for number, its_repo, archs, families, tier in facts
        if (not repo or its_repo == repo) and (not arch or arch in archs) and (not family or family in families)
    }


def _value(name: str, asked: str, present: Iterable[str], names: dict[str, tuple[str, ...]]) -> str:
    """The index's spelling of a filter value; another name of it is understood."""
    if not asked:
        return ""
    choices = sorted(present)
    for choice in choices:
        forms = (choice, choice.split("/")[-1], *names.get(choice, ()))
        if asked.strip().lower() in {form.lower() for form in forms}:
            return choice
    raise Refused(f"no record has {name} {asked!r}", where=f"--{name}", fix=f"one of: {', '.join(choices)}")


def _suggestions(tables: sqlite3.Connection, question: Question) -> tuple[str, ...]:
    """Names that begin like a word that was typed, then names spelled much like it; none when nothing is near."""
    import difflib  # noqa: PLC0415 - only when nothing was found

    names = [row[0] for row in tables.execute("SELECT name FROM name ORDER BY name")]
    out: dict[str, None] = {}
    for typed in list(question.words)[:16]:
        lower = typed.lower()
        stump = lower[: max(4, len(lower) - 3)]
        near = [name for name in names if len(lower) > 3 and name.startswith(stump)][:3]
        near += difflib.get_close_matches(lower, names, n=3, cutoff=0.8)
        out.update(dict.fromkeys(near))
    return tuple(list(out)[:SUGGESTIONS])
