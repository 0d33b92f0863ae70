"""A process by its number and the moment it began: the number alone may be another's by now."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path


def mark(pid: int) -> str:
    """When a process began, as the system writes it; empty where there is none or nobody says."""
    with contextlib.suppress(OSError, LookupError):
        raw = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return raw.rpartition(")")[2].split()[19]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        ps = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(ps, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
    return ""


def same(pid: object, began: object) -> bool:
    """Whether process ``pid`` runs and began at ``began``, as a file may claim of it."""
    if type(pid) is not int or pid <= 1 or not isinstance(began, str) or not began:
        return False
    return mark(pid) == began
