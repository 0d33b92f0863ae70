"""The tables of a search: full text, facets, mechanisms and names, filled from a corpus."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

import msgspec

from kernelpilot_helpers.errors import ToolMissing
from kernelpilot_helpers.knowledge import shelf, text
from kernelpilot_helpers.knowledge.corpus import Corpus
from kernelpilot_helpers.knowledge.fields import FIELDS, fields
from kernelpilot_helpers.knowledge.lexicon import Lexicon, compiled
from kernelpilot_helpers.knowledge.model import Record, url
from kernelpilot_helpers.knowledge.postings import Gathered

MOST_NAMES = 20_000
"""Names kept to suggest from."""
ABOUT = ("zf_", "zd_", "za_")
"""Concepts that very many records share: families, data types, architectures."""

_TABLES = """
CREATE TABLE doc (
    id INTEGER PRIMARY KEY, name, short, sha, repo, tier, day, files INTEGER, state,
    archs, dtypes, head, terms, family, names, record, read INTEGER
);
CREATE TABLE facet (kind, value, doc INTEGER, PRIMARY KEY (kind, value, doc)) WITHOUT ROWID;
CREATE TABLE term (token, doc INTEGER, lines INTEGER, PRIMARY KEY (token, doc)) WITHOUT ROWID;
CREATE TABLE name (name PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE vocabulary (document);
CREATE TABLE lexicon (document);
CREATE TABLE meta (sha256);
"""


def fill(connection: sqlite3.Connection, loaded: Corpus, sha256: str) -> None:
    """Create and fill the tables. Raises ToolMissing without FTS5."""
    try:
        connection.execute(
            f"CREATE VIRTUAL TABLE fts USING fts5({', '.join(FIELDS)}, "
            "content='', tokenize = \"unicode61 tokenchars '_.'\")"
        )
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise
        raise ToolMissing(
            "this Python's SQLite has no full-text search (FTS5)",
            where=f"sqlite {sqlite3.sqlite_version}",
            fix="put a python3 with FTS5 first on PATH and run ./install.sh again",
        ) from None
    for statement in filter(str.strip, _TABLES.split(";")):
        connection.execute(statement)
    lexicon = compiled(loaded.vocabulary)
    gathered = Gathered()
    for number, record in enumerate(loaded.records, start=1):
        gathered.add(number, _insert(connection, number, record, lexicon))
    gathered.write(connection)
    shelf.fill(connection, loaded.pages, lexicon)
    connection.execute("CREATE INDEX doc_name ON doc (name)")
    connection.execute("CREATE INDEX doc_short ON doc (short)")
    connection.execute("CREATE INDEX doc_sha ON doc (sha)")
    connection.execute("CREATE INDEX doc_repo ON doc (repo, tier)")
    connection.executemany("INSERT OR IGNORE INTO name VALUES (?)", [(name,) for name in _names(loaded)])
    connection.execute("INSERT INTO vocabulary VALUES (?)", (msgspec.json.encode(loaded.vocabulary).decode(),))
    connection.execute("INSERT INTO lexicon VALUES (?)", (msgspec.json.encode(lexicon).decode(),))
    connection.execute("INSERT INTO meta VALUES (?)", (sha256,))
    connection.commit()


def _insert(connection: sqlite3.Connection, number: int, record: Record, lexicon: Lexicon) -> dict[str, list[str]]:
    columns = fields(record, lexicon)
    connection.execute(
        f"INSERT INTO fts (rowid, {', '.join(FIELDS)}) VALUES ({', '.join('?' * (len(FIELDS) + 1))})",  # noqa: S608
        (number, *(" ".join(columns[name]) for name in FIELDS)),
    )
    about = (token for token in columns["concepts"] if token[:3] in ABOUT)
    told = {*about, *columns["words"], *columns["label"], *columns["symbols"], *columns["named"]}
    head = f" {' '.join(sorted(told))} "
    terms = msgspec.json.encode(record.diff_terms).decode()
    connection.execute(
        f"INSERT INTO doc VALUES ({', '.join('?' * 17)})",  # noqa: S608 - marks only
        (
            number,
            record.id.lower(),
            record.id.split("/")[-1].lower(),
            record.sha,
            record.repo,
            record.tier,
            record.merged_at[:10],
            record.n_files,
            record.state,
            " ".join(record.archs),
            " ".join(record.dtypes),
            head,
            terms,
            cherry_family(record),
            " ".join((*record.symbols, *record.context)),
            msgspec.json.encode(record).decode(),
            bool(record.lesson),
        ),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO facet VALUES (?, ?, ?)", [(kind, value, number) for kind, value in _facets(record)]
    )
    connection.executemany("INSERT INTO term VALUES (?, ?, ?)", [(t, number, n) for t, n in record.diff_terms.items()])
    return columns


def cherry_family(record: Record) -> str:
    """The same for a change and its re-landing or cherry-pick: title's words, files and kernels agree."""
    words = " ".join(
        word for word in record.words if not word.isdigit() and word not in ("reland", "backport", "cherry")
    )
    return f"{record.repo}|{words}|{','.join(sorted(record.kernel_files)[:4])}" if record.words else record.id


def _facets(record: Record) -> Iterator[tuple[str, str]]:
    yield "repo", record.repo
    yield "tier", record.tier or "none"
    yield "state", record.state
    for kind, values in (
        ("arch", record.archs),
        ("family", record.families),
        ("dsl", record.kinds),
        ("dtype", record.dtypes),
    ):
        yield from ((kind, value) for value in values or ("unknown",))
    if record.test_files:
        yield "has", "test"
    if record.bench_files:
        yield "has", "bench"


def _names(loaded: Corpus) -> list[str]:
    """What a search without a hit may suggest."""
    words = loaded.vocabulary
    groups = (words.mechanisms, words.families, words.topics, words.dtypes, words.kinds)
    out: list[str] = [*words.archs]
    out += [name for group in groups for key, aliases in group.items() for name in (key, *aliases)]
    for record in loaded.records:
        if record.tier or record.lesson:
            out += [symbol.split(".")[-1] for symbol in record.symbols]
            out += record.words
            out += _label_words(record)
    kept = sorted({name.lower() for name in out if len(name) > 2 and name.lower() not in text.STOP})
    return kept[:MOST_NAMES] if len(kept) > MOST_NAMES else kept


def _label_words(record: Record) -> Iterable[str]:
    return text.WORD.findall(record.label) if record.lesson else ()


def forms(record: Record) -> set[str]:
    """Everything that somebody may call this record."""
    return {record.id.lower(), record.id.split("/")[-1].lower(), url(record).lower(), record.sha}
