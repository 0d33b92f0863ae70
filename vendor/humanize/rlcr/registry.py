"""Which session drives which loop: one file per session, named by the hash of its id, outside every worktree."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from rlcr.files import read_regular, replace_file


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One session's loop. ``seq`` and ``sha`` are the journal's last line as we wrote it; ``sure`` once it is there."""

    loop_dir: str = ""
    worktree: str = ""
    created: str = ""
    last_fired: str = ""
    fired: int = 0
    """Stops that a hook brought, ``last_fired`` the last; those judged by hand or by the driver are ``asked``."""
    asked: int = 0
    last_asked: str = ""
    asked_by: str = ""
    """``hand`` or ``drive``."""
    last_outcome: str = ""
    seq: int = 0
    sha: str = ""
    sure: bool = False
    delivered: int = 0
    """Journal line up to which the client has been told, and when (seconds since 1970)."""
    delivered_at: int = 0
    repeated: int = 0
    """Journal line whose answer was given a second time to an idle worker; a third Stop is judged anew."""
    stuck_kind: str = ""
    stuck_count: int = 0
    parked: str = ""
    """Why the hook lets go although the journal cannot say so."""
    damaged: bool = False


def state_dir() -> Path:
    """``${XDG_STATE_HOME:-~/.local/state}/humanize``; a relative one counts as unset, as its standard wants."""
    base = os.environ.get("XDG_STATE_HOME") or ""
    if not base.startswith("/"):
        base = os.path.join(os.environ.get("HOME") or "/", ".local", "state")  # noqa: PTH118
    return Path(base) / "humanize"


def path_of(session: str) -> Path:
    """File of a session, given the SHA-256 of its id."""
    return state_dir() / "sessions" / f"{session}.json"


def load(session: str) -> Entry | None:
    """The session's entry, None when there is none; ``damaged`` when it cannot be read."""
    path = path_of(session)
    if not os.path.lexists(path):
        return None
    try:
        data = json.loads(read_regular(path, 1 << 20) or b"")
        entry = Entry(**{f.name: data[f.name] for f in fields(Entry) if f.name in data})
    except (ValueError, TypeError, RecursionError):
        return Entry(damaged=True)
    for field in fields(Entry):
        if type(getattr(entry, field.name)).__name__ != field.type:
            return Entry(damaged=True)
    return entry


def save(session: str, entry: Entry) -> Entry:
    """Write an entry; hands it back."""
    text = json.dumps(asdict(entry), indent=1, sort_keys=True) + "\n"
    replace_file(path_of(session), text.encode())
    return entry


def pen(session: str, loop_dir: str, seq: int, sha: str) -> None:
    """Note the journal line that is about to be written, where the session has an entry for this very loop."""
    entry = load(session)
    if entry is not None and not entry.damaged and entry.loop_dir == loop_dir:
        save(session, replace(entry, seq=seq, sha=sha, sure=False))


def remove(session: str) -> None:
    """Forget a session."""
    path_of(session).unlink(missing_ok=True)


def sessions() -> Iterator[tuple[str, Entry]]:
    """Every session that has an entry."""
    for path in sorted((state_dir() / "sessions").glob("*.json")):
        entry = load(path.stem)
        if entry is not None:
            yield path.stem, entry
