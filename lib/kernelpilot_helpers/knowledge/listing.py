"""Lists over the tables: one record by any of its names, records that add a mechanism, alike ones, unread ones."""

from __future__ import annotations

import functools
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterable

import msgspec

from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge import filters as conditions
from kernelpilot_helpers.knowledge import shelf, text
from kernelpilot_helpers.knowledge.corpus import slip
from kernelpilot_helpers.knowledge.filters import Condition
from kernelpilot_helpers.knowledge.lexicon import Lexicon
from kernelpilot_helpers.knowledge.model import Filters, Record, Vocabulary
from kernelpilot_helpers.knowledge.page import Page
from kernelpilot_helpers.knowledge.question import Question, ask
from kernelpilot_helpers.knowledge.rank import ranked

TIERS = "ABCED"
"""In the order in which unread sources are handed out; fixes and the rest come after them."""
ALIKE_TERMS = 6


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a task is about: its records are handed out before others."""

    families: tuple[str, ...]
    dtypes: tuple[str, ...] = ()


def vocabulary(tables: sqlite3.Connection) -> Vocabulary:
    """The vocabulary that the tables were filled with."""
    return _vocabulary(tables.execute("SELECT document FROM vocabulary").fetchone()[0])


def lexicon(tables: sqlite3.Connection) -> Lexicon:
    """The same, made ready for reading."""
    return _lexicon(tables.execute("SELECT document FROM lexicon").fetchone()[0])


@functools.lru_cache(maxsize=4)
def _vocabulary(document: str) -> Vocabulary:
    return msgspec.json.decode(document, type=Vocabulary)


@functools.lru_cache(maxsize=4)
def _lexicon(document: str) -> Lexicon:
    return msgspec.json.decode(document, type=Lexicon)


def record_at(tables: sqlite3.Connection, number: int) -> Record:
    """The record of one row."""
    row = tables.execute("SELECT record FROM doc WHERE id = ?", (number,)).fetchone()
    return msgspec.json.decode(row[0], type=Record)


def find(tables: sqlite3.Connection, name: str) -> Record:
    """The record of an id, a short id (``DeepGEMM#86``), an address, or a commit. Raises BadRecord."""
    wanted = name.strip().lower().rstrip("/")
    address = re.fullmatch(r"https?://github\.com/([\w.-]+/[\w.-]+)/(pull|commit)/([0-9a-f]+)(?:/.*)?", wanted)
    if address:
        wanted = f"{address[1]}#{address[3]}" if address[2] == "pull" else address[3]
    for column in ("name", "short"):
        row = tables.execute(f"SELECT id FROM doc WHERE {column} = ? ORDER BY id", (wanted,)).fetchone()  # noqa: S608
        if row:
            return record_at(tables, row[0])
    if re.fullmatch("[0-9a-f]{8,40}", wanted):
        row = tables.execute("SELECT id FROM doc WHERE sha >= ? AND sha < ?", (wanted, wanted + "g")).fetchone()
        if row:
            return record_at(tables, row[0])
    ids = [row[0] for row in tables.execute("SELECT name FROM doc ORDER BY name")]
    near = next((known for known in ids if slip(wanted, known)), "")
    near = tables.execute("SELECT record FROM doc WHERE name = ?", (near,)).fetchone() if near else ""
    known = msgspec.json.decode(near[0], type=Record).id if near else ""
    fix = f"kernelpilot knowledge show {shlex.quote(known)}" if known else "kernelpilot knowledge search TEXT"
    raise BadRecord(f"no record {name[:120]!r}: the index holds {len(ids)} records", where="knowledge", fix=fix)


def named(tables: sqlite3.Connection, name: str) -> Record | Page:
    """The record or the page of a name; a name with ``#``, ``@`` or of an address is a record's. Raises BadRecord."""
    page = None if re.search("[#@]|://", name) else shelf.named(tables, name)
    if page is not None:
        return page
    try:
        return find(tables, name)
    except BadRecord as error:
        near = "" if "#" in name else shelf.near(tables, name)
        if not near:
            raise
        what = f"no page or record {name[:120]!r}"
        raise BadRecord(what, where=error.where, fix=f"kernelpilot knowledge show {near}") from None


def facets(tables: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """Kind of facet -> value -> records, most first; mechanisms as ``token``."""
    out: dict[str, dict[str, int]] = {}
    rows = tables.execute(
        "SELECT kind, value, count(*) AS n FROM facet GROUP BY kind, value ORDER BY kind, n DESC, value"
    )
    for kind, value, count in rows:
        out.setdefault(kind, {})[value] = count
    counts = tables.execute("SELECT token, count(*) AS n FROM term GROUP BY token ORDER BY n DESC, token")
    out["token"] = dict(counts.fetchall())
    return out


def like(tables: sqlite3.Connection, record: Record, filters: Filters, limit: int) -> list[Record]:
    """Records that touch the same kernels, mechanisms and families, best first, without the record itself."""
    allowed = conditions.condition(tables, vocabulary(tables), filters)
    found = (record_at(tables, number) for _, number in ranked(tables, as_question(tables, record), allowed, limit + 1))
    return [other for other in found if other.id != record.id][:limit]


def as_question(tables: sqlite3.Connection, record: Record) -> Question:
    """A record's kernels, strongest mechanisms and families as what is asked for."""
    said = " ".join(
        (*record.words, *record.symbols[:6], *(path.rsplit("/", 1)[-1] for path in record.kernel_files[:3]))
    )
    question = ask(said, lexicon(tables))
    strongest = sorted(record.diff_terms.items(), key=lambda item: (-item[1], item[0]))[:ALIKE_TERMS]
    shown = {text.concept("m", name): (name, name) for name, _ in strongest}
    shown |= {text.concept("f", name): (name, name) for name in record.families}
    return msgspec.structs.replace(question, concepts={**question.concepts, **shown})


def unread(
    tables: sqlite3.Connection, said: str, filters: Filters, want: int, first: Wish | None = None
) -> tuple[list[Record], int]:
    """Records to read next, the surest first, those with a lesson before others, and the repositories in turn.

    Beside them how many there were. What ``first`` wishes for comes before all else.

    With a text: those that it finds, best first. Raises Refused for an unknown filter value.
    """
    allowed = conditions.condition(tables, vocabulary(tables), filters)
    if said.strip():
        question = ask(said, lexicon(tables))
        numbers = [number for _, number in ranked(tables, question, allowed, want)]
        count = len(numbers) if len(numbers) < want else max(len(numbers), _matching(tables, question, allowed))
        return [record_at(tables, number) for number in numbers], count
    rows = tables.execute(
        f"SELECT id, repo, tier, state, dtypes FROM doc WHERE 1{allowed.sql('id')} ORDER BY read DESC, day DESC, id",  # noqa: S608
        tuple(allowed.values),
    ).fetchall()
    return [record_at(tables, number) for number in _in_turn(rows, _places(tables, first))[:want]], len(rows)


def _matching(tables: sqlite3.Connection, question: Question, allowed: Condition) -> int:
    """Records that hold one of the words, or are about what they name."""
    named = [token for token in question.concepts if token[1] in "mft"]
    tokens = dict.fromkeys((*(t[0] for t in question.words.values()), *question.joined, *named))
    match = " OR ".join(f'"{token}"' for token in tokens)
    sql = f"SELECT count(*) FROM fts WHERE fts MATCH ?{allowed.sql('+rowid')}"  # noqa: S608 - conditions of ours
    found: int = tables.execute(sql, (match, *allowed.values)).fetchone()[0] if match else 0
    return found


def _places(tables: sqlite3.Connection, first: Wish | None) -> Callable[[int, str], tuple[int, int]]:
    """Row and data types -> 0 for a record of a family wished for, then 0 for one of a type wished for."""
    families, dtypes = (first.families, set(first.dtypes)) if first else ((), set())
    marks = ", ".join("?" * len(families))
    sql = f"SELECT doc FROM facet WHERE kind = 'family' AND value IN ({marks})"  # noqa: S608 - marks only
    wished = {row[0] for row in tables.execute(sql, families)}
    return lambda number, types: (int(number not in wished), int(not dtypes & set(types.split())))


def _in_turn(rows: Iterable[tuple[int, str, str, str, str]], place: Callable[[int, str], tuple[int, int]]) -> list[int]:
    """Numbers by family and tier; within a tier one of each repository after the other."""
    turns: dict[tuple[int, int, int, str], int] = {}
    keyed = []
    for number, repo, tier, state, dtypes in rows:
        grade = (TIERS.find(tier) if tier and tier in TIERS else len(TIERS)) + (len(TIERS) if state == "open" else 0)
        family, dtype = place(number, dtypes)
        key = (family, grade, dtype if family == 0 else 0, repo)
        turn = turns[key] = turns.get(key, 0) + 1
        keyed.append((*key[:3], turn, repo, number))
    return [number for *_, number in sorted(keyed)]


def concepts_only(mechanisms: Iterable[str], families: Iterable[str], dtypes: Iterable[str]) -> Question:
    """A question that is no text: mechanisms wanted, of these families and data types."""
    named = {text.concept("m", name): (name, name) for name in mechanisms}
    about = {
        text.concept(kind, name): (name, name) for kind, names in (("f", families), ("d", dtypes)) for name in names
    }
    return Question(
        words={}, absorbed={}, complaint=frozenset(), joined=(), concepts={**named, **about}, led={}, related={}
    )


def with_any(mechanisms: Iterable[str], allowed: Condition) -> Condition:
    """The condition, and that a record adds one of these mechanisms."""
    names = tuple(mechanisms)
    allowed.add(f"SELECT doc FROM term WHERE token IN ({', '.join('?' * len(names))})", *names)  # noqa: S608
    return allowed
