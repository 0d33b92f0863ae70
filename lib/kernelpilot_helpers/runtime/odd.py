"""Which calls of a block to look at: those whose outputs are farthest from what another arm made of the same content.

A call drawn by chance finds a candidate that answers one call in twelve from memory once in twelve looks. Comparing
all calls of the block with another arm's is cheap, needs no reference, and says which call is worth one.
"""

from __future__ import annotations

from typing import Any

from .arena import Memory
from .frames import Frame
from .spec import Tensor
from .stats import remote

FACTOR = 4.0
"""A call this many times farther from the other arm than the call that is judged anyway is judged, too. Rounding
alone keeps the largest differences of two calls on content of one distribution closer together than that."""
HOST_ELEMENTS, DEVICE_ELEMENTS = 1 << 20, 1 << 26
"""Elements that one comparison takes at a time: they bound its memory (three arrays of them, of 8 bytes at most)."""


def odd_calls(frame: Frame, mine: Memory, theirs: Memory, judged: int) -> set[int]:
    """Slots of ``mine`` that ask for a judgement, at most one an output, where slot ``judged`` gets one already."""
    found = set()
    for tensor in mine.case.tensors:
        if tensor.role not in ("out", "inout") or not tensor.numel:
            continue
        gaps = distances(frame, tensor, mine.stacked(tensor), theirs.stacked(tensor))
        worst = max(range(len(gaps)), key=gaps.__getitem__)
        if gaps[worst] > FACTOR * gaps[judged]:
            found.add(worst)
    return found


def distances(frame: Frame, tensor: Tensor, mine: Any, theirs: Any) -> list[float]:
    """The largest difference of each call: ``mine`` and ``theirs`` are (calls, *shape), in their storage dtype.

    Infinite where one side has a NaN or an infinity and the other has not the same.
    """
    xp = frame.xp
    kind = "float32" if tensor.is_float and tensor.itemsize <= 4 else "float64"
    step = max((DEVICE_ELEMENTS if remote(frame) else HOST_ELEMENTS) // tensor.numel, 1)
    parts = []
    for at in range(0, len(mine), step):
        a, b = (frame.cast(side[at : at + step], kind).reshape(-1, tensor.numel) for side in (mine, theirs))
        parts.append(xp.amax(_gap(frame, a, b), 1))
    return [float(gap) for gap in xp.concatenate(parts).tolist()]


def _gap(frame: Frame, a: Any, b: Any) -> Any:
    xp = frame.xp
    with frame.calm():
        gap = xp.abs(a - b)
    gap = xp.where((a == b) | (xp.isnan(a) & xp.isnan(b)), xp.zeros_like(gap), gap)
    return xp.where(xp.isnan(gap), xp.full_like(gap, float("inf")), gap)
