"""One turn of a client in a process group of its own, and the record by which the next driver goes on."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from rlcr import registry
from rlcr.drive_agents import GONE, Agent, Heard
from rlcr.files import read_regular, replace_file
from rlcr.process import mark, same
from rlcr.review.clients import GUARD, environment

GRACE_S = 2.0
"""Seconds between asking the client's group to end and ending it."""
_TICK_S = 0.1
_TAIL = 4096


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a driver leaves for the next one; no verdict follows from any of it."""

    agent: str = ""
    session: str = ""
    """The client's own name of the session; empty before there is one."""
    extra: tuple[str, ...] = ()
    turn: int = 0
    pid: int = 0
    """Process group of the turn that may still run, and ``mark`` of when it began; 0: none."""
    mark: str = ""
    due: int = -1
    """Decisions in the journal when a turn ended well; until there is one more, that end is still to be judged."""


def record_path(owner: str) -> Path:
    """File of the driver that owns a loop, given the SHA-256 of its session id."""
    return registry.state_dir() / "drives" / f"{owner}.json"


def load(owner: str) -> Record | None:
    """The driver's record; None when there is none that can be read."""
    try:
        data = json.loads(read_regular(record_path(owner), 1 << 20) or b"")
        extra = data["extra"]
        if not isinstance(extra, list) or not all(isinstance(word, str) for word in extra):
            return None
        found = Record(**{f.name: data[f.name] for f in fields(Record)} | {"extra": tuple(extra)})
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    typed = all(type(getattr(found, f.name)).__name__ == str(f.type).partition("[")[0] for f in fields(Record))
    return found if typed else None


def save(owner: str, record: Record) -> Record:
    """Write the record; hands it back."""
    text = json.dumps({"format": "humanize.drive", "version": 1, **asdict(record)}, indent=1, sort_keys=True) + "\n"
    replace_file(record_path(owner), text.encode())
    return record


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a turn ended. ``failed`` says why it was no Stop of the worker; ``gone``: the session cannot be resumed."""

    how: Literal["exit", "late", "over"]
    heard: Heard
    seconds: float
    failed: str = ""
    gone: bool = False


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn to be run. ``stem`` plus ``.prompt``, ``.cmd``, ``.out`` and ``.log`` are its files."""

    agent: Agent
    argv: Sequence[str]
    cwd: Path
    stem: Path
    prompt: str
    resumed: bool
    timeout_s: float


Started = Callable[[int, str], None]
"""Told the pid of the client and its mark as soon as it runs."""
Named = Callable[[str], None]
"""Told the name of the client's session as soon as that is heard."""
Over = Callable[[], bool]
"""Whether the loop has ended meanwhile."""


def run(turn: Turn, *, started: Started, named: Named, over: Over) -> Ended:
    """Run one turn to its end, its time-out or the end of the loop; its group is gone when this returns or raises.

    Raises OSError when a file cannot be written; a client that cannot be started is a failed turn.
    """
    begin = time.monotonic()
    out, log, prompt = (_with(turn.stem, suffix) for suffix in (".out", ".log", ".prompt"))
    turn.stem.parent.mkdir(parents=True, exist_ok=True)
    prompt.write_text(turn.prompt, encoding="utf-8", errors="replace")
    command = f"cd {shlex.quote(str(turn.cwd))}\n{shlex.join(turn.argv)} < {shlex.quote(str(prompt))}\n"
    _with(turn.stem, ".cmd").write_text(command, encoding="utf-8", errors="replace")
    env = {name: value for name, value in environment().items() if name != GUARD}  # a worker is no reviewer
    with prompt.open("rb") as stdin, out.open("wb") as stdout, log.open("wb") as stderr:
        try:
            child = subprocess.Popen(
                list(turn.argv), cwd=turn.cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr,
                start_new_session=True,
            )  # fmt: skip
        except OSError as bad:
            return Ended(how="exit", heard=Heard(), seconds=0.0, failed=f"it cannot be started: {bad}")
    try:
        started(child.pid, mark(child.pid))
        how = _watch(child, turn, out, named=named, over=over)
    finally:
        end(child.pid, child)
    heard = _heard(turn.agent, out)
    seconds = time.monotonic() - begin
    if how == "late":
        return Ended(how=how, heard=heard, seconds=seconds, failed=f"it was still at work after {turn.timeout_s:g} s")
    failed = "" if how == "over" else _failure(child.returncode, heard, log)
    gone = bool(failed) and turn.resumed and not heard.session and bool(GONE.search(_tail(log) + _tail(out)))
    return Ended(how=how, heard=heard, seconds=seconds, failed=failed, gone=gone)


def _with(stem: Path, suffix: str) -> Path:
    return stem.with_name(stem.name + suffix)


def _watch(
    child: subprocess.Popen[bytes], turn: Turn, out: Path, *, named: Named, over: Over
) -> Literal["exit", "late", "over"]:
    until, known = time.monotonic() + turn.timeout_s, False
    while child.poll() is None:
        if not known and (session := _heard(turn.agent, out).session):
            known = True
            named(session)
        if over():
            return "over"
        if time.monotonic() >= until:
            return "late"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_TICK_S)
    return "exit"


def _heard(agent: Agent, out: Path) -> Heard:
    with out.open("rb") as lines:
        return agent.hear(lines)


def _failure(code: int, heard: Heard, log: Path) -> str:
    """Why a turn that ended by itself is no Stop; empty when it is one."""
    lines = [line for line in _tail(log).splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith("error")] or lines[-1:] or [""]
    said = " ".join((heard.failed or named[0]).split())[:300]
    if code:
        return f"exit {code}: {said}" if said else f"exit {code}"
    if heard.failed:
        return said
    return "" if heard.session else "it ended without naming its session"


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        return file.read().decode(errors="replace")


def end_left(record: Record) -> bool:
    """End the client that a killed driver left at work; whether there was one."""
    if not same(record.pid, record.mark):
        return False
    end(record.pid)
    return True


def end(pid: int, child: subprocess.Popen[bytes] | None = None) -> None:
    """Ask the group of ``pid`` to end, then end it, and with it whatever its processes had begun outside of it."""
    others = [found for found in _offspring(pid) if _group(found[0]) != pid]
    _send(pid, signal.SIGTERM)
    stop = time.monotonic() + GRACE_S
    while time.monotonic() < stop and _alive(pid, child):
        time.sleep(0.02)
    _send(pid, signal.SIGKILL)
    for other, began in others:
        if mark(other) == began:
            with contextlib.suppress(OSError):
                os.kill(other, signal.SIGKILL)
    if child is not None:
        child.wait()


def _alive(pid: int, child: subprocess.Popen[bytes] | None) -> bool:
    if child is not None:
        child.poll()
    try:
        os.killpg(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, number)


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _offspring(pid: int) -> list[tuple[int, str]]:
    """Descendants of a process with their marks, where the system lists them: a client's shell is its own group."""
    parents: dict[int, list[int]] = {}
    for child, parent in _table():
        parents.setdefault(parent, []).append(child)
    found, todo = [], [pid]
    while todo:
        for child in parents.pop(todo.pop(), []):
            found.append((child, mark(child)))
            todo.append(child)
    return found


def _table() -> Iterator[tuple[int, int]]:
    """Every process and its parent."""
    if Path("/proc/self/stat").exists():
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                yield int(path.parent.name), int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        ps = ["ps", "-A", "-o", "pid=,ppid="]
        for line in subprocess.run(ps, capture_output=True, text=True, timeout=10, check=False).stdout.splitlines():
            pid, parent, *_ = map(int, line.split())
            yield pid, parent
