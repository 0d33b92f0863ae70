"""Error of one output against the reference, in ulp: numbers only, no limit and no verdict."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .frames import Frame
from .spec import MANTISSA, MAX_EXPONENT, MIN_EXPONENT

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
    # A device is asked once, for all figures: they are thrown away where the sum of squares then proves not finite.
    found = _figures(frame, error, square) if remote(frame) and not want.exact else None
    if want.exact or not (found.finite if found is not None else bool(xp.isfinite(square.sum()))):
        mismatch = _mismatch(frame, value, want)
        fine = xp.isfinite(value) & xp.isfinite(error) & ~mismatch
        error = xp.where(fine, error, xp.zeros_like(error))
        square, found = error * error, None
        lost = _unwritten(frame, got, poison, want)
    if found is None:
        found = _figures(frame, error, square)
    return Measured(
        got=got.reshape(want.ref.shape), error=error, n=found.n, rows=found.rows, cols=found.cols, tiles=found.tiles,
        along=found.along, max=found.max, rms=found.rms, bias=found.bias, mismatch=mismatch, unwritten=lost,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Figures:
    """What is summed up of one error; ``finite``: its sum of squares is."""

    n: int
    rows: Any
    cols: Any
    tiles: Any
    along: Any
    finite: bool
    max: float
    rms: float
    bias: float


def remote(frame: Frame) -> bool:
    """Whether reading a number means to wait for a device."""
    return getattr(frame, "device", None) is not None


def read(frame: Frame, values: Sequence[Any]) -> list[float]:
    """Single numbers (float64 tensors without axes) as Python's, all in one look."""
    if not remote(frame):
        return [float(v) for v in values]
    return list(frame.xp.stack(list(values)).tolist())


def _figures(frame: Frame, error: Any, square: Any) -> _Figures:
    rows, cols, tiles = _sums(frame, square)
    n = int(square.shape[0]) * int(square.shape[1])
    along = error.mean(1) if n else error.sum(1)
    asked = [square.sum()]
    if n:
        asked += [error.max(), error.min(), square.mean(), along.mean()]
    total, *others = read(frame, asked)
    top, low, mean, bias = others or (0.0, 0.0, 0.0, 0.0)
    return _Figures(
        n=n, rows=rows, cols=cols, tiles=tiles, along=along, finite=math.isfinite(total), max=max(top, -low),
        rms=mean**0.5, bias=bias,
    )  # fmt: skip


def lean(m: Measured) -> Measured:
    """``m`` as a yardstick: without what is as large as the output itself."""
    return replace(m, got=None, error=None, mismatch=None)


def _mismatch(frame: Frame, value: Any, want: Want) -> Any:
    """Where one side is a number and the other is not, or both are not in different ways."""
    xp = frame.xp
    stored = frame.f64(frame.cast(want.ref, want.dtype))
    same = (xp.isfinite(value) & xp.isfinite(stored)) | (xp.isnan(value) & xp.isnan(stored)) | (value == stored)
    return ~(same if want.exact else same | _overflow_edge(frame, value, want))


def _overflow_edge(frame: Frame, value: Any, want: Want) -> Any:
    """Where rounding makes the largest number or infinity of a result, and an honest ulp decides which of the two."""
    xp = frame.xp
    step = 2.0 ** (MAX_EXPONENT[want.dtype] - MANTISSA[want.dtype])
    largest = 2.0 ** MAX_EXPONENT[want.dtype] * (2.0 - 2.0 ** -MANTISSA[want.dtype])
    size = xp.abs(want.ref)
    near = (size >= largest - step) & (size - largest <= 2.0 * step)
    return near & (xp.abs(value) >= largest) & (xp.sign(value) == xp.sign(want.ref))


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
    count, enough = _tiling(frame, rows, cols)  # type: ignore[arg-type]  # no frame changes object's __hash__
    tiles = xp.sqrt(strips.reshape(down, TILE, across).sum(1) / count) * enough
    return by_row, by_col, tiles


@functools.lru_cache(maxsize=32)
def _tiling(frame: Frame, rows: int, cols: int) -> tuple[Any, Any]:
    """Elements of each tile, and 1 where they are enough for a ratio, else 0."""
    xp, down, across = frame.xp, -(-rows // TILE), -(-cols // TILE)
    high = frame.f64(xp.asarray([min(TILE, rows - i * TILE) for i in range(down)])).reshape(-1, 1)
    broad = frame.f64(xp.asarray([min(TILE, cols - i * TILE) for i in range(across)])).reshape(1, -1)
    count = high * broad
    return count, frame.f64(count >= min(POOL, rows * cols))


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
    asked = [
        *_worst(frame, m.rows, parts.rows if parts else None, floor),
        *_worst(frame, m.cols, parts.cols if parts else None, floor),
        *_worst(frame, m.tiles.reshape(-1), parts.tiles.reshape(-1) if parts else None, floor),
        *_spread(m),
    ]
    row, row_ix, col, col_ix, tile, tile_ix, *spread = read(frame, asked)
    across = max(int(m.tiles.shape[1]), 1)
    tall, wide = pooled(int(m.error.shape[0]), int(m.error.shape[1]))
    return {
        "n": m.n, "rms": _real(m.rms), "max": _real(m.max), "bias": _real(m.bias),
        "bias_se": _real(_bias_se(m, spread)),
        "base_rms": _real(whole), "base_max": _real(base.max if base else 0.0),
        "base_bias": _real(base.bias if base else 0.0),
        "row_ratio": _real(row), "row_ix": int(row_ix) * tall, "col_ratio": _real(col), "col_ix": int(col_ix) * wide,
        "tile_ratio": _real(tile), "tile_ix": (int(tile_ix) // across, int(tile_ix) % across),
        "nonfinite_equal": m.mismatch is None or not bool(m.mismatch.any()),
        "unwritten": m.unwritten, "exact": want.exact,
    }  # fmt: skip


def _units(m: Measured) -> Any:
    """What the bias is a mean of: rows, or the elements of the only one."""
    return m.along if int(m.error.shape[0]) > 1 else m.error.reshape(-1)


def _spread(m: Measured) -> list[Any]:
    """The sum of squares about the bias; nothing where there are fewer than two elements."""
    if int(m.error.shape[0]) * int(m.error.shape[1]) < 2:
        return []
    spread = _units(m) - _units(m).mean()
    return [(spread * spread).sum()]


def _bias_se(m: Measured, spread: Sequence[float]) -> float:
    if not spread:
        return 0.0
    n = int(_units(m).shape[0])
    return math.sqrt(spread[0] / (n - 1) / n)


def _worst(frame: Frame, part: Any, base: Any, floor: float) -> tuple[Any, Any]:
    """(largest ratio, its place) as float64 tensors without axes."""
    if int(part.shape[0]) == 0:
        return part.sum(), part.sum()
    ratio = part / (frame.xp.clip(base, floor, None) if base is not None else floor)
    return ratio.max(), frame.f64(ratio.argmax())


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
