"""Calls captured into a CUDA graph and replayed, with the spans between event nodes inside the graph.

One body serves capture and eager play:

    def body(tape):
        for group in groups:
            tape.flush()
            tape.begin()
            for slot in group: entry(**calls[slot]); tape.call_done()
            tape.end()
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

from .cuda import Device
from .machine import CaptureEnded, Machine, machine_of
from .shape import Shape
from .stamps import PER_SPAN, WIDTH

CODES = {
    "UNSUPPORTED": ("capture.sync", "it waits for the GPU or reads a result on the host"),
    "INVALIDATED": ("capture.invalid", "something that a capture forbids ended it"),
    "UNJOINED": ("capture.unjoined", "work on a second stream was not joined back"),
    "MERGE": ("capture.invalid", "two captures were mixed"),
    "IMPLICIT": ("capture.legacy_stream", "it uses the default stream, which a capture cannot see"),
    "ISOLATION": ("capture.invalid", "it depends on work outside the capture"),
    "CAPTURED_EVENT": ("capture.sync", "it asks a captured event for its time or state"),
    "WRONG_THREAD": ("capture.invalid", "another thread took part"),
}
"""CUDA_ERROR_STREAM_CAPTURE_<key> to reason code and meaning."""
_NAMED = re.compile(r"STREAM_CAPTURE_([A-Z_]+)|(CAPTURED_EVENT)")
_WORDS = (
    ("legacy stream", "IMPLICIT"),
    ("operation not permitted when stream is capturing", "UNSUPPORTED"),
    ("unjoined", "UNJOINED"),
    ("captured event", "CAPTURED_EVENT"),
    ("previous error during capture", "INVALIDATED"),
    ("dependency created on uncaptured work", "ISOLATION"),
)


OWN = ("kp_touch", "kp_stub", "kp_empty", "kp_stamp")
"""Our own kernels: no part of any call."""


class CaptureFault(Exception):
    """A body that cannot be captured, or a captured one that is not what it seems; ``code`` is a reason code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


def fault_of(error: BaseException) -> CaptureFault:
    """What an exception during a capture means."""
    text = str(error)
    found = _NAMED.search(text)
    key = (found[1] or found[2]) if found else ""
    if key not in CODES:
        key = next((k for words, k in _WORDS if words in text.lower()), "")
    last = text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__
    if isinstance(error, CaptureEnded):
        key = "INVALIDATED"
    if not key:
        return CaptureFault("capture.failed", f"{type(error).__name__}: {last}")
    code, meaning = CODES[key]
    return CaptureFault(code, f"{meaning} ({last})")


class Tape:
    """What a body may do besides calling the entry. One class for capture (``capturing``) and eager play."""

    def __init__(self, machine: Machine, stream: int, *, capturing: bool, marks: Any = None) -> None:
        self.spans: list[tuple[Any, Any]] = []
        self.shares: list[tuple[int, int]] = []
        """Of each span: calls, and nodes of our own among them."""
        self.nodes: list[int] = []
        """Captured: nodes that each call added."""
        self.outside = 0
        """Captured: nodes of our own outside the spans."""
        self.inside = 0
        self.fills = 0
        self._machine = machine
        self._stream = stream
        self._capturing = capturing
        self._stamps = 0 if marks is None else int(marks.data_ptr())
        self._seen = 0
        self._open: Any = None
        self._before = (0, 0)

    @property
    def total(self) -> int:
        """Captured: nodes that we know of."""
        return sum(self.nodes) + self.inside + self.outside + 2 * len(self.spans)

    def _stamp(self, which: int) -> None:
        """The GPU's own time, for the oracle to read: before the flush, before the span, after it."""
        if self._stamps:
            self._machine.stamp(self._stream, self._stamps + WIDTH * (PER_SPAN * len(self.spans) + which))
            self._ours(1)

    def _ours(self, count: int) -> None:
        if self._open is None:
            self.outside += count
        else:
            self.inside += count
        if self._capturing:
            self._seen = self._machine.count(self._stream)

    def flush(self) -> None:
        """Fill the second-level cache with something else."""
        self._stamp(0)
        self._machine.flush(self._stream)
        self.fills += 1
        self._ours(1)

    def touch(self, tensor: Any) -> None:
        """Bring a tensor's memory into the second-level cache."""
        self._machine.touch(self._stream, tensor)
        self._ours(1)

    def stub(self) -> None:
        """One tiny kernel that depends on the one before it."""
        self._machine.launch("kp_stub", self._stream, 1, 32, (self._machine.sink,))
        self._ours(1)

    def empty(self) -> None:
        """One kernel that does nothing: what a launch costs at least."""
        self._machine.launch("kp_empty", self._stream, 1, 32, ())
        self._ours(1)

    def begin(self) -> None:
        """A span begins."""
        self._stamp(1)
        self._before = len(self.nodes), self.inside
        self._open = self._machine.mark(self._stream, capturing=self._capturing)
        if self._capturing:
            self._seen = self._machine.count(self._stream)

    def call_done(self) -> None:
        """One call has been made since the last mark, stub or call."""
        if self._capturing:
            now = self._machine.count(self._stream)
            self.nodes.append(now - self._seen)
            self._seen = now

    def end(self) -> None:
        """The span ends."""
        last = self._machine.mark(self._stream, capturing=self._capturing)
        first, self._open = self._open, None
        calls, ours = self._before
        self.shares.append((len(self.nodes) - calls, self.inside - ours))
        self._stamp(2)
        self.spans.append((first, last))


