"""What a candidate did besides computing: an audit hook and a look at the names it might have replaced."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import socket
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SYSTEM = ("/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/opt/")
SPAWN = {"subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn"}
EVENTS_MAX = 50
TOOLS = {
    "nvcc", "ptxas", "gcc", "g++", "cc", "c++", "clang", "clang++", "ninja", "ld", "as", "cicc", "fatbinary",
    "cudafe++", "nvlink", "ldconfig", "cuobjdump", "nvdisasm", "which", "uname", "file",
}  # fmt: skip
"""What compilers of Python kernels and extensions start; only while the worker says that compiling is expected."""
DECORATION = re.compile(r"^(x86_64|aarch64)-\w+-gnu-|-(\d+(\.\d+)*|blackwell)$")
"""Around a tool's plain name: the target it compiles for, its version."""
RUNS_OTHERS = {"-run", "--run", "-wrapper", "-ccbin", "--compiler-bindir", "-B", "-specs", "-fplugin"}
"""Options by which a tool would start a program that is not one of these."""


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


class Window:
    """A stretch in which compiling is expected; opened by ``with``, also within itself."""

    def __init__(self) -> None:
        self._depth = 0

    def __call__(self) -> Window:
        """Itself, so that it reads as a call."""
        return self

    def __enter__(self) -> Window:
        self._depth += 1
        return self

    def __exit__(self, *_fault: object) -> None:
        self._depth -= 1

    def __bool__(self) -> bool:
        """Whether it is open."""
        return self._depth > 0


class Guard:
    """Collects events of one worker. ``closed`` are directories nobody but their owner may open."""

    def __init__(self, *, closed: Sequence[str], own: Sequence[str], readable: Sequence[str]) -> None:
        self.events: list[list[str]] = []
        self.building = False
        """True while our own compiler run is under way."""
        self.libraries: set[str] = set()
        """Files that were built here and may be loaded."""
        self.compiling = Window()
        """Open while a GPU arm is imported, prepared and warmed: then compilers may run and what they built be loaded;
        outside of it, and never opened on the CPU, both are what they always were."""
        self._compiled = False
        self._tools = tool_dirs()
        self._closed = tuple(os.path.realpath(p) + os.sep for p in closed)
        self._own = tuple(os.path.realpath(p) + os.sep for p in own)
        self._readable = tuple(os.path.realpath(p) + os.sep for p in readable)
        self._known: list[tuple[Callable[[], dict[str, Any]], dict[str, tuple[Any, ...]]]] = []
        self.watch(snapshot)
        self._pid = str(os.getpid())
        self._started = time.time()

    def take(self) -> list[list[str]]:
        """Events since the last call."""
        events, self.events[:] = self.events[:], []
        return events

    def note(self, kind: str, detail: str) -> None:
        """Keep one event (a flood of them says nothing more)."""
        if len(self.events) < EVENTS_MAX and [kind, detail] not in self.events:
            self.events.append([kind, detail])

    def watch(self, take: Callable[[], dict[str, Any]]) -> None:
        """Know by name what ``take`` gives now, for ``check_names`` to compare with what it gives later."""
        self._known.append((take, {name: _identity(thing) for name, thing in take().items()}))

    def check_names(self) -> None:
        """Report clocks and channel functions that are no longer the ones we know, or run other code."""
        for take, before in self._known:
            now = take()
            for name, parts in before.items():
                same = zip(parts, _identity(now.get(name)), strict=True)
                if not all(a is b or a == b for a, b in same):
                    self.note("cheat.patched", f"{name} was replaced")

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        """The audit hook: cheap for events that do not matter."""
        if event == "open":
            self._open(args)
        elif event == "ctypes.dlopen":
            self._dlopen(args)
        elif event in SPAWN:
            if not self.building and not self._tool(event, args):
                self.note("cheat.subprocess", f"{event}: {_program(args)}" if args else event)
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
        if not real.startswith(self._closed) or (real + os.sep).startswith(self._own):
            return
        writes = bool((isinstance(mode, str) and set(mode) & set("wax+")) or ((flags or 0) & 3))
        if real.startswith(self._readable):
            if writes:
                self.note("cheat.writes_source", f"wrote {Path(real).name} in its own source")
        else:
            self.note("cheat.reads_other_arm", f"opened {Path(real).name}")

    def _tool(self, event: str, args: tuple[Any, ...]) -> bool:
        """A known compiler of the machine or of this Python, while compiling is expected."""
        if not self.compiling or event not in ("subprocess.Popen", "os.posix_spawn"):
            return False
        words = [os.fsdecode(w) for w in args[1]] if isinstance(args[1], list | tuple) else [str(args[1])]
        path = os.fsdecode(args[0] or words[0])
        found = path if os.sep in path else shutil.which(path) or ""
        name = os.path.basename(found)  # noqa: PTH119  (called for every process; Path costs more)
        while name != (plain := DECORATION.sub("", name)):
            name = plain
        if name not in TOOLS or not RUNS_OTHERS.isdisjoint(w.partition("=")[0] for w in words[1:]):
            return False
        if not (is_system(found) or os.path.realpath(found).startswith(self._tools)):
            return False
        self._compiled = self._compiled or name not in ("which", "uname", "file", "ldconfig")
        return True

    def _built_here(self, path: str) -> bool:
        """Below the arm's own folders, while compiling is expected: made by a compiler that ran, or there before."""
        return bool(self.compiling) and path.startswith(self._own) and (self._compiled or self._was_there(path))

    def _was_there(self, path: str) -> bool:
        try:
            return os.stat(path).st_mtime < self._started  # noqa: PTH116
        except OSError:
            return False

    def _dlopen(self, args: tuple[Any, ...]) -> None:
        name = args[0] if args else None
        if name is None or not isinstance(name, str | bytes | os.PathLike):
            return
        text = os.fsdecode(name)
        real = os.path.realpath(text)
        if real not in self.libraries and not is_system(text) and not self._built_here(real):
            self.note("cheat.foreign_binary", f"loaded {Path(text).name}")


def _program(args: tuple[Any, ...]) -> str:
    """What was to be started, as far as the event says."""
    first = args[0] or (args[1][0] if len(args) > 1 and isinstance(args[1], list | tuple) and args[1] else "")
    return os.path.basename(os.fsdecode(first)) if isinstance(first, str | bytes | os.PathLike) else "?"  # noqa: PTH119


def tool_dirs() -> tuple[str, ...]:
    """Folders of the CUDA compilers as they are found before any candidate runs."""
    found = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    dirs = [os.path.join(home, part) for home in found if home for part in ("bin", "nvvm")]  # noqa: PTH118
    nvcc = shutil.which("nvcc")
    dirs += [os.path.dirname(os.path.realpath(nvcc))] if nvcc else []  # noqa: PTH120
    return tuple(os.path.realpath(d) + os.sep for d in dirs)


def _identity(thing: Any) -> tuple[Any, ...]:
    """What makes a function what it is: the object, its code and its defaults."""
    inner = getattr(thing, "__func__", thing)
    inner = getattr(inner, "fget", inner)
    return inner, getattr(inner, "__code__", None), getattr(inner, "__defaults__", None)


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
