"""The ways to end a loop by hand: cancel it, by worktree or by name, or stop it and keep what it reached."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from rlcr import loop, notes, registry, repo, views
from rlcr.command import NoLoop, held, here, move, take, why
from rlcr.files import replace_file, set_aside
from rlcr.journal import NAME, Fault, crash
from rlcr.loop import Loop
from rlcr.model import Cancel, Halt
from rlcr.step import Illegal


def cancel(words: list[str]) -> int:
    """End the loop of this worktree: CANCELLED or CANCELLED_FINALIZE 0, FINALIZE_NEEDS_CONFIRM 2, none here 1."""
    given = take(words, flags=("--force",))
    try:
        found = here()
    except NoLoop:
        if _forget(repo.toplevel(Path.cwd())):
            return 0
        raise
    return _cancel(found, force="--force" in given)


def cancel_session(words: list[str]) -> int:
    """The same for the loop whose folder has the given name; exit codes as ``cancel``."""
    given = take(words, "--session-id", "--project", flags=("--force",))
    name = given.get("--session-id", "")
    if not loop.NAME.fullmatch(name):
        raise ValueError("--session-id NAME is needed, the name of a folder below .humanize/rlcr")
    root = repo.toplevel(Path(given.get("--project", ".")).resolve())
    if root is None:
        raise NoLoop(f"{given.get('--project', 'this folder')} is in no git repository")
    found = loop.active(root)
    if found is None or found.folder.name != name:
        raise NoLoop(f"no loop {name} is active in {root}" + (f"; {found.folder.name} is" if found else ""))
    return _cancel(found, force="--force" in given)


def _cancel(found: Loop, *, force: bool) -> int:
    if found.state.phase == "FINALIZE" and not force:
        print("FINALIZE_NEEDS_CONFIRM\nthe loop is about to complete; say --force to end it all the same")
        return 2
    buried = ""
    for path in (found.folder.parent / loop.LOCK, found.path.with_name(f"{NAME}.torn")):
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            set_aside(path)  # what stands in the place of our own files must not keep a loop from its end
    with held(found) as free:
        phase = free.state.phase
        if free.journal.faults or not free.path.exists():
            buried = _bury(free)
        else:
            _ended(free, Cancel())
    print("CANCELLED_FINALIZE" if phase == "FINALIZE" else "CANCELLED")
    if buried:
        print(buried)
    print(found.folder)
    return 0


def _ended(free: Loop, event: Cancel | Halt) -> None:
    """Journal the end, and leave a word for the session, which would else go on in silence."""
    active = free.state.active
    move(free, event)
    _freed(free)
    if active and free.state.phase == ("CANCEL" if isinstance(event, Cancel) else "STOP"):
        word = "was cancelled" if isinstance(event, Cancel) else f"was stopped: {event.why}"
        notes.leave(free.state.session_sha256, free.folder, f"{word}; this Stop was not judged")


def _freed(free: Loop) -> list[str]:
    """Sessions that the registry held to this loop, or to a loop of its worktree that it did not know."""
    held_by = [
        session for session, entry in registry.sessions()
        if entry.loop_dir == str(free.folder) or (not entry.loop_dir and entry.worktree == str(free.worktree))
    ]  # fmt: skip
    for session in held_by:
        registry.remove(session)
    return held_by


def _forget(root: Path | None) -> bool:
    """Drop registry entries of loops of this worktree whose journal is gone; whether there were any."""
    gone = [
        (session, entry.loop_dir) for session, entry in registry.sessions()
        if root is not None and entry.worktree == str(root) and not (Path(entry.loop_dir) / "journal.jsonl").exists()
    ]  # fmt: skip
    for session, _ in gone:
        registry.remove(session)
    if gone:
        print("\n".join(["CANCELLED", *(folder for _, folder in gone)]))
    return bool(gone)


def _bury(free: Loop) -> str:
    """Lay a loop down whose journal cannot be continued, as UNEXPECTED; the line that says so.

    The journal is set aside as it is, and last: until then the next cancel does all of this again. A link in the place
    of the loop's folder is set aside itself, and a folder made in its stead.
    """
    fault = free.journal.faults[0] if free.journal.faults else Fault(where=NAME, what="the journal is gone")
    reason = f"unexpected: {fault.where}: {fault.what}"[:400]
    state = replace(free.state, phase="UNEXPECTED", exit_reason=reason)
    words = views.as_bytes(views.state_text(state)) if state.setup is not None else views.as_bytes(_bare(reason))
    kept = free.path.with_name(f"{NAME}.broken")
    if free.folder.is_symlink():
        kept = free.folder.with_name(f".{free.folder.name}.link")
        free.folder.rename(kept)
        free.folder.mkdir()
    replace_file(free.folder / views.STATE_NAMES["UNEXPECTED"], words)
    notes.bury(free.folder)
    crash("bury.state")
    for session in _freed(free):
        notes.leave(session, free.folder, f"was laid down, {reason}")
    crash("bury.registry")
    if os.path.lexists(free.path):
        free.path.rename(kept)
    for name in ("state.md", "finalize-state.md"):
        (free.folder / name).unlink(missing_ok=True)
    is_kept = f"; what was broken is kept as {kept}" if os.path.lexists(kept) else ""
    return f"UNEXPECTED: {fault.where}: {fault.what}{is_kept}"


def _bare(reason: str) -> str:
    """The state file of a loop of which not even the set-up can be read."""
    return f"---\nphase: UNEXPECTED\nexit_reason: {json.dumps(reason)}\n---\n"


def stop(words: list[str]) -> int:
    """End the loop of this worktree as STOP, with the user's reason: 0, none here 1."""
    reason = why(take(words, "--why"))
    found = here()
    with held(found) as free:
        if free.journal.faults:
            fault = free.journal.faults[0]
            raise Illegal(f"{fault.where}: {fault.what}; the journal cannot be continued: cancel it")
        _ended(free, Halt(why=reason))
        state = free.state
    print("STOPPED" if state.exit_reason == f"user: {reason}" else f"{state.phase}: it had ended already")
    print(found.folder)
    return 0
