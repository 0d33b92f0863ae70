"""The search tables: an SQLite file below the user's cache, derived from the index and named by its content.

It may be deleted at any time. It appears by rename, so that two processes may build it at once; where the cache cannot
be written, or a cache file is broken, the tables are built in memory.

Beside it lies a seal: the sha256 of the file, and what the file system said of it then. While that is the same
(inode, size, times) the file is believed without reading it; else it is read whole, and made anew when its sha256 is
another one. What this does not catch: bytes that change under the file system, as on a failing disk.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from kernelpilot_helpers import proc
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.knowledge import corpus
from kernelpilot_helpers.knowledge.corpus import Corpus, Source
from kernelpilot_helpers.knowledge.tables import fill

LAYOUT = 11
"""Of the tables, and of how text becomes words; a change makes new cache files."""
KEEP = 2
"""Cache files of other indexes that stay."""
STALE_S = 3600.0
"""Seconds after which what a killed build left behind is swept away."""


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """What lies beside a cache file."""

    sha256: str
    """Of the file's bytes."""
    stamp: tuple[int, int, int, int]
    """Inode, bytes, and nanoseconds of the last change of content and of the file's entry."""


@contextmanager
def opened(source: Source, cache: Path | None = None, *, anew: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection to the tables of this index, built when they are not there yet, or ``anew``.

    Raises ToolMissing when this Python's SQLite has no full-text search, BadRecord when the index is not sound.
    """
    path = _path(source, cache)
    connection = None if anew or path is None else _sound(path, source.sha256)
    if connection is None:
        loaded = corpus.load(source)
        connection = _built_on_disk(path, loaded, source.sha256) if path is not None else None
        connection = connection or _in_memory(loaded, source.sha256)
    with closing(connection):
        yield connection


def _path(source: Source, cache: Path | None) -> Path | None:
    """Where the cache file is or will be; None on a machine that has no place for one."""
    try:
        folder = proc.cache_dir() if cache is None else cache
    except KernelPilotError:
        return None
    return folder / f"knowledge-{LAYOUT}-{source.sha256[:16]}.sqlite"


def seal_of(path: Path) -> Path:
    """Where the seal of a cache file lies."""
    return path.with_suffix(".seal")


def _sound(path: Path, sha256: str) -> sqlite3.Connection | None:
    """The cache file opened, or None when it is absent, broken, not the one that was sealed, or of another index."""
    connection = None
    try:
        if not _sealed(path):
            return None
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        if connection.execute("SELECT sha256 FROM meta").fetchone() == (sha256,):
            return connection
    except (sqlite3.Error, UnicodeError, OSError, msgspec.MsgspecError):
        pass
    if connection is not None:
        connection.close()
    return None


def _sealed(path: Path) -> bool:
    """Whether the file is the one that was built."""
    seal = msgspec.json.decode(seal_of(path).read_bytes(), type=Seal)
    stamp = _stamp(path)
    if stamp == seal.stamp:
        return True
    if _sha256(path) != seal.sha256:
        return False
    with suppress(OSError):  # a copied or moved cache: the same bytes
        _write_seal(path, seal.sha256, stamp)
    return True


def _stamp(path: Path) -> tuple[int, int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_seal(path: Path, sha256: str, stamp: tuple[int, int, int, int]) -> None:
    tmp = _tmp(path.parent)
    try:
        tmp.write_bytes(msgspec.json.encode(Seal(sha256=sha256, stamp=stamp)))
        tmp.replace(seal_of(path))
    finally:
        tmp.unlink(missing_ok=True)


def _tmp(folder: Path) -> Path:
    handle, name = tempfile.mkstemp(prefix=".knowledge-", suffix=".tmp", dir=folder)
    os.close(handle)
    return Path(name)


def _built_on_disk(path: Path, loaded: Corpus, sha256: str) -> sqlite3.Connection | None:
    """The cache file made, or None where the disk refuses."""
    tmp = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        tmp = _tmp(path.parent)
        with closing(sqlite3.connect(tmp)) as connection:
            fill(connection, loaded, sha256)
        content = _sha256(tmp)
        _write_seal(path, content, _stamp(tmp))  # first, so that nobody meets the file without it
        tmp.replace(path)
        _write_seal(path, content, _stamp(path))
        _forget_older(path)
    except (OSError, sqlite3.OperationalError):
        return None
    finally:
        if tmp is not None:
            for left in (tmp, Path(f"{tmp}-journal")):
                left.unlink(missing_ok=True)
    return _sound(path, sha256)


def _sweep(folder: Path) -> None:
    """Remove what killed builds left behind; younger files may belong to a build that runs."""
    for left in folder.glob(".knowledge-*.tmp*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > STALE_S:
                left.unlink()


def _forget_older(path: Path) -> None:
    others = [p for p in path.parent.glob("knowledge-*.sqlite") if p != path]
    for old in sorted(others, key=lambda p: p.stat().st_mtime)[:-KEEP]:
        old.unlink(missing_ok=True)
        seal_of(old).unlink(missing_ok=True)


def _in_memory(loaded: Corpus, sha256: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    try:
        fill(connection, loaded, sha256)
    except BaseException:
        connection.close()
        raise
    return connection
