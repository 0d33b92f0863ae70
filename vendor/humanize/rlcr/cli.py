"""The loop's commands: which word runs what, and those that are about its owner: resume, adopt, status."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rlcr import amend, ending, hand_gate, notes, registry, rehearsal, repo, setup
from rlcr.command import NoLoop, held, here, move, take
from rlcr.files import Locked
from rlcr.loop import Loop
from rlcr.model import Adopt, Resume, Tamper, sha256
from rlcr.step import Illegal
from rlcr.usage import ALL, USAGE

UNHEARD = 3
"""Exit code where what a command had to say could not be written: a full disk, a closed pipe."""


def main(argv: Sequence[str]) -> int:
    """Run one command; its exit code. Errors are printed in words, on stderr; an answer that nobody takes is 3."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path or a plan may hold what the terminal cannot show
    if argv[:1] == ["drive"]:
        return drive(list(argv[1:]))
    said, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
        code = _run(argv)
    heard = [_tell(stream, text.getvalue()) for stream, text in ((sys.stdout, said), (sys.stderr, wrong))]
    unheard = hand_gate.UNJUDGED if argv[:1] == ["stop-gate"] else UNHEARD
    if argv[:1] == ["setup"]:
        unheard = code  # the loop stands, or does not, whoever has stopped reading
    return code if all(heard) else unheard


def _tell(stream: Any, text: str) -> bool:
    """Write a command's words; False where they cannot be written, and nothing is left to fail again at exit."""
    if stream is None or not text:
        return True
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True


def _run(argv: Sequence[str]) -> int:
    commands: dict[str, Callable[[list[str]], int]] = {
        "setup": setup.main, "stop-gate": hand_gate.main, "cancel": ending.cancel, "resume": resume, "adopt": adopt,
        "status": status, "cancel-session": ending.cancel_session, "stop": ending.stop, "plan": amend.plan,
        "evidence": rehearsal.main,
    }  # fmt: skip
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
        if free.journal.faults or free.state.setup is None:
            fault = f"{free.journal.faults[0].where}: {free.journal.faults[0].what}; " if free.journal.faults else ""
            raise Illegal(f"{fault}the journal cannot be continued: cancel, and set up again")
        free.mend()
        again = _register_again(free)
        free.settle()
        free.sure()
        if free.state.phase == "PARKED":
            move(free, Resume())
            again = True
        word = "resumed" if again else "already running"
        print(f"{word}: {free.state.phase}, round {free.state.round}; {free.folder}")
    return 0


def _register_again(free: Loop) -> bool:
    """The registry entry as the journal wants it; whether there was anything to mend.

    What could not be vouched for is on record from then on.
    """
    session = free.state.session_sha256
    setup.other_worktree(session, free.worktree)
    entry = registry.load(session)
    bad = entry.damaged or entry.loop_dir != str(free.folder) or bool(free.faults(entry)) if entry else True
    bad = bad and not (entry is None and _given(free))
    free.settle()
    made = registry.Entry() if entry is None or bad else registry.load(session) or entry
    where = {"loop_dir": str(free.folder), "worktree": str(free.worktree), "created": free.state.begun.at}
    tip = {"seq": len(free.journal.entries), "sha": free.journal.tip, "sure": True}
    clean = {"stuck_kind": "", "stuck_count": 0, "parked": ""}
    fields: dict[str, Any] = {**where, **tip, **clean}
    registry.save(session, replace(made, **fields))
    _free_others(free, session)
    if bad and free.state.active:
        unvouched(free, "the registry entry did not vouch for the journal; the user resumed all the same")
    return bad or made.stuck_count > 0 or made.parked != ""


def _free_others(free: Loop, owner: str, *former: str) -> None:
    """Take a loop from every session but its owner, and leave each a word."""
    held_by = {name for name, entry in registry.sessions() if entry.loop_dir == str(free.folder)}
    for name in {*held_by, *former} - {owner}:
        if name in held_by or not (registry.load(name) or registry.Entry()).loop_dir:
            registry.remove(name)
        notes.leave(name, free.folder, "was given to another session; this one is free, its Stop was not judged")


def _given(free: Loop) -> bool:
    """Whether the journal's last line gave the loop away, and its giver's registry entry vouches for that line."""
    if free.journal.entries[-1].record["event"] != "adopt":
        return False
    held_by = [entry for _, entry in registry.sessions() if entry.loop_dir == str(free.folder) and not entry.damaged]
    return any(not free.faults(entry) for entry in held_by)


def unvouched(free: Loop, what: str) -> None:
    """Put on record that nothing vouches for the journal; what a reviewer accepted in it does not count any more."""
    free.put(Tamper(what=what, path="registry"), repo.git(free.worktree, "rev-parse", "HEAD").strip())
    free.settle()
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
        # A set-up that died before its files has nothing yet that could be forged.
        begun = free.state.pending != "setup" or (free.folder / "state.md").exists()
        begun = begun and not (entry is None and _given(free))
        free.settle()
        if begun and (entry is None or entry.loop_dir != str(free.folder)):
            unvouched(free, "the registry entry did not vouch for the journal; the loop was adopted all the same")
            entry = None
        free.put(Adopt(session_sha256=new), repo.git(free.worktree, "rev-parse", "HEAD").strip())
        where = registry.Entry(loop_dir=str(free.folder), worktree=str(free.worktree), created=free.state.begun.at)
        registry.save(new, replace(entry or where, seq=len(free.journal.entries), sha=free.journal.tip, sure=True))
        _free_others(free, new, old)
        free.settle()
        free.sure()
        print(f"adopted: {free.folder}")
    return 0


def status(words: list[str]) -> int:
    """One JSON object about the loop of this worktree."""
    take(words, flags=("--json",))
    found = here()
    s, entry = found.state, registry.load(found.state.session_sha256)
    beat = entry or registry.Entry()
    seen = {
        "registered": entry is not None, "fired": beat.fired, "last_fired": beat.last_fired, "asked": beat.asked,
        "last_asked": beat.last_asked, "asked_by": beat.asked_by,
    }  # fmt: skip
    facts = {
        "loop": str(found.folder), "phase": s.phase, "round": s.round, "max": s.begun.max if s.setup else 0,
        "blocks": s.blocks, "tampers": s.tampers, "reason": beat.parked or s.exit_reason, **seen,
        "faults": [f"{f.where}: {f.what}" for f in found.faults(entry)],
    }  # fmt: skip
    print(json.dumps(facts, indent=1, sort_keys=True))
    return 0
