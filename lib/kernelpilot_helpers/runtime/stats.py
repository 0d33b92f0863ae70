"""Error of one output against the reference, in ulp: numbers only, no limit and no verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .frames import Frame
from .spec import MANTISSA, MIN_EXPONENT

TILE = 64
FLOOR = 0.29
"""rms of rounding to nearest, in ulp (1/sqrt(12)): a ratio's denominator is never below it."""
POOL = 32
"""Fewest elements whose rms is compared with the baseline's: thinner rows, columns are pooled with the next ones."""
HUGE = 1e308
EXPONENT_BITS = 0x7FF0000000000000
RUNS = 8
SAMPLES = 8


@dataclass(frozen=True, kw_only=True)
class Want:
    """What one output should hold: float64 value and unit in the last place, both (rows, cols)."""

    ref: Any
    unit: Any
    dtype: str
    exact: bool


@dataclass(frozen=True, kw_only=True)
class Base:
    """The baseline's own error where only its whole is known."""

    rms: float
    max: float
    bias: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One output's error. ``error`` is (rows, cols) in ulp, 0 where a value is not comparable; ``got`` as stored."""

    got: Any
    error: Any
    rows: Any
    cols: Any
    tiles: Any
    along: Any
    """Signed mean of each row."""
    n: int
    rms: float
    max: float
    bias: float
    mismatch: Any
    """Where the kinds of non-finite values differ; None where all values are finite on both sides."""
    unwritten: int


def matrix(shape: Sequence[int]) -> tuple[int, int]:
    """(rows, cols): all leading axes flattened, and the last one."""
    cols = shape[-1] if shape else 1
    rows = 1
    for n in shape[:-1]:
        rows *= n
    return rows, cols


def unit_of(frame: Frame, dtype: str, magnitude: Any) -> Any:
    """Spacing of ``dtype`` at ``magnitude`` (float64, not negative), not below the smallest normal's."""
    xp = frame.xp
    power = (magnitude.view(xp.int64) & EXPONENT_BITS).view(xp.float64)
    if not bool(xp.isfinite(power.sum())):
        power = xp.where(xp.isfinite(power), power, xp.ones_like(power))
    return xp.clip(power, 2.0 ** MIN_EXPONENT[dtype], None) * 2.0 ** -MANTISSA[dtype]


def measure(frame: Frame, got: Any, want: Want, poison: Any = None) -> Measured:
    """Compare ``got`` (storage dtype) with ``want``; ``poison`` is what the output held before the call."""
    xp = frame.xp
    value = frame.f64(got).reshape(want.ref.shape)
    error = value - want.ref
    if not want.exact:
        error /= want.unit
    square = error * error
    mismatch, lost = None, 0
    if want.exact or not bool(xp.isfinite(square.sum())):
        mismatch = _mismatch(frame, value, want)
        fine = xp.isfinite(value) & xp.isfinite(error) & ~mismatch
        error = xp.where(fine, error, xp.zeros_like(error))
        square = error * error
        lost = _unwritten(frame, got, poison, want)
    rows, cols, tiles = _sums(frame, square)
    n = int(square.shape[0]) * int(square.shape[1])
    along = error.mean(1) if n else error.sum(1)
    worst = max(float(error.max()), -float(error.min())) if n else 0.0
    return Measured(
        got=got.reshape(want.ref.shape), error=error, n=n, rows=rows, cols=cols, tiles=tiles, along=along, max=worst,
        rms=float(square.mean()) ** 0.5 if n else 0.0, bias=float(along.mean()) if n else 0.0,
        mismatch=mismatch, unwritten=lost,
    )  # fmt: skip


def lean(m: Measured) -> Measured:
    """``m`` as a yardstick: without what is as large as the output itself."""
    return replace(m, got=None, error=None, mismatch=None)


def _mismatch(frame: Frame, value: Any, want: Want) -> Any:
    """Where one side is a number and the other is not, or both are not in different ways."""
    xp = frame.xp
    stored = frame.f64(frame.cast(want.ref, want.dtype))
    same = (xp.isfinite(value) & xp.isfinite(stored)) | (xp.isnan(value) & xp.isnan(stored)) | (value == stored)
    return ~same


