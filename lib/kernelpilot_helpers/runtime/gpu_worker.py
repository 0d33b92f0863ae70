"""The worker of one arm on a GPU: its own context, its own stream, and calls captured or played.

Everything it needs of the driver is bound before the candidate is imported.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import build, cuda, graphs, inventory, names
from .arena import Layout, Region, layout
from .forge import CACHES
from .frames import CudaFrame, Frame
from .guard import Guard
from .probe import library_calls
from .score import body_of
from .spec import Case, parse_case
from .worker import LOG_CHARS, Loaded

LATE_US = 2000.0
"""Longer than a host takes to submit a call: what does not wait for its stream reads too early."""
Handler = Callable[[dict[str, Any], list[int]], dict[str, Any]]


class GpuLoaded(Loaded):
    """One arm's imported code and the device memory it works on."""

    def __init__(self, spec: dict[str, Any], frame: Frame, guard: Guard) -> None:
        super().__init__(spec, frame, guard)
        self._device: Any = None
        self._case: Case | None = None
        self._plan_of: Layout | None = None
        self._block: Any = None
        self._program: Any = None
        self._record, self._play, self._fault = graphs.record, graphs.play, graphs.CaptureFault
        self._watch_kernels = inventory.watch

    def handlers(self) -> dict[str, Handler]:
        """See Loaded."""
        return {
            **super().handlers(), "open": self.open, "warm": self.warm, "late": self.late, "capture": self.capture,
            "replay": self.replay, "play": self.play, "inventory": self.inventory, "host": self.host,
            "sync": self.sync,
        }  # fmt: skip

    def open(self, _command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Make the context and load our own kernels; nothing foreign is in this process yet."""
        self.stage = "load"
        target = self._spec["build"]
        os.environ.update({name: os.path.join(target, folder) for name, folder in CACHES.items()})  # noqa: PTH118
        device = cuda.open_device()
        self._device, self._synchronize, self._stream = device, device.synchronize, device.stream
        self._persisting, self._reset = device.persisting, device.reset_persisting_l2
        self._reset()
        self._frame = CudaFrame(device, default=False)
        self._witness = self._frame.buffer(16)

        def body(tape: Any) -> None:
            tape.begin()
            tape.stub()
            tape.end()

        self._play(device, body)
        watched = [thing for thing in (device, device.machine, self, self._guard) if thing is not None]
        self._guard.watch(functools.partial(names.snapshot, *watched))
        return {}

    def prepare_build(self, session: build.Session) -> None:
        """See Loaded."""
        session.gpu, session.arch, session.device = True, self._device.facts["arch"], self._device

    def load(self, command: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """See Loaded."""
        with self._guard.compiling, self._stream():
            reply = super().load(command, fds)
        self._synchronize()
        return reply

    def failed(self, text: str) -> dict[str, Any]:
        """The reply to a command during which something raised; a dead context is named and is the end."""
        body: dict[str, Any] = {"error": text[-LOG_CHARS:], "stage": self.stage}
        if self._device is None:
            return body
        try:
            self._synchronize()
        except cuda.CudaError as sticky:
            body.update(error=f"{text[-LOG_CHARS:]}\n{sticky}", fatal=True)
        return body

    def arena(self, command: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Attach the memory whose handle came along and prepare the keyword arguments of every call."""
        self.drop(command, fds)
        self.stage = "prepare"
        self._case = parse_case(command["case"])
        plan = self._plan_of = layout(self._case, command["slots"], command["copies"])
        self._block = self._device.attach(command["handle"], command["nbytes"])
        with self._guard.compiling, self._stream():
            self._calls = self._bind(self._case, plan, self._block.tensor)
        self._synchronize()
        return {"took": self._took}

    def drop(self, _command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Forget the current arena: graph, tensors, then the memory itself."""
        self._forget()
        self._calls = []
        block, self._block = self._block, None
        if block is not None:
            self._unpinned()
            self._synchronize()
            block.close()
        return {}

    def _unpinned(self) -> None:
        """Nothing may be asked to stay in the second-level cache, which the flush is to empty."""
        if told := self._persisting():
            self._guard.note("cheat.l2_persist", told)
        self._reset()

    def _forget(self) -> None:
        program, self._program = self._program, None
        if program is not None:
            program.close()

    def run(self, command: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Call the entry on the listed slots in order and wait for all of it."""
        clock = self._clock
        with self._stream():
            started = clock()
            super().run(command, fds)
            self._synchronize()
            return {"ns": clock() - started}

    def warm(self, command: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The same where the candidate may still compile."""
        with self._guard.compiling:
            reply = self.run(command, fds)
        self._guard.check_names()
        return reply

    def late(self, command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Inputs that arrive late on the stream: a delay, the copies, the call."""
        assert self._plan_of is not None and self._entry is not None
        slots = self._plan_of.slots
        pairs = [
            (self._bytes(to), self._bytes(fro))
            for to, fro in zip(slots[command["slot"]], slots[command["source"]], strict=True)
            if to.tensor.role != "out"
        ]
        with self._stream():
            self._device.delay(LATE_US)
            for to, fro in pairs:
                to.copy_(fro)
            self._entry(**self._calls[command["slot"]])
        self._synchronize()
        return {}

    def _bytes(self, region: Region) -> Any:
        return self._block.tensor[region.data : region.data_end]

    def capture(self, command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Capture the calls; a fault of the capture is an answer like another."""
        self._forget()
        self.stage = "capture"
        self._unpinned()
        try:
            self._program = self._record(self._device, self._body(command), self._marks())
        except self._fault as fault:
            self._synchronize()
            return {"fault": fault.code, "text": fault.text}
        self._guard.check_names()  # the candidate ran inside of it, and what it ran is read off here
        return {"kernels": self._program.kernels, "names": self._program.names}

    def replay(self, command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Run the captured graph and wait for the whole context."""
        times, replay = command.get("times", 1), self._program.replay
        if times == 1:
            return {"spans": replay()}
        return {"spans": [sum(sum(replay()) for _ in range(times))]}

    def play(self, command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """The calls one by one between events."""
        return {"spans": self._play(self._device, self._body(command), self._marks())}

    def _marks(self) -> Any:
        """The memory behind the arena's tensors, for stamps."""
        assert self._plan_of is not None
        return self._block.tensor[self._plan_of.size :]

    def _body(self, command: dict[str, Any]) -> Callable[[Any], None]:
        groups, names, entry = command["groups"], command["hot"], self._entry
        assert entry is not None
        return body_of(
            command["figure"],
            [[functools.partial(entry, **self._calls[slot]) for slot in group] for group in groups],
            [[part for slot in group for part in self._hot(slot, names)] for group in groups],
            [[part for slot in group for part in self._moved(slot)] for group in groups],
            self._witness.zero_,
        )

    def _hot(self, slot: int, names: Sequence[str]) -> Iterator[Any]:
        """Memory of the tensors ``names`` that call ``slot`` reads or writes."""
        return (self._bytes(r) for r in self._regions(slot) if r.tensor.name in names and r.data_end > r.data)

    def _moved(self, slot: int) -> Iterator[Any]:
        """All memory of call ``slot`` in as few pieces as it lies in."""
        assert self._plan_of is not None
        for regions in (self._plan_of.slots[slot], self._static(slot)):
            if regions:
                yield self._block.tensor[regions[0].data : regions[-1].data_end]

    def _static(self, slot: int) -> tuple[Region, ...]:
        assert self._plan_of is not None
        return self._plan_of.static[slot % len(self._plan_of.static)]

    def _regions(self, slot: int) -> tuple[Region, ...]:
        assert self._plan_of is not None
        return self._plan_of.slots[slot] + self._static(slot)

    def probe(self, command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """See Loaded."""
        assert self._entry is not None
        with self._stream():
            ops = library_calls(self._frame, self._entry, self._calls[command["slot"]])
        self._synchronize()
        return {"ops": ops}

    def inventory(self, command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """What one call started on the GPU."""
        entry, kwargs = self._entry, self._calls[command["slot"]]
        assert entry is not None

        def call() -> None:
            with self._stream():
                entry(**kwargs)

        kernels, span = self._watch_kernels(self._device, call)
        return {"kernels": kernels, "span_ns": span}

    def host(self, command: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Time to submit calls: the GPU is idle at first and waited for afterwards, outside of the clock."""
        self._synchronize()
        with self._stream():
            reply = super().run(command, fds)
        self._synchronize()
        return reply

    def sync(self, _command: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """How long the context is still busy."""
        self._guard.check_names()
        clock = self._clock
        started = clock()
        self._synchronize()
        return {"ns": clock() - started}

    def end(self, command: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """See Loaded; says also what compilers of Python kernels left behind."""
        return {**super().end(command, fds), "cached": build.scan_cache()}
