"""What tensors hold: one random buffer a tensor, and a different window of it for every call."""

from __future__ import annotations

import os
import re
from typing import Any

from .frames import Frame
from .spec import ITEMSIZE, Case, JobError, Tensor

WINDOWS = 65521
"""Distinct windows of one buffer (a prime, so that any step visits each of them before one comes twice)."""
COPIES_MAX = 64
"""Copies of the static tensors, each of them another window of the same buffer."""
GEN = re.compile(r"^(normal|uniform|integers)\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\)$")
LIMITS = {"int8": 127, "uint8": 255, "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**53}


def parse_gen(spec: str) -> tuple[str, float, float]:
    """``normal(mean,sd)``, ``uniform(low,high)`` or ``integers(low,high)`` (high excluded).

    Raises JobError for anything else: a generator that draws one value only would hide a skipped read.
    """
    match = GEN.match(spec.strip())
    if match is None:
        raise JobError(f"generator {spec!r} is not supported: normal(m,s), uniform(a,b), integers(lo,hi)")
    kind, low, high = match[1], float(match[2]), float(match[3])
    spread = high - low if kind != "normal" else high
    if spread <= 0:
        raise JobError(f"generator {spec!r} draws one value only")
    return kind, low, high


def draw(frame: Frame, tensor: Tensor, n: int, regime: str) -> Any:
    """``n`` random elements for ``tensor`` (any dtype, not yet rounded to its own), shaped by ``regime``."""
    if tensor.dtype == "bool":
        return frame.integers(n, 0, 2)
    kind, low, high = parse_gen(tensor.gen)
    if kind == "integers":
        return frame.integers(n, int(low), int(high))
    values = frame.normal(n) * high + low if kind == "normal" else frame.uniform(n) * (high - low) + low
    if not tensor.is_float:
        top = LIMITS[tensor.dtype]
        return frame.xp.clip(frame.xp.round(values), 0 if tensor.dtype == "uint8" else -top, top)
    return values if tensor.role == "static" else shaped(frame, values, regime, tensor.cols)


def shaped(frame: Frame, values: Any, regime: str, cols: int) -> Any:
    """``values`` in one regime of verification.

    gen (as they are), small (x 1e-3), large (x 1e3), heavy_tail (x the square of a normal number) or sparse
    (about nine in ten are zero; 85 % of the rows wholly).
    """
    if regime in ("small", "large"):
        return values * (1e-3 if regime == "small" else 1e3)
    n = len(values)
    if regime == "heavy_tail":
        return values * frame.normal(n) ** 2
    if regime == "sparse":
        rows = frame.uniform(n // cols + 1) < 0.15
        keep = frame.xp.zeros((n // cols + 1, cols), dtype=frame.xp.float32) + rows.reshape(-1, 1)
        return values * keep.reshape(-1)[:n] * (frame.uniform(n) < 0.67)
    return values


class Contents:
    """Random content of one case for one stretch of calls. Call ``k`` reads window ``k`` of every buffer."""

    def __init__(self, frame: Frame, case: Case, regime: str = "gen") -> None:
        self.frame = frame
        self.case = case
        self._buffers: dict[str, Any] = {}
        self._calls, self._copies = 1, 1
        self.restart()
        for tensor in case.inputs:
            windows = COPIES_MAX if tensor.role == "static" else WINDOWS
            n = tensor.span + (windows * self.grain(tensor) // tensor.itemsize if tensor.span else 0)
            buffer = frame.buffer(-(-n * tensor.itemsize // frame.grain) * frame.grain)
            if n:
                values = draw(frame, tensor, n, regime)
                frame.view(buffer, 0, tensor.dtype, (n,), (1,))[:] = frame.cast(values, tensor.dtype)
            self._buffers[tensor.name] = buffer

    def restart(self) -> None:
        """Other windows in another order from here on, over the same buffers."""
        self._start = int.from_bytes(os.urandom(4), "little") % WINDOWS
        self._step = 1 + int.from_bytes(os.urandom(4), "little") % (WINDOWS - 1)

    def rotate(self, calls: int, copies: int) -> None:
        """Blocks have ``calls`` calls from here on, and call ``i`` of a block reads copy ``i % copies`` of the static
        tensors. Copies differ: what is kept of one is no answer for another.
        """
        self._calls, self._copies = calls, copies

    def grain(self, tensor: Tensor) -> int:
        """Bytes from one window of ``tensor`` to the next."""
        return max(tensor.itemsize, self.frame.grain)

    def index(self, k: int) -> int:
        """Which window call ``k`` reads."""
        return (self._start + k * self._step) % WINDOWS

    def buffer(self, tensor: Tensor) -> Any:
        """All windows of ``tensor``, overlapping, as raw bytes."""
        return self._buffers[tensor.name]

    def _at(self, tensor: Tensor, k: int) -> int:
        which = k % self._calls % self._copies if tensor.role == "static" else self.index(k)
        return which * self.grain(tensor)

    def window(self, tensor: Tensor, k: int) -> Any:
        """The bytes of call ``k``, gaps of a strided tensor included: a view in the frame's memory."""
        return self._cut(tensor, self._at(tensor, k))

    def copy(self, tensor: Tensor, which: int) -> Any:
        """The bytes of one copy of a static tensor."""
        return self._cut(tensor, which * self.grain(tensor))

    def _cut(self, tensor: Tensor, at: int) -> Any:
        return self.frame.window(self._buffers[tensor.name], at, at + tensor.span * tensor.itemsize)

    def inputs(self, k: int) -> dict[str, Any]:
        """Pristine inputs of call ``k`` by name, in their storage dtype: views, not to be written."""
        return {t.name: self._view(t, k) for t in self.case.inputs}

    def _view(self, tensor: Tensor, k: int) -> Any:
        buffer = self._buffers[tensor.name]
        return self.frame.view(buffer, self._at(tensor, k), tensor.dtype, tensor.shape, tensor.stride)

    def poke(self, k: int) -> None:
        """Change one element in the middle of every per-call input of call ``k``; the rest stays as it was."""
        for tensor in self.case.by_role("in", "inout"):
            if tensor.numel == 0:
                continue
            at = tuple(n // 2 for n in tensor.shape)
            view = self._view(tensor, k)
            if tensor.dtype == "bool":
                view[at] = not bool(view[at])
            elif tensor.is_float:
                flat = self.frame.f64(view).reshape(-1)
                view[at] = -float(view[at]) - max(float((flat * flat).mean()) ** 0.5, 1e-3)
            else:
                _, low, high = parse_gen(tensor.gen)
                view[at] = int(low) if int(view[at]) != int(low) else int(high) - 1


POISON = {
    "float32": b"\xa5\xa5\xc5\x7f",
    "float64": b"\xa5\xa5\xa5\xa5\xa5\xa5\xfd\x7f",
    "float16": b"\xa5\x7e",
    "bfloat16": b"\xe5\x7f",
    "bool": b"\x01",
}


def patterns(case: Case) -> dict[str, bytes]:
    """What one untouched element of each output holds: a NaN with a payload, or a random byte pattern."""
    return {t.name: POISON.get(t.dtype) or os.urandom(ITEMSIZE[t.dtype]) for t in case.by_role("out")}


def poison(case: Case) -> dict[str, bytes]:
    """What untouched outputs hold, gaps included."""
    held = patterns(case)
    return {t.name: held[t.name] * t.span for t in case.by_role("out")}
