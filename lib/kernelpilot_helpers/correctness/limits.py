"""How large an error may be: one output's statistics against the limits, in units of the baseline's own error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kernelpilot_helpers.attempt.raw import Stats
from kernelpilot_helpers.policy import NUMERICS, Numerics

Shape: TypeAlias = tuple[int, int]
FaultKind = Literal["nonfinite", "unwritten", "tolerance"]

ROUNDING_RMS = 0.29
"""rms of correct rounding in ulp (1 / sqrt 12): no baseline is held to less."""
TILE = 64
HUGE = 1e308
"""What the runtime writes for a figure that is not finite."""
SMALL_GROUP = 64
"""Below this many rows or elements chance alone may exceed a rms limit; see ``_spread`` and ``_few``."""
ONE_IN_A_MILLION = 4.75
"""Standard normal quantile: limits are asked thousands of times a job and must not fail honest work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One limit that an output broke."""

    kind: FaultKind
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Yard:
    """The baseline's own error on one output: over several calls, as one call of a few rows is no yardstick."""

    unit: float
    """rms in ulp, at least that of correct rounding; this counts as 1.0."""
    base_max: float
    """Worst element in ulp."""


def unit(stats: Stats) -> float:
    """The error, in ulp rms, that counts as 1.0 for one call of an output."""
    return max(stats.base_rms, ROUNDING_RMS)


def yard(stats: Iterable[Stats]) -> Yard:
    """Pool the baseline's figures over calls of one output on one kind of content."""
    kept = [s for s in stats if abs(s.base_rms) < HUGE and abs(s.base_max) < HUGE]
    if not kept:
        return Yard(unit=ROUNDING_RMS, base_max=0.0)
    square = math.fsum(unit(s) ** 2 for s in kept) / len(kept)
    return Yard(unit=math.sqrt(square), base_max=max(s.base_max for s in kept))


def _spread(rows: float) -> float:
    """How far the rms over so many rows strays, by chance in a million, when each row has one error of its own.

    Wilson and Hilferty's cube-root form of the chi-square quantile. Rows and not elements: one rounding of a
    row's scale moves the whole row.
    """
    part = 2.0 / (9.0 * rows)
    return float((1.0 - part + ONE_IN_A_MILLION * math.sqrt(part)) ** 1.5)


def rms_allowed(numerics: Numerics, rows: float) -> float:
    """The rms ratio that an output of so many rows may reach; 0 rows means unknown, taken as many."""
    return numerics.rms_ratio * max(1.0, _spread(rows) / _spread(SMALL_GROUP)) if rows else numerics.rms_ratio


def max_limit(stats: Stats, numerics: Numerics, over: Yard) -> float:
    """Largest error of one element, in ulp."""
    return numerics.max_ratio * max(stats.base_max, over.base_max) + numerics.max_slack_ulp


def _group_allowed(elements: int, stats: Stats, numerics: Numerics, over: Yard) -> float:
    """The rms, in ulp, that a row, column or tile of so many elements (0 is unknown) may reach.

    A group may be as wrong as the baseline's worst element: where one rounding moves a whole row, the baseline
    has such rows too. One element at its own limit may not break a group of a few.
    """
    allowed = max(numerics.tile_ratio * max(unit(stats), over.unit), over.base_max)
    return allowed if not 0 < elements < SMALL_GROUP else max(allowed, _few(elements, stats, numerics, over))


def _few(elements: int, stats: Stats, numerics: Numerics, over: Yard) -> float:
    return math.sqrt(max_limit(stats, numerics, over) ** 2 / elements + over.unit**2)


def _tile_elements(shape: Shape, tile_ix: tuple[int, int]) -> int:
    rows, cols = (min(TILE, total - TILE * ix) for total, ix in zip(shape, tile_ix, strict=True))
    return max(rows, 0) * max(cols, 0)


def _figures(stats: Stats) -> dict[str, float]:
    names = ("rms", "max", "bias", "bias_se", "base_rms", "base_max", "base_bias")
    ratios = ("row_ratio", "col_ratio", "tile_ratio")
    return {name: float(getattr(stats, name)) for name in (*names, *ratios)}


