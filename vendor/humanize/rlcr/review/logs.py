"""Where a reviewer's own output is kept: the user's cache, out of the repository and out of every decision."""

from __future__ import annotations

import os
import re
from pathlib import Path


def cache_home() -> Path:
    """``$XDG_CACHE_HOME``, or ``~/.cache`` when that is unset or, against its specification, relative."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):
        return Path(named)
    return Path(os.environ.get("HOME") or os.path.expanduser("~")) / ".cache"  # noqa: PTH111


def log_dir(project: Path, loop: str) -> Path:
    """The folder of one loop's logs; ``loop`` is the loop directory's name."""
    return cache_home() / "humanize" / re.sub(r"[^A-Za-z0-9._-]", "-", str(project)) / loop


def log_stem(project: Path, loop: str, *, number: int, reviewer: str) -> Path:
    """Logs of one run are this path plus ``.cmd``, ``.out`` and ``.log``."""
    return log_dir(project, loop) / f"round-{number}-{reviewer}-run"
