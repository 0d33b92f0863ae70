"""The journal: the one authority over a loop. Append-only JSON Lines, each line holding the hash of the one before."""

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlcr import model
from rlcr.files import NotRegular, open_regular, set_aside
from rlcr.model import Decide, Event, State, Stop, sha256
from rlcr.step import Illegal, step

NAME = "journal.jsonl"
HEADER = b'{"format":"humanize.journal","version":1}'


def crash(point: str) -> None:
    """Die here when ``KP_CRASH_AT`` names this point: the tests' way to prove that any moment may be the last."""
    if os.environ.get("KP_CRASH_AT") == point:
        os.kill(os.getpid(), signal.SIGKILL)


def encode(record: object) -> bytes:
    """One compact JSON line without its newline; NaN and lone surrogates are refused or escaped, never written."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with a journal, and where."""

    where: str
    what: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line as replayed: the record, and the state after it."""

    seq: int
    record: dict[str, Any]
    state: State
    sha: str


@dataclass(frozen=True, kw_only=True)
class Journal:
    """A journal as read. With faults, ``state`` is what stood before the first of them."""

    entries: tuple[Entry, ...] = ()
    faults: tuple[Fault, ...] = ()
    torn: bytes = b""
    tip: str = sha256(HEADER)

    @property
    def state(self) -> State:
        """The state after the last good line."""
        return self.entries[-1].state if self.entries else State()


def replay(lines: Sequence[bytes]) -> tuple[State, tuple[Fault, ...]]:
    """State and faults of a journal's lines (without newlines), header first."""
    read = fold(lines)
    return read.state, read.faults


def fold(lines: Sequence[bytes], torn: bytes = b"") -> Journal:
    """Replay every line through ``step``; reading ends at the first fault."""
    if not lines:
        return Journal(torn=torn, faults=() if torn else (Fault(where=NAME, what="the journal is empty"),))
    if lines[0] != HEADER:
        return Journal(torn=torn, faults=(Fault(where=f"{NAME}:1", what="not a journal of version 1"),))
    entries: list[Entry] = []
    state, previous = State(), sha256(HEADER)
    for number, raw in enumerate(lines[1:], start=1):
        try:
            record = json.loads(raw)
            state = _apply(state, record, number, previous)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
            fault = Fault(where=f"{NAME}:{number + 1}", what=f"{error}"[:300])
            return Journal(entries=tuple(entries), faults=(fault,), torn=torn, tip=previous)
        previous = sha256(raw)
        entries.append(Entry(seq=number, record=record, state=state, sha=previous))
    return Journal(entries=tuple(entries), torn=torn, tip=previous)


def _apply(state: State, record: dict[str, Any], number: int, previous: str) -> State:
    if record["seq"] != number or record["prev"] != previous:
        raise Illegal("the hash chain is broken: a line was edited, added or cut")
    event = event_of(record)
    new, effects = step(state, event)
    if isinstance(event, Stop):
        decided = effects[0]
        if not isinstance(decided, Decide) or decided.outcome != record["data"]["outcome"]:
            raise Illegal("the outcome does not follow from its cause")
    if (record["phase"], record["round"]) != (new.phase, new.round):
        raise Illegal("phase or round does not follow from the line's cause")
    return new


def event_of(record: dict[str, Any]) -> Event:
    """The event that a line holds. Raises KeyError or TypeError when it holds none."""
    kind, data = record["event"], record["data"]
    if kind == "intent":
        data = {**data["cause"], "verdict": data["verdict"], "at": record["at"]}
        kind = "stop"
    elif kind == "setup":
        data = {**data, "at": record["at"]}
    event: Event = model.build(model.KINDS[kind], data)
    return event