class Program:
    """A captured body."""

    def __init__(self, machine: Machine, graph: Any, tape: Tape, shape: Shape) -> None:
        self.kernels = shape.kernels
        """Kernel nodes in it, ours included."""
        self.names = tuple(n for n in shape.names if n not in OWN and (n != "memset" or shape.fills > tape.fills))
        """What its calls run, each once (``Shape.names`` without our own); empty where the driver cannot say."""
        self._machine = machine
        self._graph = graph
        self._launch = graph.replay
        self._spans = tape.spans

    def replay(self) -> list[int]:
        """Run it once and wait for the whole context: nanoseconds of each span, in order. Raises CudaError."""
        with self._machine.device.stream():
            self._launch()
        self._machine.device.synchronize()
        return self._machine.elapsed(self._spans)

    def close(self) -> None:
        """Drop graph and events."""
        self._machine.release(self._spans)
        with contextlib.suppress(RuntimeError):
            self._graph.reset()


def record(device: Device, body: Callable[[Tape], None], marks: Any = None) -> Program:
    """Capture ``body`` on the arm's own stream. Raises CaptureFault; a candidate's own exception counts as one.

    ``marks`` is memory for stamps (``stamps.nbytes``), written at each replay.
    """
    machine = machine_of(device)
    graph = machine.new_graph()
    device.synchronize()
    with device.stream() as stream:
        tape = Tape(machine, stream, capturing=True, marks=marks)
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            body(tape)
            device.take_stream_back()
            shape = machine.shape(stream, tape.spans)
            graph.capture_end()
        except BaseException as error:
            device.take_stream_back()
            with contextlib.suppress(BaseException):
                graph.capture_end()
            machine.abandon(stream)
            machine.release(tape.spans)
            raise fault_of(error) from error
    try:
        judge(shape, tape)
    except CaptureFault:
        machine.release(tape.spans)
        raise
    return Program(machine, graph, tape, shape)


def judge(shape: Shape, tape: Tape) -> None:
    """Raises CaptureFault when the captured nodes are not one even piece of work per call, inside the spans."""
    if not sum(tape.nodes):
        raise CaptureFault(
            "capture.empty", "no call left a node: the work is done on the default stream, another one, or the host"
        )
    if len(set(tape.nodes)) > 1:
        low, high = min(tape.nodes), max(tape.nodes)
        text = f"calls of one block captured between {low} and {high} nodes: one call may do the work of others"
        raise CaptureFault("cheat.uneven_calls", text)
    if shape.hosts:
        raise CaptureFault("capture.host_node", f"{shape.hosts} host functions in the graph: work outside the GPU")
    if shape.odd_marks:
        text = f"{shape.odd_marks} marks of the timed spans are not recorded exactly once"
        raise CaptureFault("cheat.outside_window", text)
    if shape.other_marks:
        raise CaptureFault("capture.event_node", f"{shape.other_marks} events of its own are recorded in the graph")
    if shape.flushes is not None and shape.flushes != tape.fills:
        text = f"{shape.flushes} of {tape.fills} flushes of the cache are captured as they were meant"
        raise CaptureFault("cheat.flush", text)
    if shape.outside != tape.outside:
        text = f"{shape.outside - tape.outside} nodes run outside the timed spans"
        raise CaptureFault("cheat.outside_window", text)
    _even(shape, tape)


def _even(shape: Shape, tape: Tape) -> None:
    """The graph's own count of nodes, whatever the tape's says; raises CaptureFault."""
    if shape.total != tape.total:
        text = f"the graph holds {shape.total} nodes, the calls and the measurement account for {tape.total}"
        raise CaptureFault("cheat.uneven_calls", text)
    shares = zip(shape.by_span, tape.shares, strict=True)
    each = {(work - ours) / calls for work, (calls, ours) in shares if calls}
    if len(each) > 1:
        text = f"groups of calls captured between {min(each):g} and {max(each):g} nodes a call"
        raise CaptureFault("cheat.uneven_calls", text)


def play(device: Device, body: Callable[[Tape], None], marks: Any = None) -> list[int]:
    """The same body with real events, call by call: nanoseconds of each span. Raises CudaError."""
    machine = machine_of(device)
    with device.stream() as stream:
        tape = Tape(machine, stream, capturing=False, marks=marks)
        body(tape)
    device.synchronize()
    try:
        return machine.elapsed(tape.spans)
    finally:
        machine.release(tape.spans)
