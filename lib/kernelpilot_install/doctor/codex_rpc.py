"""A short talk with ``codex app-server``: JSON-RPC without a model, one object a line, over its stdin and stdout.

The protocol is called experimental by Codex, so every caller has a way on when there is no answer. Checked against
codex 0.171.0.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

SECONDS = 20.0
LINE_BYTES_MAX = 16 << 20
ENDS_S = 2.0
QUIET = (
    *("-c", "features.plugins=false", "-c", "features.apps=false"),
    *("-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false"),
)
"""With these a starting Codex asks nobody outside; none of them touches hooks or skills."""
_HELLO = {
    "clientInfo": {"name": "kernelpilot", "title": "KernelPilot", "version": "1"},
    "capabilities": {"experimentalApi": True},
}


class Unanswered(Exception):
    """Codex could not be asked, or did not answer; the message says why in one line."""


class Server:
    """One child and its group, bounded in time and gone when the ``with`` ends."""

    def __init__(self, program: str, *, env: Mapping[str, str], cwd: Path, seconds: float = SECONDS) -> None:
        self._argv, self._env, self._cwd = [program, *QUIET, "app-server"], env, cwd
        self._seconds, self._until = seconds, time.monotonic() + seconds
        self._number, self._buffer = 0, b""

    def __enter__(self) -> Server:
        """Start it and shake hands. Raises Unanswered."""
        try:
            self._child = subprocess.Popen(
                self._argv,
                env=dict(self._env),
                cwd=self._cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as e:
            raise Unanswered(f"{self._argv[0]} cannot be started: {e.strerror or e}") from None
        try:
            self.call("initialize", _HELLO)
            self._send({"method": "initialized"})
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._end()

    def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request. Raises Unanswered for an error, an early end, or no answer in time."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            said = self._next(method)
            if said.get("id") != self._number or "method" in said:
                continue
            if "error" in said:
                error = said["error"]
                words = error.get("message", error) if isinstance(error, dict) else error
                raise Unanswered(f"codex app-server answers {method} with an error: {' '.join(str(words).split())}")
            result = said.get("result")
            if not isinstance(result, dict):
                raise Unanswered(f"codex app-server answers {method} with no object")
            return result

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
            self._child.stdin.flush()
        except OSError:
            raise Unanswered("codex app-server ended at once") from None

    def _next(self, method: str) -> dict[str, Any]:
        """The next object it says; lines that are none are passed over."""
        while True:
            line, found, rest = self._buffer.partition(b"\n")
            if not found:
                self._read(method)
                continue
            self._buffer = rest
            with contextlib.suppress(ValueError, RecursionError):
                value = json.loads(line)
                if isinstance(value, dict):
                    return value

    def _read(self, method: str) -> None:
        assert self._child.stdout is not None
        pipe = self._child.stdout.fileno()
        ready, _, _ = select.select([pipe], [], [], max(0.0, self._until - time.monotonic()))
        if not ready:
            raise Unanswered(f"codex app-server did not answer {method} within {self._seconds:g} s")
        chunk = os.read(pipe, 1 << 16)
        if not chunk:
            raise Unanswered(f"codex app-server ended during {method}")
        self._buffer += chunk
        if len(self._buffer) > LINE_BYTES_MAX:
            raise Unanswered(f"codex app-server answers {method} with more than {LINE_BYTES_MAX} bytes")

    def _end(self) -> None:
        """Let it end by itself for a moment, then end the group."""
        assert self._child.stdin is not None and self._child.stdout is not None
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(max(0.0, min(ENDS_S, self._until - time.monotonic())))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        self._child.stdout.close()