def data_of(event: Event, after: State) -> tuple[str, dict[str, Any]]:
    """Kind and data of the line that records an event."""
    data = model.plain(event)
    data.pop("at", None)
    if not isinstance(event, Stop):
        return next(kind for kind, cls in model.KINDS.items() if cls is type(event)), data
    verdict = data.pop("verdict")
    decided = after.last
    if decided is None:
        raise Illegal("a Stop without a decision")
    gate = None
    if event.checks or event.problems:
        keys = [p.key for p in event.problems] + [p.key for c in event.checks for p in c.problems]
        gate = {
            "pass": not event.problems and event.failure is None and all(c.passed for c in event.checks),
            "done": bool(event.checks) and all(c.met for c in event.checks),
            "findings": keys[:200],
            "exit": max((c.exit for c in event.checks), default=0),
            "seconds": round(sum(c.seconds for c in event.checks), 3),
            "stdout_sha256": event.checks[0].stdout_sha256 if event.checks else "",
        }
    to = {"phase": after.phase, "round": after.round}
    return "intent", {
        "id": after.pending, "cause": {"kind": "stop", **data}, "outcome": decided.outcome, "gate": gate,
        "reason": decided.headline, "verdict": verdict, "to": to,
    }  # fmt: skip


def read(path: Path) -> Journal:
    """Replay a journal from disk; an absent file is a fault, a torn last line is handed back in ``torn``."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return Journal(faults=(Fault(where=str(path), what="no regular file"),))
    try:
        blob = path.read_bytes()
    except OSError as error:
        return Journal(faults=(Fault(where=str(path), what=f"unreadable: {error.strerror}"),))
    return _folded(blob)


@functools.lru_cache(maxsize=2)
def _folded(blob: bytes) -> Journal:
    """A journal's bytes replayed; one Stop looks at the same ones before and after it has the lock."""
    body, _, torn = blob.rpartition(b"\n")
    return fold(body.split(b"\n") if body else [], torn)


Pen = Callable[[int, str], None]
"""Called with sequence number and hash of a line just before it is written."""


def append(path: Path, journal: Journal, event: Event, *, at: str, head: str, pen: Pen | None = None) -> Journal:
    """Write one event as one fsynced line; the journal with it. Raises Illegal, or OSError when the disk refuses."""
    if isinstance(event, Stop) and journal.state.phase == "PARKED":
        raise Illegal("a parked loop decides nothing")
    if isinstance(event, (Stop, model.Setup)):
        event = replace(event, at=at)
    state, _ = step(journal.state, event)
    kind, data = data_of(event, state)
    seq = len(journal.entries) + 1
    record = {
        "at": at, "data": data, "event": kind, "head": head, "phase": state.phase, "prev": journal.tip,
        "round": state.round, "seq": seq,
    }  # fmt: skip
    line = encode(record)
    if pen is not None:
        pen(seq, sha256(line))
    crash(f"append.{kind}.before")
    start = b"" if journal.entries else HEADER + b"\n"
    _write(path, start + line + b"\n", kind)
    crash(f"append.{kind}.after")
    # What is remembered is what a reader of the bytes will see.
    parsed = json.loads(line)
    entry = Entry(seq=seq, record=parsed, state=_apply(journal.state, parsed, seq, journal.tip), sha=sha256(line))
    return replace(journal, entries=(*journal.entries, entry), tip=entry.sha)


def _write(path: Path, data: bytes, kind: str) -> None:
    handle = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        if os.environ.get("KP_CRASH_AT") == f"append.{kind}.torn":
            os.write(handle, data[: len(data) // 2])
            crash(f"append.{kind}.torn")
        if os.write(handle, data) != len(data):
            raise OSError("short write to the journal")
        os.fsync(handle)
    finally:
        os.close(handle)


def mend_tail(path: Path, journal: Journal) -> Journal:
    """Move a torn last line to ``journal.jsonl.torn``; what it may have said is not guessed."""
    if not journal.torn:
        return journal
    aside, how = path.with_name(NAME + ".torn"), os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        handle = open_regular(aside, how)
    except NotRegular:  # of another hand: it holds up neither a Stop nor a cancel
        set_aside(aside)
        handle = open_regular(aside, how)
    with os.fdopen(handle, "ab") as file:
        file.write(journal.torn + b"\n")
        file.flush()
        os.fsync(file.fileno())
    with os.fdopen(open_regular(path, os.O_RDWR), "r+b") as file:
        file.truncate(os.fstat(file.fileno()).st_size - len(journal.torn))
        os.fsync(file.fileno())
    return replace(journal, torn=b"")
