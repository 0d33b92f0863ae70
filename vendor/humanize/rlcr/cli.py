"""The loop's commands: which word runs what, and those that are about its owner: resume, adopt, status, stop gate."""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlcr import amend, ending, registry, rehearsal, repo, setup, stop_hook
from rlcr.command import NoLoop, held, here, move, take
from rlcr.files import Locked
from rlcr.loop import Loop
from rlcr.model import Adopt, Resume, Tamper, sha256
from rlcr.step import Illegal
from rlcr.usage import ALL, USAGE

__all__ = ["NoLoop", "adopt", "drive", "here", "main", "resume", "status", "stop_gate"]


def main(argv: Sequence[str]) -> int:
    """Run one command; its exit code. Errors are printed in words, on stderr."""
    commands: dict[str, Callable[[list[str]], int]] = {
        "setup": setup.main, "stop-gate": stop_gate, "cancel": ending.cancel, "resume": resume, "adopt": adopt,
        "status": status, "cancel-session": ending.cancel_session, "stop": ending.stop, "plan": amend.plan,
        "evidence": rehearsal.main,
    }  # fmt: skip
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path or a plan may hold what the terminal cannot show
    if argv[:1] == ["drive"]:
        return drive(list(argv[1:]))
    helps = [word for word in argv if word in ("-h", "--help")]
    if helps and argv[0] in (*USAGE, *helps):
        print(USAGE.get(argv[0], ALL), end="")
        return 0
    if not argv or argv[0] not in commands:
        print(ALL, end="", file=sys.stderr)
        return 2
    try:
        return commands[argv[0]](list(argv[1:]))
    except NoLoop as error:
        print(f"NO_ACTIVE_LOOP\n{error}")
        return 1
    except (Illegal, Locked, OSError, repo.GitError, ValueError, LookupError, RecursionError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def drive(words: list[str]) -> int:
    """Hand over to the outside driver, which is loaded only for this; 3 where this copy has none."""
    try:
        driver = importlib.import_module("rlcr.drive")
    except ModuleNotFoundError as error:
        print(f"Error: the driver is missing from this copy: {error}", file=sys.stderr)
        return 3
    code: int = driver.main(words)
    return code


def resume(words: list[str]) -> int:
    """Let a parked loop go on."""
    take(words)
    with held(here()) as free:
        if free.journal.faults:
            fault = free.journal.faults[0]
            raise Illegal(f"{fault.where}: {fault.what}; the journal cannot be continued: cancel, and set up again")
        free.mend()
        _register_again(free)
        free.settle()
        free.sure()
        if free.state.phase == "PARKED":
            move(free, Resume())
        print(f"resumed: {free.state.phase}, round {free.state.round}; {free.folder}")
    return 0


def _register_again(free: Loop) -> None:
    """The registry entry as the journal wants it; what could not be vouched for is on record from then on."""
    session = free.state.session_sha256
    setup.other_worktree(session, free.worktree)
    entry = registry.load(session)
    bad = entry is None or entry.damaged or entry.loop_dir != str(free.folder) or bool(free.faults(entry))
    made = registry.Entry() if entry is None or bad else entry
    where = {"loop_dir": str(free.folder), "worktree": str(free.worktree), "created": free.state.begun.at}
    tip = {"seq": len(free.journal.entries), "sha": free.journal.tip, "sure": True}
    clean = {"stuck_kind": "", "stuck_count": 0, "parked": ""}
    fields: dict[str, Any] = {**where, **tip, **clean}
    registry.save(session, replace(made, **fields))
    if bad:
        what = "the registry entry did not vouch for the journal; the user resumed all the same"
        free.put(Tamper(what=what, path="registry"), repo.git(free.worktree, "rev-parse", "HEAD").strip())
        free.sure()


def adopt(words: list[str]) -> int:
    """Give the loop of this worktree to another session."""
    given = take(words, "--session-id")
    session = given.get("--session-id", "")
    if not session.strip():
        raise ValueError("adopt needs --session-id ID")
    with held(here()) as free:
        new, old = sha256(session), free.state.session_sha256
        setup.other_worktree(new, free.worktree)
        entry = registry.load(old)
        if free.faults(entry) or (entry is not None and entry.damaged):
            raise Illegal("the journal or the registry is not what the runtime wrote; see rlcr status")
        free.mend()
        free.settle()
        free.put(Adopt(session_sha256=new), repo.git(free.worktree, "rev-parse", "HEAD").strip())
        where = registry.Entry(loop_dir=str(free.folder), worktree=str(free.worktree), created=free.state.begun.at)
        registry.save(new, replace(entry or where, seq=len(free.journal.entries), sha=free.journal.tip, sure=True))
        if new != old:
            registry.remove(old)
        free.settle()
        free.sure()
        print(f"adopted: {free.folder}")
    return 0


def status(words: list[str]) -> int:
    """One JSON object about the loop of this worktree."""
    take(words, flags=("--json",))
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
        given = take(words, "--session-id", "--transcript-path", "--project-root", flags=("--json",))
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