def _size_faults(stats: Stats, numerics: Numerics, shape: Shape | None, over: Yard) -> Iterator[str]:
    rows, cols = shape or (0, 0)
    whole = rms_allowed(numerics, rows) * max(unit(stats), over.unit)
    if 0 < stats.n < SMALL_GROUP:
        whole = max(whole, _few(stats.n, stats, numerics, over))
    if stats.rms > whole:
        yield f"rms {stats.rms:.3g} ulp, the baseline's {stats.base_rms:.3g} (limit {whole:.3g})"
    tile = _tile_elements(shape, stats.tile_ix) if shape else 0
    for name, ratio, elements in (
        (f"row {stats.row_ix}", stats.row_ratio, cols),
        (f"column {stats.col_ix}", stats.col_ratio, rows),
        (f"tile {stats.tile_ix[0]},{stats.tile_ix[1]}", stats.tile_ratio, tile),
    ):
        # No part is held to less than the whole is.
        allowed = max(_group_allowed(elements, stats, numerics, over), whole) / unit(stats)
        if ratio > allowed:
            yield f"{name} has {ratio:.3g} x the baseline's error (limit {allowed:.3g})"
    if stats.max > (limit := max_limit(stats, numerics, over)):
        yield f"one element is off by {stats.max:.3g} ulp (limit {limit:.3g})"


def _bias_fault(stats: Stats, numerics: Numerics, shape: Shape | None, over: Yard) -> Iterator[str]:
    # A mean over few independent rows cannot be known better than this, whatever those few say of their spread:
    # each may stray as far as the rms limit lets it.
    rows = shape[0] if shape else stats.n
    se = max(stats.bias_se, numerics.rms_ratio * max(unit(stats), over.unit) / math.sqrt(max(rows, 1)))
    limit = max(numerics.bias_sigma * se, abs(stats.base_bias) + numerics.bias_slack_ulp)
    if abs(stats.bias) > limit:
        yield f"the error has a bias of {stats.bias:+.3g} ulp (limit {limit:.3g})"


def together(stats: Sequence[Stats], numerics: Numerics = NUMERICS, *, rows: int) -> tuple[Fault, ...]:
    """What single calls of a few rows are too few to show: rms and bias over all calls of one output.

    ``rows`` is the output's; probes share content, so half of the rows count as independent.
    """
    kept = [s for s in stats if not s.exact and s.n > 0]
    if len(kept) < 2 or rows < 1:
        return ()
    count, independent = len(kept), max(rows * len(kept) / 2.0, 1.0)
    rms = math.sqrt(math.fsum(s.rms**2 for s in kept) / count)
    base = math.sqrt(math.fsum(unit(s) ** 2 for s in kept) / count)
    bias = math.fsum(s.bias for s in kept) / count
    base_bias = abs(math.fsum(s.base_bias for s in kept) / count)
    found = []
    if rms > (limit := rms_allowed(numerics, independent) * base):
        found.append(f"rms {rms:.3g} ulp over {count} calls, the baseline's {base:.3g} (limit {limit:.3g})")
    sigma = numerics.bias_sigma * max(base / math.sqrt(independent), max(s.bias_se for s in kept) / math.sqrt(count))
    if abs(bias) > (limit := max(sigma, base_bias + numerics.bias_slack_ulp)):
        found.append(f"a bias of {bias:+.3g} ulp over {count} calls (limit {limit:.3g})")
    return tuple(Fault(kind="tolerance", text=text) for text in found)


def faults(
    stats: Stats, numerics: Numerics = NUMERICS, *, shape: Shape | None = None, over: Yard | None = None
) -> tuple[Fault, ...]:
    """Every limit that these statistics break; empty means acceptable.

    ``shape`` is the output's (rows, columns); without it each row, column and tile is held to the limit of a
    large one. ``over`` is the baseline's error over several calls, else this call's. A statistic that is not
    finite is itself a fault.
    """
    found: list[Fault] = []
    if odd := sorted(name for name, value in _figures(stats).items() if not abs(value) < HUGE):
        found.append(Fault(kind="nonfinite", text=f"the statistics {', '.join(odd)} are not finite"))
    if not stats.nonfinite_equal:
        found.append(Fault(kind="nonfinite", text="NaN and infinity are not where the reference has them"))
    if stats.n <= 0:
        found.append(Fault(kind="tolerance", text="no element was compared"))
    if stats.exact:
        # Equal to the reference everywhere means written everywhere: a poison byte may be a legal integer.
        if stats.max != 0 or stats.rms != 0:
            text = f"integer output differs by up to {stats.max:.3g}; nothing may differ"
            found.append(Fault(kind="unwritten" if stats.unwritten else "tolerance", text=text))
        return tuple(found)
    if stats.unwritten:
        found.append(Fault(kind="unwritten", text=f"{stats.unwritten} of {stats.n} elements were never written"))
    known = over or yard([stats])
    size, bias = _size_faults(stats, numerics, shape, known), _bias_fault(stats, numerics, shape, known)
    texts = () if odd else (*size, *bias)
    return (*found, *(Fault(kind="tolerance", text=text) for text in texts))
