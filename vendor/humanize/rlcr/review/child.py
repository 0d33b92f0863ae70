"""One reviewer process: its own group, bounded in time and output, and gone when the call returns."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

STREAM_LIMIT = 4 << 20
"""Bytes of one output stream that are kept; the rest is read and dropped so that the reviewer is not held up."""
GRACE_S = 2.0
"""Seconds between asking the group to end and ending it."""
_JOIN_S = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a child ended and what it printed. ``code`` is negative for a signal; ``cut`` says stdout was too long."""

    how: Literal["exit", "deadline", "terminated"]
    code: int
    out: bytes
    err: bytes
    cut: bool


class _Pump(threading.Thread):
    """Reads a stream to its end, keeping the first ``STREAM_LIMIT`` bytes in memory and, where it can, in a file."""

    def __init__(self, stream: IO[bytes], copy: Path | None) -> None:
        super().__init__(daemon=True)
        self.kept = bytearray()
        self.cut = False
        self._stream = stream
        self._copy = copy

    def run(self) -> None:
        """Drain."""
        with suppress(OSError, ValueError), self._stream:
            while chunk := os.read(self._stream.fileno(), 1 << 16):
                room = STREAM_LIMIT - len(self.kept)
                self.kept += chunk[:room]
                self.cut = self.cut or len(chunk) > room

    def save(self) -> None:
        """Write what was kept; a log that cannot be written costs no review."""
        if self._copy is not None:
            note = b"\n[cut: more was printed]\n" if self.cut else b""
            with suppress(OSError):
                self._copy.write_bytes(bytes(self.kept) + note)


class _Group:
    """The child's process group, which may not exist yet when a signal asks for its end."""

    def __init__(self) -> None:
        self.pid = 0
        self.asked = False

    def send(self, number: int) -> None:
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def alive(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


@contextmanager
def _on_sigterm(group: _Group) -> Iterator[None]:
    """While inside, SIGTERM ends the group and then does what it did before; a default SIGTERM is left to the caller.

    Only the main thread can do this; in another one the group still ends with the call.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Callable[[int, Any], Any] | int | None = signal.getsignal(signal.SIGTERM)

    def handler(number: int, frame: Any) -> None:
        group.asked = True
        group.send(signal.SIGKILL)
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    prompt: Path,
    until: float,
    logs: Path | None = None,
) -> Ended:
    """Run ``argv`` with ``prompt`` as its stdin until it ends or ``until`` (``time.monotonic``) passes.

    The whole group is killed before this returns, also when it exits by an exception. Streams are copied to ``logs``
    plus ``.out`` and ``.log``. Raises OSError when the program cannot be started.
    """
    group = _Group()
    with _on_sigterm(group), prompt.open("rb") as stdin:
        child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        group.pid = child.pid
        assert child.stdout is not None and child.stderr is not None
        out = _Pump(child.stdout, logs and logs.with_name(logs.name + ".out"))
        err = _Pump(child.stderr, logs and logs.with_name(logs.name + ".log"))
        try:
            out.start()
            err.start()
            late = _wait(child, group, until)
        finally:
            _end(child, group, gently=not group.asked)
        for pump in (out, err):
            pump.join(_JOIN_S)
            pump.save()
    how: Literal["exit", "deadline", "terminated"] = "terminated" if group.asked else "deadline" if late else "exit"
    return Ended(how=how, code=child.returncode, out=bytes(out.kept), err=bytes(err.kept), cut=out.cut)


def _wait(child: subprocess.Popen[bytes], group: _Group, until: float) -> bool:
    """Whether ``until`` passed first."""
    while child.poll() is None:
        if group.asked:
            group.send(signal.SIGKILL)
        left = until - time.monotonic()
        if left <= 0:
            return True
        with suppress(subprocess.TimeoutExpired):
            child.wait(min(left, 0.2))
    return False


def _end(child: subprocess.Popen[bytes], group: _Group, *, gently: bool) -> None:
    """End what is left of the group and reap the child."""
    if gently and group.alive():
        group.send(signal.SIGTERM)
        stop = time.monotonic() + GRACE_S
        while time.monotonic() < stop and (child.poll() is None or group.alive()):
            time.sleep(0.02)
    group.send(signal.SIGKILL)
    child.wait()
