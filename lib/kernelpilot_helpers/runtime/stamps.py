"""The GPU's own timer around every span, in memory that the oracle owns, empties before a block and reads after it.

Three stamps a span: before the flush, after it and what is touched (right before the span's first mark), and right
after its last mark. A span without a flush leaves the first one out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

PER_SPAN = 3
WIDTH = 8
"""Bytes of a stamp: nanoseconds as a 64-bit integer."""
MISSING = -1
GRAIN_NS = 1100
"""The timer may advance in steps of about a microsecond, and not on every multiprocessor at once."""


@dataclass(frozen=True, kw_only=True)
class Stamped:
    """Nanoseconds by span: between the stamps around its marks, and from before the flush to the span."""

    spans: tuple[int, ...]
    flushes: tuple[int, ...]


def nbytes(slots: int) -> int:
    """Room for the stamps of every figure over ``slots`` calls: at most two spans a call, and one more."""
    return WIDTH * PER_SPAN * (2 * slots + 2)


def read(stamps: Sequence[int], spans: int) -> Stamped | str:
    """What the stamps of ``spans`` flushed spans say, or in words why they say nothing."""
    seen = list(stamps[: spans * PER_SPAN])
    missing = spans * PER_SPAN - sum(s > 0 for s in seen)
    if missing:
        return f"{missing} of {spans * PER_SPAN} stamps of the GPU's own timer are missing"
    if any(b < a - GRAIN_NS for a, b in itertools.pairwise(seen)):
        return "stamps of the GPU's own timer run backwards"
    before, opened, closed = (seen[at::PER_SPAN] for at in range(PER_SPAN))
    return Stamped(
        spans=tuple(b - a for a, b in zip(opened, closed, strict=True)),
        flushes=tuple(b - a for a, b in zip(before, opened, strict=True)),
    )
