"""How long to wait for a call that may still compile: as long as a compiler is seen at work, and no longer."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from .procs import look
from .wire import Caller

LOOK_S = 0.1
ARRIVES_S = 5.0
"""A reply that has begun to arrive gets this long for the rest."""


class Patience:
    """Signs of a compiler: a child process of ``pid``, or a file below ``folder`` that was not there or has grown."""

    def __init__(self, pid: int, folder: Path, *, quiet: float, limit: float) -> None:
        self._pid = pid
        self._folder = folder
        self._quiet = quiet
        now = time.monotonic()
        self._end = now + limit
        self._until = now + quiet
        self._seen = built(folder)

    def wait(self, line: Caller) -> float:
        """Seconds that the reply may still take: 0 after ``quiet`` seconds without a sign, or after ``limit``."""
        while not line.answered(LOOK_S):
            if time.monotonic() >= min(self._until, self._end) and not self._again():
                return 0.0
        return ARRIVES_S

    def _again(self) -> bool:
        """Whether there was a sign since the last look, and time is left."""
        seen, children = built(self._folder), bool(look(self._pid).children)
        if time.monotonic() >= self._end or (seen == self._seen and not children):
            return False
        self._seen, self._until = seen, time.monotonic() + self._quiet
        return True


def built(folder: Path) -> tuple[int, int]:
    """(files, bytes) below ``folder``."""
    files, size = 0, 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118
                files += 1
    return files, size
