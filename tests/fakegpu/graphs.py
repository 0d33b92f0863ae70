"""The stand-in for runtime/graphs.py: a captured body is the body, and a replay runs it with the host's clock."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from .cuda import Device
from .stamps import PER_SPAN, WIDTH  # type: ignore[import-not-found]

FLUSH_NS = 20_000


class CaptureFault(Exception):
    """A body that cannot be captured. A candidate says so by raising RuntimeError('capture: code: text')."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


class Tape:
    """Marks and stamps are readings of the clock."""

    def __init__(self, clock: Callable[[], int], marks: Any = None) -> None:
        self.spans: list[tuple[int, int]] = []
        self.calls = 0
        self._clock = clock
        self._open = 0
        self._stamps = 0 if marks is None else int(marks.data_ptr())

    def _stamp(self, which: int) -> None:
        if self._stamps:
            at = self._stamps + WIDTH * (PER_SPAN * len(self.spans) + which)
            ctypes.c_int64.from_address(at).value = self._clock()

    def flush(self) -> None:
        """No cache to fill; it takes a moment all the same, so that a short one can be told."""
        self._stamp(0)
        until = self._clock() + FLUSH_NS
        while self._clock() < until:
            pass

    def touch(self, tensor: Any) -> None:
        """No cache to fill."""

    def stub(self) -> None:
        """No stream to depend on."""

    def empty(self) -> None:
        """Nothing at all."""

    def begin(self) -> None:
        """A span begins."""
        self._stamp(1)
        self._open = self._clock()

    def call_done(self) -> None:
        """One call was made."""
        self.calls += 1

    def end(self) -> None:
        """The span ends."""
        last = self._clock()
        self._stamp(2)
        self.spans.append((self._open, last))


class Program:
    """A body to run again."""

    def __init__(self, body: Callable[[Tape], None], clock: Callable[[], int], marks: Any = None) -> None:
        self.kernels = 1
        self.names: tuple[str, ...] = ()
        self._body = body
        self._clock = clock
        self._marks = marks

    def replay(self) -> list[int]:
        """Nanoseconds of each span."""
        tape = Tape(self._clock, self._marks)
        self._body(tape)
        return [b - a for a, b in tape.spans]

    def close(self) -> None:
        """Nothing is held."""


def record(device: Device, body: Callable[[Tape], None], marks: Any = None) -> Program:
    """The body as a program. Raises CaptureFault for a body that makes no call or raises."""
    clock = time.perf_counter_ns
    tape = Tape(clock)
    try:
        body(tape)
    except RuntimeError as error:
        head, _, rest = str(error).partition(": ")
        code, _, text = rest.partition(": ")
        raise CaptureFault(*((code, text) if head == "capture" else ("capture.failed", str(error)))) from error
    if not tape.calls:
        raise CaptureFault("capture.empty", "no call was made")
    return Program(body, clock, marks)


def play(device: Device, body: Callable[[Tape], None], marks: Any = None) -> list[int]:
    """The same without a capture."""
    return Program(body, time.perf_counter_ns, marks).replay()
