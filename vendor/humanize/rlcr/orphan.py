"""A session that the registry does not know, in a folder whose loop names it: an end that is none is not silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlcr import notes, registry, views
from rlcr.files import TooBig, read_regular
from rlcr.journal import NAME
from rlcr.loop import Loop, every
from rlcr.model import TERMINALS
from rlcr.options import CANCEL, RLCR

CAP = 8 << 20
STATES = ("state.md", *views.STATE_NAMES.values())
HOW = "its registry entry was removed by hand, or the loop was set up under another XDG_STATE_HOME or HOME"


def of(session: str, payload: dict[str, Any]) -> tuple[Path, str] | None:
    """Worktree and fault of the loop that names a session (the SHA-256 of its id) and is not over; None for none."""
    cwd = payload.get("cwd")
    where = Path(cwd if isinstance(cwd, str) and cwd.startswith("/") and "\0" not in cwd else Path.cwd())
    for root in (where, *where.parents):
        for folder in every(root):
            what = _fault(Loop(folder), session)
            if what:
                known = f"the registry does not know this session, whose loop is {folder}: {HOW}"
                return root, f"{known}. {what}"
    return None


def _fault(found: Loop, session: str) -> str:
    """What keeps a loop from being over for this session; empty where it is over, or never was its own."""
    state, folder = found.state, found.folder
    if found.journal.faults or not found.path.exists():
        if not _named(folder, session) or _served(folder) or (not found.path.exists() and notes.buried(folder)):
            return ""
        fault = found.journal.faults[0] if found.journal.faults else None
        what = f"{fault.where}: {fault.what}" if fault else f"its {NAME} is gone"
        return f"{what}; the loop cannot go on. To end it: {CANCEL}"
    if state.phase in TERMINALS:
        return ""
    if state.session_sha256 != session:
        # Only a loop that was given away names a session that is not its owner, and then the registry has the owner.
        return (
            f"The loop goes on under no session: {RLCR} resume"
            if _named(folder, session) and not _served(folder)
            else ""
        )
    # A set-up that has not come as far as its files yet is set up again, not judged.
    if state.pending == "setup" and not any((folder / name).exists() for name in STATES):
        return ""
    return f"It stands in {state.phase}, round {state.round}. To go on: {RLCR} resume; to end it: {CANCEL}"


def _served(folder: Path) -> bool:
    """Whether another session has the loop."""
    return any(entry.loop_dir == str(folder) for _, entry in registry.sessions())


def _named(folder: Path, session: str) -> bool:
    """Whether the bytes of a loop name a session, however broken they are."""
    for name in (NAME, f"{NAME}.broken", *STATES):
        try:
            raw = read_regular(folder / name, CAP) or b""
        except TooBig:
            continue
        if session.encode() in raw:
            return True
    return False
