"""One Stop of a session, from the client's JSON to ours: who owns it, whether it was judged before, what to print."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlcr import forms, notes, orphan, registry, repo, restore
from rlcr.answer import answer, let_go, lost
from rlcr.decide import Terminated, decide, message, papers
from rlcr.files import Locked, locked
from rlcr.journal import crash
from rlcr.loop import LOCK, Loop, utc_now
from rlcr.model import Tamper, sha256
from rlcr.options import HOOK_S, MARGIN_S
from rlcr.step import PATIENCE

TWIN_S = 3
"""Two hooks of one Stop may start this far apart; a second Stop of an idle worker in that time is the same one."""
BY = ("hand", "drive")
"""Who may ask for a Stop to be judged besides the hook, in the payload's ``rlcr_by``."""
Answer = dict[str, str]
Say = Callable[["Answer | None"], None]


def _told(_signal: int, _frame: object) -> None:
    raise Terminated


def main(payload: dict[str, Any], say: Say | None = None, session: str = "") -> bool:
    """Judge one Stop and say what the client must know, once; never raises. False when it was told to end first.

    ``session`` is the hash where no id is known.
    """
    spoken: list[Answer | None] = []

    def once(said: Answer | None) -> None:
        if not spoken:  # what fails after an answer must not add a second one to it
            spoken.append(said)
            (say or show)(said)

    try:
        for told in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(told, _told)
        session = session or sha256(payload["session_id"])
        try:
            judge(session, payload, once)
        except Exception as error:  # noqa: BLE001 (an unhandled one would end the turn in silence)
            once(broken(session, error, _beat(payload)))
    except Terminated:
        return bool(spoken)
    return True


def show(said: Answer | None) -> None:
    """Print an answer as one JSON object; nothing for None."""
    crash("stop.print")
    if said is None:
        return
    try:
        sys.stdout.write(json.dumps(said))
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def judge(session: str, payload: dict[str, Any], say: Say) -> None:
    """Answer a Stop of a session, given the SHA-256 of its id; without a loop there is nothing to say."""
    deadline = time.monotonic() + HOOK_S - MARGIN_S
    entry, beat = registry.load(session), _beat(payload)
    if entry is None:
        _alone(session, payload, say)
        return
    notes.drop(session)
    folder = Path(entry.loop_dir)
    if entry.damaged or not entry.loop_dir or not _owned(folder, session):
        alone = orphan.of(session, payload) if not entry.damaged and not entry.loop_dir else None
        if alone is None and not entry.damaged and not entry.loop_dir and entry.worktree:
            registry.remove(session)  # it was made for a loop that has been gone on with, or laid down, since
            _alone(session, payload, say)
            return
        what = "the registry entry of this session was changed by hand, or its loop is gone"
        say(stuck(session, "registry", alone[1] if alone else what, beat))
        return
    before = _latest(Loop(folder))
    try:
        with locked(folder.parent / LOCK, deadline - time.monotonic() - 30):
            crash("stop.locked")
            try:
                say(_judge(session, folder, before, payload, deadline))
            except Exception as error:  # noqa: BLE001 (while the lock still guards the registry)
                say(broken(session, error, beat))
            _delivered(session)
    except Locked:
        say(stuck(session, "lock", "another Stop of this loop is still being decided, or its lock is held", beat))


def _alone(session: str, payload: dict[str, Any], say: Say) -> None:
    """Answer a session that the registry does not know: a loop of its own that is not over, or a word left for it."""
    found = orphan.of(session, payload)
    if found is not None:
        say(stuck(session, "registry", found[1], {**_beat(payload), "worktree": str(found[0])}))
    elif told := notes.read(session):
        say({"systemMessage": f"RLCR: {told}"})
        notes.drop(session)


def _beat(payload: dict[str, Any]) -> dict[str, Any]:
    """What the registry notes of when a Stop was last judged, and who asked for it."""
    by = payload.get("rlcr_by")
    return {"last_asked": utc_now(), "asked_by": by} if by in BY else {"last_fired": utc_now()}


def _owned(folder: Path, session: str) -> bool:
    """Whether a loop's journal names this session, or can no longer name any."""
    if not (folder / "journal.jsonl").is_file():
        return False
    return Loop(folder).state.session_sha256 in (session, "")


def _latest(loop: Loop) -> int:
    """Line of the last decision."""
    return max((e.seq for e in loop.journal.entries if e.record["event"] == "intent"), default=0)


