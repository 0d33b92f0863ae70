"""The search tables: an SQLite file below the user's cache, derived from the index and named by its content.

It may be deleted at any time. It appears by rename, so that two processes may build it at once; where the cache cannot
be written, or a cache file is broken, the tables are built in memory.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kernelpilot_helpers import proc
from kernelpilot_helpers.knowledge import corpus
from kernelpilot_helpers.knowledge.corpus import Corpus, Source
from kernelpilot_helpers.knowledge.tables import fill

LAYOUT = 4
"""Of the tables, and of how text becomes words; a change makes new cache files."""
KEEP = 2
"""Cache files of other indexes that stay."""
SMALL = 4_000_000
"""Bytes of a cache file that is looked through at each use; a larger one is too slow for that."""


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
        size = path.stat().st_size
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        good = connection.execute("SELECT sha256 FROM meta").fetchone() == (sha256,)
        good = good and (size > SMALL or connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
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
