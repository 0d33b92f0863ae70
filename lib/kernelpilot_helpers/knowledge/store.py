"""The search tables: an SQLite file below the user's cache, derived from the index and named by its content.

It may be deleted at any time. It appears by rename, so that two processes may build it at once; where the cache cannot
be written, or a cache file is broken, the tables are built in memory.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from kernelpilot_helpers import proc
from kernelpilot_helpers.errors import ToolMissing
from kernelpilot_helpers.knowledge import corpus, text
from kernelpilot_helpers.knowledge.corpus import Corpus, Source
from kernelpilot_helpers.knowledge.model import Record, Vocabulary

LAYOUT = 1
"""Of the tables, and of how text becomes words; a change makes new cache files."""
KEEP = 4
"""Cache files of other indexes that stay."""
FIELDS = ("words", "label", "symbols", "paths", "facets", "lesson", "terms", "concepts")


@contextmanager
def opened(source: Source, cache: Path | None = None, *, anew: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection to the tables of this index, built when they are not there yet, or ``anew``.

    Raises ToolMissing when this Python's SQLite has no full-text search, BadRecord when the index is not sound.
    """
    cache = proc.cache_dir() if cache is None else cache
    path = cache / f"knowledge-{LAYOUT}-{source.sha256[:16]}.sqlite"
    connection = None if anew else _sound(path, source.sha256)
    if connection is None:
        loaded = corpus.load(source)
        connection = _built_on_disk(path, loaded, source.sha256) or _in_memory(loaded, source.sha256)
    with closing(connection):
        yield connection


def _sound(path: Path, sha256: str) -> sqlite3.Connection | None:
    """The cache file opened, or None when it is absent, broken, or of another index."""
    if not path.is_file():
        return None
    connection = None
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        good = connection.execute("SELECT sha256 FROM meta").fetchone() == (sha256,)
        good = good and connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        if good:
            return connection
    except (sqlite3.Error, UnicodeError, OSError):
        pass
    if connection is not None:
        connection.close()
    return None


def _built_on_disk(path: Path, loaded: Corpus, sha256: str) -> sqlite3.Connection | None:
    """The cache file made, or None where the disk refuses."""
    tmp = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".knowledge-", suffix=".tmp", dir=path.parent)
        os.close(handle)
        tmp = Path(name)
        with closing(sqlite3.connect(tmp)) as connection:
            fill(connection, loaded, sha256)
        tmp.replace(path)
        _forget_older(path)
    except (OSError, sqlite3.OperationalError):
        return None
    finally:
        if tmp is not None:
            tmp.unlink(missing_ok=True)
    return _sound(path, sha256)


def _forget_older(path: Path) -> None:
    others = [p for p in path.parent.glob("knowledge-*.sqlite") if p != path]
    for old in sorted(others, key=lambda p: p.stat().st_mtime)[:-KEEP]:
        old.unlink(missing_ok=True)


def _in_memory(loaded: Corpus, sha256: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    try:
        fill(connection, loaded, sha256)
    except BaseException:
        connection.close()
        raise
    return connection


def fill(connection: sqlite3.Connection, loaded: Corpus, sha256: str) -> None:
    """Create and fill the tables. Raises ToolMissing without FTS5."""
    try:
        connection.execute(
            f"CREATE VIRTUAL TABLE fts USING fts5({', '.join(FIELDS)}, tokenize = \"unicode61 tokenchars '_.'\")"
        )
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise
        raise ToolMissing(
            "this Python's SQLite has no full-text search (FTS5)",
            where=f"sqlite {sqlite3.sqlite_version}",
            fix="put a python3 with FTS5 first on PATH and run ./install.sh again",
        ) from None
    connection.execute("CREATE TABLE doc (id INTEGER PRIMARY KEY, repo, archs, families, tier, record)")
    connection.execute("CREATE TABLE name (name PRIMARY KEY) WITHOUT ROWID")
    connection.execute("CREATE TABLE vocabulary (document)")
    connection.execute("CREATE TABLE meta (sha256)")
    connection.execute("CREATE VIRTUAL TABLE known USING fts5vocab(fts, 'row')")
    for number, record in enumerate(loaded.records, start=1):
        columns = fields(record, loaded.vocabulary)
        connection.execute(
            f"INSERT INTO fts (rowid, {', '.join(FIELDS)}) VALUES ({', '.join('?' * (len(FIELDS) + 1))})",  # noqa: S608
            (number, *(" ".join(columns[name]) for name in FIELDS)),
        )
        facets = [json.dumps(list(part)) for part in (record.archs, record.families)]
        whole = msgspec.json.encode(record).decode()
        connection.execute(
            "INSERT INTO doc VALUES (?, ?, ?, ?, ?, ?)", (number, record.repo, *facets, record.tier, whole)
        )
    names = _names(loaded)
    connection.executemany("INSERT OR IGNORE INTO name VALUES (?)", [(name,) for name in names])
    connection.execute("INSERT INTO vocabulary VALUES (?)", (msgspec.json.encode(loaded.vocabulary).decode(),))
    connection.execute("INSERT INTO meta VALUES (?)", (sha256,))
    connection.commit()


def _names(loaded: Corpus) -> list[str]:
    """What a search without a hit may suggest."""
    words = loaded.vocabulary
    out = [*words.mechanisms, *words.families, *words.archs]
    out += [alias for group in (words.mechanisms, words.families) for aliases in group.values() for alias in aliases]
    for record in loaded.records:
        out += [symbol.split(".")[-1] for symbol in record.symbols]
        out += [*record.words, *re.findall(r"[\w./-]+", record.label)]
    return sorted({name.lower() for name in out if len(name) > 2 and name.lower() not in text.STOP})


def fields(record: Record, words: Vocabulary) -> dict[str, list[str]]:
    """Search words of a record by field; a mechanism's word is repeated with the logarithm of its lines."""
    prose = f"{record.label} {' '.join(record.words)}"
    terms: list[str] = []
    concepts: list[str] = []
    for name, lines in record.diff_terms.items():
        often = 1 + int(math.log2(max(lines, 1)))
        terms += text.tokens(name) * often
        concepts += [text.concept("m", name)] * often
    concepts += [text.concept("m", name) for name in text.named_in(prose, words.mechanisms)] * 4
    concepts += [text.concept("f", name) for name in text.named_in(prose, words.families)] * 2
    concepts += [text.concept("f", name) for name in record.families]
    concepts += [text.concept("a", name) for name in record.archs]
    paths = (*record.kernel_files, *record.test_files, *record.bench_files)
    return {
        "words": [t for word in record.words for t in text.tokens(word)],
        "label": text.tokens(record.label),
        "symbols": [t for symbol in record.symbols for t in text.tokens(symbol)],
        "paths": [t for path in paths for t in text.tokens(path)],
        "facets": text.tokens(" ".join((record.repo, *record.archs, *record.families, *record.kinds))),
        "lesson": text.tokens(record.lesson),
        "terms": terms,
        "concepts": concepts,
    }