def _delivered(session: str) -> None:
    crash("stop.delivered")
    entry = registry.load(session)
    if entry is not None and not entry.damaged and entry.sure and entry.delivered != entry.seq:
        registry.save(session, replace(entry, delivered=entry.seq, delivered_at=int(time.time())))


def broken(session: str, error: Exception, beat: dict[str, Any]) -> Answer:
    """A block for a failure of ours."""
    name = type(error).__name__
    what = f"{name}: {error}"[:300]
    try:
        return stuck(session, f"error-{name}", what, beat)
    except Exception as again:  # noqa: BLE001 (there is nobody after this one)
        return let_go(f"{what}; and then {type(again).__name__}: {again}")


def stuck(session: str, kind: str, what: str, beat: dict[str, Any] | None = None) -> Answer:
    """A block that names what is wrong with the loop; at the third such block in a row the turn is let go.

    ``beat`` is what else the registry notes.
    """
    try:
        entry = registry.load(session) or registry.Entry()
        if entry.parked:
            return let_go(entry.parked)
        count = entry.stuck_count + 1  # of whatever kind: two that take turns would hold the session for ever
        parked = f"{what} ({count} failures in a row)" if count >= PATIENCE else ""
        said = "PARKED" if parked else "block"
        marks = {"stuck_kind": kind, "stuck_count": count, "parked": parked, "last_outcome": said, **(beat or {})}
        registry.save(session, replace(entry, damaged=False, **marks))
    except OSError as error:
        return let_go(f"{what}; and its own state cannot be written: {error}")
    return let_go(parked) if parked else lost(what)


def _judge(session: str, folder: Path, before: int, payload: dict[str, Any], deadline: float) -> Answer | None:
    loop = Loop(folder)
    latest = _latest(loop)
    entry = registry.load(session)
    if entry is None:  # the Stop that we waited for ended the loop
        return answer(loop.state, folder) if latest > before else None
    if entry.loop_dir != str(folder):
        return None  # and set another one up
    if entry.parked:
        return let_go(entry.parked)
    faults = loop.faults(entry)
    if faults or loop.state.setup is None:
        what = f"{faults[0].where}: {faults[0].what}" if faults else "it holds no set-up"
        return stuck(session, "journal", f"the loop's journal is not what the runtime wrote. {what}", _beat(payload))
    loop.mend()
    told = entry.delivered >= latest and not loop.state.pending
    loop.settle()
    asked = payload.get("rlcr_by") in BY
    loop.sure(**_beat(payload), **({"asked": entry.asked + 1} if asked else {"fired": entry.fired + 1}))
    if latest > before or not loop.state.active:
        return answer(loop.state, folder)
    if loop.state.phase == "PARKED":
        return let_go(loop.state.exit_reason)
    fresh = entry.repeated < latest
    if _same_stop(loop, payload, told=told, age_s=time.time() - entry.delivered_at if fresh else math.inf):
        loop.sure(repeated=latest)
        return answer(loop.state, folder)
    head = repo.git(loop.worktree, "rev-parse", "HEAD").strip()
    tampers = restore.restore(folder, loop.journal, loop.first_plan())
    if loop.was_torn:
        tampers.append(Tamper(what="journal.jsonl ended in half a line, now set aside", path="journal.jsonl"))
    for tamper in tampers:
        loop.put(tamper, head)
    state = decide(loop, payload, tuple(t.what for t in tampers), deadline)
    loop.settle()
    loop.sure(last_outcome=state.last.outcome if state.last else "", stuck_kind="", stuck_count=0)
    return answer(state, folder)


def _same_stop(loop: Loop, payload: dict[str, Any], *, told: bool, age_s: float) -> bool:
    """Whether this Stop was answered already: its answer was lost on the way, or it is the other hook of the two."""
    last, stop = loop.state.last, loop.state.last_stop
    if last is None or stop is None or last.outcome != "block":
        return False
    twin = 0 <= age_s <= TWIN_S and stop.message_sha256 == message(payload)
    return (twin or not told) and _untouched(loop)


def _untouched(loop: Loop) -> bool:
    """Whether the worker has done nothing since the last decision."""
    state, stop = loop.state, loop.state.last_stop
    if stop is None:
        return False
    facts = repo.look(loop.worktree, state.begun.base_commit)
    if (facts.head, facts.tree) != (stop.head, stop.tree):
        return False
    now = papers(loop)
    if (state.round, state.phase) == (stop.round, stop.phase):
        return sha256((now.final if stop.phase == "FINALIZE" else now.summary) or "") == stop.summary_sha256
    if state.phase == "FINALIZE":
        return now.final == forms.FINAL_FORM
    return now.summary == forms.summary_form(state.round)