def pooled(rows: int, cols: int) -> tuple[int, int]:
    """How many neighbouring rows, and columns, one ratio takes together, so that each has POOL elements."""
    return max(-(-POOL // max(cols, 1)), 1), max(-(-POOL // max(rows, 1)), 1)


def _pool(frame: Frame, means: Any, size: int) -> Any:
    """rms of groups of ``size`` neighbouring means; the last group takes the remainder."""
    n = int(means.shape[0])
    if size == 1 or n == 0:
        return frame.xp.sqrt(means)
    if n < 2 * size:
        return frame.xp.sqrt(means.mean().reshape(1))
    whole = n // size * size
    head = means[: whole - size].reshape(-1, size).mean(1)
    tail = means[whole - size :].mean().reshape(1)
    return frame.xp.sqrt(frame.xp.concatenate([head, tail]))


def _sums(frame: Frame, square: Any) -> tuple[Any, Any, Any]:
    """rms by (pooled) row, (pooled) column and 64 x 64 tile, with few passes over the data."""
    xp = frame.xp
    rows, cols = int(square.shape[0]), int(square.shape[1])
    tall, wide = pooled(rows, cols)
    down, across = -(-rows // TILE), -(-cols // TILE)
    by_col = _pool(frame, square.sum(0) / max(rows, 1), wide)
    if rows % TILE or cols % TILE:
        padded = xp.zeros((down * TILE, across * TILE), dtype=xp.float64)
        padded[:rows, :cols] = square
        square = padded
    strips = square.reshape(down * TILE, across, TILE).sum(2)
    by_row = _pool(frame, strips[:rows].sum(1) / max(cols, 1), tall)
    high = frame.f64(xp.asarray([min(TILE, rows - i * TILE) for i in range(down)])).reshape(-1, 1)
    broad = frame.f64(xp.asarray([min(TILE, cols - i * TILE) for i in range(across)])).reshape(1, -1)
    count = high * broad
    enough = frame.f64(count >= min(POOL, rows * cols))
    tiles = xp.sqrt(strips.reshape(down, TILE, across).sum(1) / count) * enough
    return by_row, by_col, tiles


def _unwritten(frame: Frame, got: Any, poison: Any, want: Want) -> int:
    if poison is None:
        return 0
    xp = frame.xp
    if want.exact:
        held = (got == poison).reshape(want.ref.shape)
        return int((held & (frame.f64(poison).reshape(want.ref.shape) != want.ref)).sum())
    ints = {"float64": "int64", "float32": "int32", "float16": "int16", "bfloat16": "int16"}[want.dtype]
    kind = getattr(xp, ints)
    return int((frame.copy(got).view(kind) == frame.copy(poison).view(kind)).sum())


def summary(frame: Frame, m: Measured, want: Want, base: Measured | Base | None) -> dict[str, Any]:
    """The fields of ``raw.Stats``; a ratio's denominator is the baseline's same part, its whole, or 0.29."""
    whole = base.rms if base is not None else 0.0
    floor = max(whole, FLOOR)
    parts = base if isinstance(base, Measured) else None
    row, row_ix = _worst(frame, m.rows, parts.rows if parts else None, floor)
    col, col_ix = _worst(frame, m.cols, parts.cols if parts else None, floor)
    tile, tile_ix = _worst(frame, m.tiles.reshape(-1), parts.tiles.reshape(-1) if parts else None, floor)
    across = max(int(m.tiles.shape[1]), 1)
    tall, wide = pooled(int(m.error.shape[0]), int(m.error.shape[1]))
    return {
        "n": m.n, "rms": _real(m.rms), "max": _real(m.max), "bias": _real(m.bias),
        "bias_se": _real(_bias_se(m)),
        "base_rms": _real(whole), "base_max": _real(base.max if base else 0.0),
        "base_bias": _real(base.bias if base else 0.0),
        "row_ratio": row, "row_ix": row_ix * tall, "col_ratio": col, "col_ix": col_ix * wide,
        "tile_ratio": tile, "tile_ix": (tile_ix // across, tile_ix % across),
        "nonfinite_equal": m.mismatch is None or not bool(m.mismatch.any()),
        "unwritten": m.unwritten, "exact": want.exact,
    }  # fmt: skip


def _bias_se(m: Measured) -> float:
    rows, cols = int(m.error.shape[0]), int(m.error.shape[1])
    if rows * cols < 2:
        return 0.0
    units = m.along if rows > 1 else m.error.reshape(-1)
    n = int(units.shape[0])
    spread = units - units.mean()
    return math.sqrt(float((spread * spread).sum()) / (n - 1) / n)


def _worst(frame: Frame, part: Any, base: Any, floor: float) -> tuple[float, int]:
    if int(part.shape[0]) == 0:
        return 0.0, 0
    ratio = part / (frame.xp.clip(base, floor, None) if base is not None else floor)
    ix = int(ratio.argmax())
    return _real(float(ratio[ix])), ix


def _real(x: float) -> float:
    return x if -HUGE < x < HUGE else HUGE if x > 0 or x != x else -HUGE  # noqa: PLR0124


def where(frame: Frame, m: Measured, want: Want, limit: float) -> dict[str, Any] | None:
    """The fields of ``raw.Where`` for elements off by more than ``limit`` ulp; None where there is none."""
    xp = frame.xp
    limit = 0.0 if want.exact else limit
    if m.max <= limit and m.mismatch is None:
        return None
    bad = xp.abs(m.error) > limit
    if m.mismatch is not None:
        bad = bad | m.mismatch
    total = int(bad.sum())
    if not total:
        return None
    rows, cols = bad.any(1).tolist(), bad.any(0).tolist()
    row_runs, col_runs = _runs(rows), _runs(cols)
    return {
        "rows_total": len(rows), "cols_total": len(cols), "bad": total,
        "bad_rows": row_runs[:RUNS], "bad_cols": col_runs[:RUNS],
        "n_bad_rows": sum(rows), "n_bad_cols": sum(cols), "sample": _sample(bad, m, want),
    }  # fmt: skip


def _sample(bad: Any, m: Measured, want: Want) -> list[tuple[int, int, float, float]]:
    out: list[tuple[int, int, float, float]] = []
    for row in [at for at, flag in enumerate(bad.any(1).tolist()) if flag][:SAMPLES]:
        col = int(bad[row].tolist().index(True))
        out.append((row, col, _real(float(m.got[row, col])), _real(float(want.ref[row, col]))))
    return out


def _runs(flags: list[bool]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for ix, flag in enumerate(flags):
        if not flag:
            continue
        if runs and runs[-1][1] == ix:
            runs[-1] = (runs[-1][0], ix + 1)
        else:
            runs.append((ix, ix + 1))
    return runs
