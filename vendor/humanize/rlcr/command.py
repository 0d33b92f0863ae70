"""What every command on a loop shares: its options, the loop that it is about, the lock, one journalled move."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlcr import loop, registry, repo
from rlcr.files import Locked, locked, read_regular
from rlcr.loop import Loop
from rlcr.model import Event
from rlcr.options import RLCR
from rlcr.process import same
from rlcr.step import Illegal

BUSY_S = 5.0
"""Seconds for which a command waits that has no business ending a Stop."""
EMPTY_WORDS = ("text", "why", "reason", "todo", "tbd", "fixme", "none", "na", "xxx", "because", "placeholder", "test")


class NoLoop(LookupError):
    """There is no loop here that is not over."""


def take(words: list[str], *valued: str, flags: Sequence[str] = ()) -> dict[str, str]:
    """Options as a dictionary. Raises ValueError for what is not known."""
    out: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if word in flags:
            out[word] = "yes"
        elif word in valued and words:
            out[word] = words.pop(0)
        else:
            raise ValueError(f"unknown option, or a value is missing: {word}")
    return out


def why(given: dict[str, str]) -> str:
    """The reason that was given, in one line. Raises ValueError where none was, or a placeholder."""
    text = " ".join(given.get("--why", "").split())
    letters = re.sub(r"[\W_]", "", text).lower()
    if not letters or letters in EMPTY_WORDS or re.fullmatch(r"<[^>]*>|\[[^\]]*\]|\{[^}]*\}", text):
        raise ValueError("say why in words that will be understood later: --why TEXT")
    return text[:600]


def here(where: Path | None = None) -> Loop:
    """The loop of the worktree around a folder (the current one). Raises NoLoop, listing those elsewhere."""
    root = repo.toplevel(where or Path.cwd())
    found = loop.active(root) if root is not None else None
    if found is not None:
        return found
    if root is not None and (root / loop.ROOT).is_dir():
        with contextlib.suppress(Locked, OSError), locked(root / loop.ROOT / loop.LOCK, 0.5):
            loop.finish(root)
    raise NoLoop("no loop is active in this worktree" + elsewhere())


def elsewhere() -> str:
    """Half a sentence that lists every loop in the registry; empty where there is none."""
    others = [f"  {entry.worktree}  ({entry.last_outcome or 'no Stop yet'})" for _, entry in registry.sessions()]
    return "; loops elsewhere:\n" + "\n".join(others) if others else ""


@contextlib.contextmanager
def held(found: Loop) -> Iterator[Loop]:
    """The loop under its lock; a Stop that is being decided is told to end, and leaves no half state."""
    lock = found.folder.parent / loop.LOCK
    try:
        with locked(lock, 0.5):
            yield Loop(found.folder)
        return
    except Locked:
        # Whatever a lease of another hand holds, the lock is waited for all the same.
        with contextlib.suppress(ValueError, TypeError, LookupError, OSError, OverflowError, RecursionError):
            lease = json.loads(read_regular(found.folder / "lease.json", 4096) or b"")
            if same(lease["pid"], lease["mark"]):
                os.kill(lease["pid"], signal.SIGTERM)
    with locked(lock, 30):
        yield Loop(found.folder)


@contextlib.contextmanager
def idle(found: Loop) -> Iterator[Loop]:
    """The loop under its lock, sound and with no transition half done. Raises Locked, Illegal, NoLoop.

    A Stop that is being decided is not disturbed: its turn would end without a word.
    """
    try:
        with locked(found.folder.parent / loop.LOCK, BUSY_S):
            free = Loop(found.folder)
            entry = registry.load(free.state.session_sha256)
            faults = free.faults(entry)
            if faults or free.state.setup is None or (entry is not None and entry.damaged):
                what = f"{faults[0].where}: {faults[0].what}" if faults else "the registry entry is damaged"
                raise Illegal(f"{what}; the loop is not what the runtime wrote, see rlcr status")
            if entry is None or entry.loop_dir != str(free.folder):
                what = f"the registry does not vouch for {free.folder}"
                raise Illegal(f"{what}, so its journal is not added to; {RLCR} resume says so on record, and goes on")
            free.mend()
            free.settle()
            if not free.state.active:
                raise NoLoop(f"{free.folder} has just ended: {free.state.exit_reason}")
            yield free
    except Locked:
        raise Locked("a Stop of this loop is being decided; wait until it is, then say this again") from None


def move(free: Loop, event: Event) -> None:
    """Journal an event of a loop that is still active, and carry it out."""
    free.mend()
    free.settle()
    if free.state.active:
        free.put(event, repo.git(free.worktree, "rev-parse", "HEAD", check=False).strip())
        free.settle()
        free.sure()
