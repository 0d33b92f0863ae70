"""The ways to end a loop by hand: cancel it, by worktree or by name, or stop it and keep what it reached."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from rlcr import loop, registry, repo, views
from rlcr.command import NoLoop, held, here, move, take, why
from rlcr.files import replace_file
from rlcr.journal import crash
from rlcr.loop import Loop
from rlcr.model import Cancel, Halt
from rlcr.step import Illegal

NAME = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\d+)?")


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
    if not NAME.fullmatch(name):
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
    with held(found) as free:
        phase = free.state.phase
        if free.journal.faults:
            buried = _bury(free)
        else:
            move(free, Cancel())
    print("CANCELLED_FINALIZE" if phase == "FINALIZE" else "CANCELLED")
    if buried:
        print(buried)
    print(found.folder)
    return 0


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

    The journal is set aside as it is, and last: until then the next cancel does all of this again.
    """
    fault = free.journal.faults[0]
    reason = f"unexpected: {fault.where}: {fault.what}"[:400]
    state = replace(free.state, phase="UNEXPECTED", exit_reason=reason)
    words = views.as_bytes(views.state_text(state)) if state.setup is not None else views.as_bytes(_bare(reason))
    replace_file(free.folder / views.STATE_NAMES["UNEXPECTED"], words)
    crash("bury.state")
    for session, entry in registry.sessions():
        if entry.loop_dir == str(free.folder):
            registry.remove(session)
    crash("bury.registry")
    kept = free.path.with_name(free.path.name + ".broken")
    free.path.rename(kept)
    for name in ("state.md", "finalize-state.md"):
        (free.folder / name).unlink(missing_ok=True)
    return f"UNEXPECTED: {fault.where}: {fault.what}; the broken journal is kept as {kept}"


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
        move(free, Halt(why=reason))
        state = free.state
    print("STOPPED" if state.exit_reason == f"user: {reason}" else f"{state.phase}: it had ended already")
    print(found.folder)
    return 0
