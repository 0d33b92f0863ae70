"""Axes of speed-up ratios: logarithmic, because twice as fast and half as fast are equally far from 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def ticks(low: float, high: float, *, most: int = 6) -> list[float]:
    """Round ratios inside [low, high], at most ``most`` of them, both bounds positive.

    >>> ticks(0.93, 1.12)
    [0.95, 1.0, 1.05, 1.1]
    >>> ticks(0.8, 30.0)
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    if high / low <= 4:
        for exponent in range(-6, 3):
            for head in (1, 2, 2.5, 5):
                step = head * 10.0**exponent
                first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
                if last - first < most:
                    return [round(ix * step, 9) for ix in range(first, last + 1)]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for heads in ((1, 2, 5), (1, 3), (1,)):
        found = [head * 10.0**decade for decade in decades for head in heads]
        inside = [round(t, 9) for t in found if low <= t <= high]
        if len(inside) <= most:
            return inside
    return inside[:: math.ceil(len(inside) / most)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """A logarithmic axis between two ratios, drawn between two coordinates."""

    low: float
    high: float
    start: float
    end: float

    def at(self, ratio: float) -> float:
        """Coordinate of a ratio; outside the axis it is held at the nearer end."""
        held = min(max(ratio, self.low), self.high)
        share = math.log(held / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def inside(self, ratio: float) -> bool:
        """Whether the ratio lies on the axis."""
        return self.low <= ratio <= self.high


def drawable(*values: float | None) -> bool:
    """Positive, finite numbers only: all that a logarithmic axis can show."""
    return all(v is not None and math.isfinite(v) and v > 0 for v in values)


def span(points: Sequence[float], bounds: Iterable[float], *, start: float, end: float) -> Axis:
    """An axis that holds every point and 1, and of the interval bounds what does not dwarf the points."""
    low, high = min([*points, 1.0]), max([*points, 1.0])
    room = max((high / low) ** 0.6, 1.1)
    wide = [b for b in bounds if low / room <= b <= high * room]
    low, high = min([low, *wide]), max([high, *wide])
    pad = max((high / low) ** 0.06, 1.005)
    return Axis(low=low / pad, high=high * pad, start=start, end=end)
