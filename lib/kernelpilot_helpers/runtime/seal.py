"""Whether files that a job rests on are still the ones it began with.

The audit hook of a worker sees what Python opens; a file that C opens shows here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

CACHE = "__pycache__"


def hashes(folder: Path, *, caches: bool) -> dict[str, str]:
    """Path below the folder's parent to sha256 of every file in it; byte code caches only where asked for."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and (caches or CACHE not in path.parts):
            name = path.relative_to(folder.parent).as_posix()
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


class Seal:
    """Hashes of ``sources`` (with byte code beside them, which would be run in their place) and of ``code``."""

    def __init__(self, sources: Sequence[Path], code: Path) -> None:
        self._sources = tuple(sources)
        self._code = code
        self._first = self._now()

    def _now(self) -> dict[str, str]:
        now = hashes(self._code, caches=False)  # the interpreter itself adds caches there
        for folder in self._sources:
            now.update(hashes(folder, caches=True))
        return now

    def broken(self) -> list[str]:
        """Names of files that were changed, added or removed since."""
        now, first = self._now(), self._first
        return sorted(name for name in now.keys() | first.keys() if now.get(name) != first.get(name))
