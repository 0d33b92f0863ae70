"""Conversions and printing of ratios and times. One stored unit per quantity: ratios are fractions, times are us."""

from __future__ import annotations

import math


def percent(ratio: float, *, digits: int = 1) -> str:
    """A speed-up ratio as a signed percentage.

    >>> percent(1.1234)
    '+12.3 %'
    >>> percent(0.97)
    '-3.0 %'
    >>> percent(0.99999)
    '+0.0 %'
    """
    # + 0.0 turns the -0.0 that rounding leaves into 0.0.
    return f"{round((ratio - 1.0) * 100, digits) + 0.0:+.{digits}f} %"


def times(ratio: float) -> str:
    """A speed-up ratio as people say it.

    >>> times(2.5)
    '2.50x'
    """
    return f"{ratio:.2f}x"


def micros(value: float) -> str:
    """Microseconds with a unit that suits their size.

    >>> micros(12.345)
    '12.3 us'
    >>> micros(45678.0)
    '45.68 ms'
    """
    if not math.isfinite(value):
        return "n/a"
    return f"{value / 1000:.2f} ms" if value >= 10_000 else f"{value:.1f} us"


def size(n_bytes: int) -> str:
    """A byte count for people.

    >>> size(3 * 1024 * 1024)
    '3.0 MiB'
    """
    value = float(n_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def geomean(values: list[float]) -> float:
    """Geometric mean of positive ratios; ValueError when one is not positive and finite.

    >>> geomean([2.0, 0.5])
    1.0
    """
    if not values or not all(math.isfinite(v) and v > 0 for v in values):
        raise ValueError("a geomean needs positive, finite values")
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))
