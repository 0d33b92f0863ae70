"""The process that runs one arm's code. It owns the candidate and raw ticks; everything else is the oracle's."""

from __future__ import annotations

import gc
import importlib.util
import mmap
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import build
from .arena import Layout, Region, layout
from .frames import Frame
from .guard import Guard
from .probe import library_calls, watched
from .procs import die_with, pin
from .spec import Case, parse_case
from .wire import Answerer

HIGH_FD = 500
LOG_CHARS = 6000


def main(wire: int, log: int, spec: dict[str, Any], frame: Frame, parent: int) -> None:
    """Become the worker of one arm and answer commands until the channel closes."""
    os.setsid()
    die_with(parent)
    private = spec["private"]
    os.chdir(private)
    os.environ.update(HOME=private, TMPDIR=private)
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, old in ((0, null), (1, log), (2, log)):
        os.dup2(old, fd)
    os.close(null)
    os.close(log)
    pin(*spec["cores"])
    import fcntl

    high = fcntl.fcntl(wire, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    os.close(wire)
    gc.disable()
    sys.dont_write_bytecode = True
    sys.path.insert(0, spec["source"])
    guard = Guard(
        closed=spec["closed"], own=[private, spec["build"]], readable=[spec["source"]],
    )  # fmt: skip
    port = Answerer(socket.socket(fileno=high))
    arm = _kind(spec["device"])(spec, frame, guard)
    sys.addaudithook(guard.hook)
    serve(port, arm, guard)


def _kind(device: str) -> type[Loaded]:
    if device == "gpu":
        from .gpu_worker import GpuLoaded

        return GpuLoaded
    if device == "build":
        from .build_worker import BuildOnly

        return BuildOnly
    return Loaded


def serve(port: Answerer, arm: Loaded, guard: Guard) -> None:
    """Answer until the end of the channel; a candidate's exception is a reply, never the end."""
    handlers = arm.handlers()
    guard.watch(lambda: _talk(port, handlers))
    while True:
        command = port.next()
        if command is None:
            return
        arm.stage = "call"
        try:
            body = handlers[command["op"]](command, port.fds)
        except BaseException as fault:  # noqa: BLE001  (a candidate may raise anything, SystemExit too)
            text = str(fault) if isinstance(fault, build.BuildError) else traceback.format_exc()
            body = arm.failed(text)
        arm.tell_library()
        body["events"] = guard.take()
        port.reply(command, body)


def _talk(port: Answerer, handlers: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """What answers the oracle, by name: a method laid over one of the channel's is new in its own table."""
    own = {f"channel.{name}": vars(port).get(name) for name in ("next", "reply")}
    bound = {f"channel.{name}": thing for name, thing in vars(port).items() if callable(thing)}
    return {**own, **bound, **{f"handlers.{name}": thing for name, thing in handlers.items()}}


class Loaded:
    """One arm's imported code and the arenas it works on."""

    def __init__(self, spec: dict[str, Any], frame: Frame, guard: Guard) -> None:
        self.stage = "load"
        self._spec = spec
        self._frame = frame
        self._guard = guard
        self._clock = time.perf_counter_ns
        self._entry: Callable[..., Any] | None = None
        self._prepare: Callable[..., Any] | None = None
        self._plan: Callable[..., Any] | None = None
        self._calls: list[dict[str, Any]] = []
        self._took: dict[str, int] = {}
        """Nanoseconds of prepare and plan on the last arena."""
        self._used: set[str] = set()
        watch = spec["watch"] and getattr(frame, "name", "") == "numpy"
        self._kind = watched(frame.xp, self._used) if watch else None
        """Tensors of every call are of this kind: one call watched among others could be told from them."""

    def handlers(self) -> dict[str, Callable[[dict[str, Any], list[int]], dict[str, Any]]]:
        """What each command does."""
        return {
            "load": self.load, "arena": self.arena, "run": self.run, "probe": self.probe, "end": self.end,
            "drop": self.drop,
        }  # fmt: skip

    def failed(self, text: str) -> dict[str, Any]:
        """The reply to a command during which the candidate raised."""
        return {"error": text[-LOG_CHARS:], "stage": self.stage}

    def tell_library(self) -> None:
        """Report the framework's operations seen since the last command."""
        if self._used:
            self._guard.note("policy.library_call", ", ".join(sorted(self._used)))
            self._used.clear()

    def load(self, _command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Import the candidate, which builds it; answer what was built."""
        self.stage = "build"
        spec = self._spec
        session = build.Session(
            source=Path(spec["source"]), target=Path(spec["build"]), key=spec["build_key"], known=spec["known"],
            during=self._building, admit=self._guard.libraries.add,
        )  # fmt: skip
        self.prepare_build(session)
        build.begin(session)
        file, _, function = spec["entry"].partition(":")
        path = Path(spec["source"]) / file
        loader = importlib.util.spec_from_file_location(path.stem, path)
        assert loader is not None and loader.loader is not None
        module = importlib.util.module_from_spec(loader)
        sys.modules[path.stem] = module
        try:
            loader.loader.exec_module(module)
        except build.BuildError:
            raise
        except BaseException:
            self.stage = "load"
            raise
        self.stage = "load"
        self._entry = getattr(module, function)
        self._prepare = getattr(module, "prepare", None) if "prepare" in spec["stages"] else None
        self._plan = getattr(module, "plan", None) if "plan" in spec["stages"] else None
        self._guard.check_names()
        return {"artifacts": session.artifacts}

    def prepare_build(self, session: build.Session) -> None:
        """What a device adds to a build session."""

    def _building(self, on: bool) -> None:
        self._guard.building = on

    def arena(self, command: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Map the memory that came along and prepare the keyword arguments of every call."""
        self.stage = "prepare"
        case = parse_case(command["case"])
        plan = layout(case, command["slots"])
        memory = mmap.mmap(fds[0], plan.size)
        for fd in fds:
            os.close(fd)
        self._calls = self._bind(case, plan, memory)
        return {"took": self._took}

    def _bind(self, case: Case, plan: Layout, memory: Any) -> list[dict[str, Any]]:
        """Keyword arguments of every call; each copy of the static tensors gets its own state."""
        shared: list[dict[str, Any]] = []
        self._took = {}
        for regions in plan.static:
            static = {r.tensor.name: self._view(memory, r) for r in regions}
            extra = self._state(case, static)
            shared.append({**{name: self._watch(tensor) for name, tensor in static.items()}, **case.scalars, **extra})
        return [
            {**{r.tensor.name: self._watch(self._view(memory, r)) for r in slot}, **shared[i % len(shared)]}
            for i, slot in enumerate(plan.slots)
        ]

    def _watch(self, tensor: Any) -> Any:
        return tensor if self._kind is None else tensor.view(self._kind)

    def _view(self, memory: Any, region: Region) -> Any:
        tensor = region.tensor
        return self._frame.view(memory, region.data, tensor.dtype, tensor.shape, tensor.stride)

    def _state(self, case: Case, static: dict[str, Any]) -> dict[str, Any]:
        if self._prepare is None:
            return {}
        key = {"case_id": case.case_id, "axes": dict(case.axes), "flags": dict(case.flags)}
        started = self._clock()
        state = self._prepare(key, static)
        self._took["prepare"] = self._clock() - started
        if self._plan is not None:
            started = self._clock()
            state = self._plan(state, dict(case.scalars))
            self._took["plan"] = self._clock() - started
        return {"state": state}

    def run(self, command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Call the entry on the listed slots in order; verification and timing share every line of this."""
        entry, clock = self._entry, self._clock
        assert entry is not None
        block = [self._calls[i] for i in command["slots"]]
        started = clock()
        for kwargs in block:
            entry(**kwargs)
        return {"ns": clock() - started}

    def probe(self, command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """One call on watched tensors."""
        assert self._entry is not None
        return {"ops": library_calls(self._frame, self._entry, self._calls[command["slot"]])}

    def drop(self, _command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Forget the current arena."""
        self._calls = []
        return {}

    def end(self, _command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Last look at the names."""
        self._guard.check_names()
        return {}
