"""The loop's commands besides set-up: stop gate, cancel, resume, adopt, status."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlcr import loop, registry, repo, setup, stop_hook
from rlcr.files import Locked, locked, read_regular
from rlcr.loop import Loop
from rlcr.model import Adopt, Cancel, Event, Resume, Tamper, sha256
from rlcr.step import Illegal
from rlcr.usage import ALL, USAGE


class NoLoop(LookupError):
    """There is no loop here that is not over."""


def main(argv: Sequence[str]) -> int:
    """Run one command; its exit code. Errors are printed in words, on stderr."""
    commands: dict[str, Callable[[list[str]], int]] = {
        "setup": setup.main, "stop-gate": stop_gate, "cancel": cancel, "resume": resume, "adopt": adopt,
        "status": status,
    }  # fmt: skip
    helps = [word for word in argv if word in ("-h", "--help")]
    if helps and argv[0] in (*USAGE, *helps):
        print(USAGE.get(argv[0], ALL), end="")
        return 0
    if not argv or argv[0] not in commands:
        print(ALL, end="", file=sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path or a plan may hold what the terminal cannot show
    try:
        return commands[argv[0]](list(argv[1:]))
    except NoLoop as error:
        print(f"NO_ACTIVE_LOOP\n{error}")
        return 1
    except (Illegal, Locked, OSError, repo.GitError, ValueError, LookupError, RecursionError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 3


def _take(words: list[str], *valued: str, flags: Sequence[str] = ()) -> dict[str, str]:
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


def here() -> Loop:
    """The loop of the worktree around the current folder. Raises NoLoop, listing those elsewhere."""
    root = repo.toplevel(Path.cwd())
    found = loop.active(root) if root is not None else None
    if found is not None:
        return found
    others = [f"  {entry.worktree}  ({entry.last_outcome or 'no Stop yet'})" for _, entry in registry.sessions()]
    raise NoLoop("no loop is active in this worktree" + ("; loops elsewhere:\n" + "\n".join(others) if others else ""))


@contextlib.contextmanager
def _held(found: Loop) -> Iterator[Loop]:
    """The loop under its lock; a Stop that is being decided is told to end, and leaves no half state."""
    lock = found.folder.parent / loop.LOCK
    try:
        with locked(lock, 0.5):
            yield Loop(found.folder)
        return
    except Locked:
        # Whatever a lease of another hand holds, the lock is waited for all the same.
        with contextlib.suppress(ValueError, TypeError, LookupError, OSError, OverflowError, RecursionError):
            pid = json.loads(read_regular(found.folder / "lease.json", 4096) or b"")["pid"]
            if isinstance(pid, int) and pid > 1:
                os.kill(pid, signal.SIGTERM)
    with locked(lock, 30):
        yield Loop(found.folder)


def _move(held: Loop, event: Event) -> None:
    held.mend()
    held.settle()
    if held.state.active:
        held.put(event, repo.git(held.worktree, "rev-parse", "HEAD", check=False).strip())
        held.settle()
        held.sure()


def cancel(words: list[str]) -> int:
    """End the loop of this worktree: CANCELLED or CANCELLED_FINALIZE 0, FINALIZE_NEEDS_CONFIRM 2, none here 1."""
    given = _take(words, flags=("--force",))
    try:
        found = here()
    except NoLoop:
        if _forget(repo.toplevel(Path.cwd())):
            return 0
        raise
    if found.state.phase == "FINALIZE" and "--force" not in given:
        print("FINALIZE_NEEDS_CONFIRM\nthe loop is about to complete; say --force to end it all the same")
        return 2
    with _held(found) as held:
        phase = held.state.phase
        if held.journal.faults:
            _bury(held)
        else:
            _move(held, Cancel())
    print("CANCELLED_FINALIZE" if phase == "FINALIZE" else "CANCELLED")
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


def _bury(held: Loop) -> None:
    """End a loop whose journal cannot be continued: set it aside as it is, for whoever wants to look."""
    held.path.rename(held.path.with_name(held.path.name + ".broken"))
    for name in ("state.md", "finalize-state.md"):
        if (held.folder / name).exists():
            (held.folder / name).rename(held.folder / "cancel-state.md")
    for session, entry in registry.sessions():
        if entry.loop_dir == str(held.folder):
            registry.remove(session)


def resume(words: list[str]) -> int:
    """Let a parked loop go on."""
    _take(words)
    with _held(here()) as held:
        if held.journal.faults:
            fault = held.journal.faults[0]
            raise Illegal(f"{fault.where}: {fault.what}; the journal cannot be continued: cancel, and set up again")
        held.mend()
        _register_again(held)
        if held.state.phase == "PARKED":
            _move(held, Resume())
        print(f"resumed: {held.state.phase}, round {held.state.round}; {held.folder}")
    return 0


def _register_again(held: Loop) -> None:
    """The registry entry as the journal wants it; what could not be vouched for is on record from then on."""
    session = held.state.session_sha256
    setup.other_worktree(session, held.worktree)
    entry = registry.load(session)
    bad = entry is None or entry.damaged or entry.loop_dir != str(held.folder) or bool(held.faults(entry))
    made = registry.Entry() if entry is None or bad else entry
    where = {"loop_dir": str(held.folder), "worktree": str(held.worktree), "created": held.state.begun.at}
    tip = {"seq": len(held.journal.entries), "sha": held.journal.tip, "sure": True}
    clean = {"stuck_kind": "", "stuck_count": 0, "parked": ""}
    fields: dict[str, Any] = {**where, **tip, **clean}
    registry.save(session, replace(made, **fields))
    if bad:
        what = "the registry entry did not vouch for the journal; the user resumed all the same"
        held.put(Tamper(what=what, path="registry"), repo.git(held.worktree, "rev-parse", "HEAD").strip())
        held.sure()


def adopt(words: list[str]) -> int:
    """Give the loop of this worktree to another session."""
    given = _take(words, "--session-id")
    session = given.get("--session-id", "")
    if not session.strip():
        raise ValueError("adopt needs --session-id ID")
    with _held(here()) as held:
        new, old = sha256(session), held.state.session_sha256
        setup.other_worktree(new, held.worktree)
        entry = registry.load(old)
        if held.faults(entry) or (entry is not None and entry.damaged):
            raise Illegal("the journal or the registry is not what the runtime wrote; see rlcr status")
        held.mend()
        held.settle()
        held.put(Adopt(session_sha256=new), repo.git(held.worktree, "rev-parse", "HEAD").strip())
        where = registry.Entry(loop_dir=str(held.folder), worktree=str(held.worktree), created=held.state.begun.at)
        registry.save(new, replace(entry or where, seq=len(held.journal.entries), sha=held.journal.tip, sure=True))
        if new != old:
            registry.remove(old)
        held.settle()
        held.sure()
        print(f"adopted: {held.folder}")
    return 0


def status(words: list[str]) -> int:
    """One JSON object about the loop of this worktree."""
    _take(words, flags=("--json",))
    found = here()
    s, entry = found.state, registry.load(found.state.session_sha256)
    seen = {"registered": entry is not None, "fired": entry.fired if entry else 0}
    facts = {
        "loop": str(found.folder), "phase": s.phase, "round": s.round, "max": s.begun.max if s.setup else 0,
        "blocks": s.blocks, "tampers": s.tampers, "reason": (entry.parked if entry else "") or s.exit_reason,
        "last_fired": entry.last_fired if entry else "", **seen,
        "faults": [f"{f.where}: {f.what}" for f in found.faults(entry)],
    }  # fmt: skip
    print(json.dumps(facts, indent=1, sort_keys=True))
    return 0


def stop_gate(words: list[str]) -> int:
    """Judge a Stop by hand, where no hook fires: 0 ``ALLOW:``, 10 ``BLOCK:`` and the reason, 20 when it cannot run.

    Without a session id in option or environment it is the loop of the worktree that is judged.
    """
    said: list[dict[str, str] | None] = []
    try:
        given = _take(words, "--session-id", "--transcript-path", "--project-root", flags=("--json",))
        root = Path(given.get("--project-root", ".")).resolve()
        os.chdir(root)
        env = os.environ.get("CLAUDE_CODE_SESSION_ID") or os.environ.get("CODEX_THREAD_ID") or ""
        payload = {"session_id": given.get("--session-id", env), "cwd": str(root), "hook_event_name": "Stop"}
        known = "" if payload["session_id"] else here().state.session_sha256
        if not stop_hook.main(payload, said.append, known):
            raise ValueError("told to end, so this Stop was not judged")
    except NoLoop:
        pass
    except (ValueError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 20
    answer = said[-1] if said else None
    blocked = answer is not None and answer.get("decision") == "block"
    if "--json" in given:
        print(json.dumps(answer or {}))
    elif blocked and answer is not None:
        print(f"BLOCK: {answer['reason']}")
    else:
        print(f"ALLOW: {(answer or {}).get('systemMessage', 'no loop of this session is active')}")
    return 10 if blocked else 0
