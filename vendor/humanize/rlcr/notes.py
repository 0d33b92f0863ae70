"""What the state folder keeps of a loop that ended by a command: a word for its session, and that it was buried."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from rlcr.files import TooBig, read_regular, replace_file
from rlcr.model import sha256
from rlcr.registry import state_dir

KEPT_S = 7 * 24 * 3600
"""Seconds after which a session that never stopped again is not waited for."""


def _note(session: str) -> Path:
    return state_dir() / "notes" / f"{session}.json"


def leave(session: str, folder: Path, what: str) -> None:
    """Leave a word for a session (the SHA-256 of its id) that a loop is no longer its own: told at its next Stop."""
    if (state_dir() / "drives" / f"{session}.json").exists():
        return  # a driver hears of it by itself, and has no hook
    with contextlib.suppress(OSError):  # the command itself has done its work
        replace_file(_note(session), json.dumps({"loop": str(folder), "what": what}).encode())
        for path in _note(session).parent.glob("*.json"):
            if path.lstat().st_mtime < time.time() - KEPT_S:
                path.unlink()


def read(session: str) -> str:
    """The word that was left for a session, as a sentence; empty when there is none."""
    try:
        data = json.loads(read_regular(_note(session), 1 << 16) or b"")
        return f"the loop {data['loop']} {data['what']}"[:1200]
    except (ValueError, TypeError, LookupError, RecursionError, TooBig):
        return ""


def drop(session: str) -> None:
    """Forget the word: it was told, or the session has another loop by now."""
    with contextlib.suppress(OSError):
        _note(session).unlink(missing_ok=True)


def bury(folder: Path) -> None:
    """Note that the runtime itself laid down the loop in this folder, whose journal could not be continued."""
    replace_file(state_dir() / "buried" / sha256(str(folder)), f"{os.fspath(folder)}\n".encode(errors="replace"))


def buried(folder: Path) -> bool:
    """Whether the runtime laid down the loop in this folder."""
    return (state_dir() / "buried" / sha256(str(folder))).is_file()
