"""JSON lines over a socket pair. Every command carries a fresh nonce; a reply without it is not a reply."""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Sequence
from typing import Any

MAX_FDS = 8
CHUNK = 1 << 16


class Closed(Exception):
    """The other side is gone."""


class TimedOut(Exception):
    """No reply in time."""


PEEK = socket.MSG_DONTWAIT | socket.MSG_PEEK
SPINS = 20_000
"""Polls before sleeping: some ten milliseconds, longer than most blocks."""


class Forged(Exception):
    """Bytes on the wire that no command asked for, or a reply that does not answer the command."""


def pair() -> tuple[socket.socket, socket.socket]:
    """A connected pair of stream sockets, both closed on exec."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


class Caller:
    """The asking side."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._nonce = ""

    def surplus(self) -> bytes:
        """Bytes waiting although nothing was asked; empty when the line is quiet or closed."""
        with contextlib.suppress(BlockingIOError, OSError):
            return self.sock.recv(CHUNK, socket.MSG_DONTWAIT)
        return b""

    def ask(self, command: dict[str, Any], *, timeout: float, fds: Sequence[int] = ()) -> dict[str, Any]:
        """Send one command and read its one reply.

        Raises Closed, TimedOut after ``timeout`` seconds, or Forged.
        """
        self.post(command, fds)
        return self.wait(timeout=timeout)

    def post(self, command: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one command; ``wait`` reads its reply before the next one is sent. Raises Closed or Forged."""
        waiting = self.surplus()
        if waiting:
            raise Forged(f"unasked bytes on the channel: {waiting[:80]!r}")
        self._nonce = os.urandom(8).hex()
        line = json.dumps({**command, "nonce": self._nonce}).encode() + b"\n"
        try:
            if fds:
                sent = socket.send_fds(self.sock, [line], list(fds))
                line = line[sent:]
            self.sock.sendall(line)
        except OSError as fault:
            raise Closed(str(fault)) from fault

    def answered(self, within: float = 0.0) -> bool:
        """Whether the reply to what was posted begins to arrive ``within`` seconds, or never will."""
        return bool(select.select([self.sock], [], [], within)[0])

    def wait(self, *, timeout: float) -> dict[str, Any]:
        """The reply to what was posted. Raises Closed, TimedOut after ``timeout`` seconds, or Forged."""
        return _checked(self._read(time.monotonic() + timeout), self._nonce)

    def _read(self, deadline: float) -> bytes:
        data = b""
        while not data.endswith(b"\n"):
            left = deadline - time.monotonic()
            if not self._ready() and (left <= 0 or not select.select([self.sock], [], [], left)[0]):
                raise TimedOut
            try:
                chunk = self.sock.recv(CHUNK)
            except OSError as fault:
                raise Closed(str(fault)) from fault
            if not chunk:
                raise Closed("end of file")
            data += chunk
        return data

    def _ready(self) -> bool:
        """Spin for a moment: a block takes about as long as this core would take to wake from sleep."""
        for _ in range(SPINS):
            try:
                self.sock.recv(1, PEEK)
            except BlockingIOError:
                continue
            except OSError:
                return True  # the reading below says what is wrong
            return True
        return False


def _checked(data: bytes, nonce: str) -> dict[str, Any]:
    if data.count(b"\n") != 1:
        raise Forged(f"more than one reply: {data[:80]!r}")
    try:
        reply = json.loads(data)
    except ValueError as fault:
        raise Forged(f"a reply that is not JSON: {data[:80]!r}") from fault
    if not isinstance(reply, dict) or reply.pop("nonce", None) != nonce:
        raise Forged("a reply that does not carry the command's nonce")
    return reply


class Answerer:
    """The answering side. Everything it needs is bound here, before any foreign code is imported."""

    def __init__(self, sock: socket.socket) -> None:
        self.fds: list[int] = []
        self._buffer = b""
        self._recv = sock.recvmsg
        self._send = sock.sendall
        self._loads, self._dumps = json.loads, json.dumps
        self._space = socket.CMSG_LEN(MAX_FDS * 4)
        self._array = array.array

    def next(self) -> dict[str, Any] | None:
        """The next command, or None at the end; descriptors that came with it are in ``fds``."""
        self.fds = []
        while b"\n" not in self._buffer:
            data, ancillary, _, _ = self._recv(CHUNK, self._space)
            for _level, _kind, body in ancillary:
                got = self._array("i")
                got.frombytes(body[: len(body) - len(body) % got.itemsize])
                self.fds.extend(got)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        command: dict[str, Any] = self._loads(line)
        return command

    def reply(self, command: dict[str, Any], body: dict[str, Any]) -> None:
        """Answer ``command``."""
        self._send(self._dumps({**body, "nonce": command["nonce"]}).encode() + b"\n")
