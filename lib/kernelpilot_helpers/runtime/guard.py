"""What a candidate did besides computing: an audit hook and a look at the names it might have replaced."""

from __future__ import annotations

import functools
import json
import os
import socket
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SYSTEM = ("/usr/", "/lib/", "/lib64/", "/bin/", "/opt/")
SPAWN = {"subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn"}
EVENTS_MAX = 50


@functools.cache
def interpreter_prefixes() -> tuple[str, ...]:
    """Where this Python and its packages lie."""
    paths = sysconfig.get_paths()
    found = {sys.prefix, sys.base_prefix, paths["purelib"], paths["platlib"], paths["stdlib"]}
    return tuple(os.path.realpath(p) + os.sep for p in found)


def is_system(path: str) -> bool:
    """A library of the machine or of this Python's packages."""
    if os.sep not in path:
        return True
    return os.path.realpath(path).startswith(SYSTEM + interpreter_prefixes())


class Guard:
    """Collects events of one worker. ``closed`` are directories nobody but their owner may open."""

    def __init__(self, *, closed: Sequence[str], own: Sequence[str], readable: Sequence[str]) -> None:
        self.events: list[list[str]] = []
        self.building = False
        """True while our own compiler run is under way."""
        self.libraries: set[str] = set()
        """Files that were built here and may be loaded."""
        self._closed = tuple(os.path.realpath(p) + os.sep for p in closed)
        self._own = tuple(os.path.realpath(p) + os.sep for p in own)
        self._readable = tuple(os.path.realpath(p) + os.sep for p in readable)
        self._before = snapshot()
        self._pid = str(os.getpid())

    def take(self) -> list[list[str]]:
        """Events since the last call."""
        events, self.events[:] = self.events[:], []
        return events

    def note(self, kind: str, detail: str) -> None:
        """Keep one event (a flood of them says nothing more)."""
        if len(self.events) < EVENTS_MAX and [kind, detail] not in self.events:
            self.events.append([kind, detail])

    def check_names(self) -> None:
        """Report clocks and channel functions that are no longer the ones we know."""
        for name, thing in snapshot().items():
            if self._before[name] is not thing:
                self.note("cheat.patched", f"{name} was replaced")

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        """The audit hook: cheap for events that do not matter."""
        if event == "open":
            self._open(args)
        elif event == "ctypes.dlopen":
            self._dlopen(args)
        elif event in SPAWN:
            if not self.building:
                self.note("cheat.subprocess", event)
        elif event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"):
            self.note("cheat.network", event)

    def _open(self, args: tuple[Any, ...]) -> None:
        path, mode, flags = (*args, None, None, None)[:3]
        if not isinstance(path, str | bytes | os.PathLike):
            return
        text = os.fsdecode(path)
        if text.startswith("/proc/"):
            if text.endswith("/mem") or (text[6:7].isdigit() and text.split("/")[2] != self._pid):
                self.note("cheat.reads_other_arm", f"opened {text}")
            return
        real = os.path.realpath(text)
        if not real.startswith(self._closed) or real.startswith(self._own):
            return
        writes = bool((isinstance(mode, str) and set(mode) & set("wax+")) or ((flags or 0) & 3))
        if real.startswith(self._readable):
            if writes:
                self.note("cheat.writes_source", f"wrote {Path(real).name} in its own source")
        else:
            self.note("cheat.reads_other_arm", f"opened {Path(real).name}")

    def _dlopen(self, args: tuple[Any, ...]) -> None:
        name = args[0] if args else None
        if name is None or not isinstance(name, str | bytes | os.PathLike):
            return
        text = os.fsdecode(name)
        if os.path.realpath(text) not in self.libraries and not is_system(text):
            self.note("cheat.foreign_binary", f"loaded {Path(text).name}")


def snapshot() -> dict[str, Any]:
    """The functions that a measurement rests on."""
    return {
        "time.perf_counter_ns": time.perf_counter_ns,
        "time.perf_counter": time.perf_counter,
        "time.monotonic": time.monotonic,
        "time.monotonic_ns": time.monotonic_ns,
        "time.time": time.time,
        "os.write": os.write,
        "os.read": os.read,
        "json.dumps": json.dumps,
        "json.loads": json.loads,
        "socket.socket": socket.socket,
    }
