"""Where an output is wrong, in words: which rows and columns, which tile, which call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from kernelpilot_helpers.attempt.raw import Where

from .limits import HUGE

TILES = (1024, 512, 256, 128, 64, 32, 16, 8, 4)
FULL = 0.9
"""A pattern counts as filled when this share of it is bad: some wrong elements are right by luck."""
ORDINALS = {2: "second", 3: "third", 4: "fourth", 8: "eighth"}
SHOWN = 3
Runs = tuple[tuple[int, int], ...]


def _span(start: int, end: int) -> str:
    return f"{start}" if end - start == 1 else f"{start}..{end - 1}"


def _tail(word: str, start: int, total: int, axis: str) -> str:
    tile = next((t for t in TILES if t < total and total % t and total - total % t == start), None)
    if tile and axis:
        return f"{word}s >= {axis} - {axis} % {tile} ({axis} = {total}: {_span(start, total)})"
    if tile:
        return f"{word}s {_span(start, total)} (the {total} % {tile} tail)"
    return f"{word}s {_span(start, total)} (the last {total - start} of {total})"


def _one_run(word: str, run: tuple[int, int], total: int, axis: str) -> str:
    start, end = run
    length = end - start
    if length == 1:
        place = {0: "first", total - 1: "last"}.get(start)
        return f"{place} {word} only" if place else f"{word} {start} only"
    if end == total:
        return _tail(word, start, total, axis)
    if length in TILES and start % length == 0:
        return f"{word}s {_span(start, end)} (one {length}-{word} tile)"
    return f"{word}s {_span(start, end)}"


def _many_runs(word: str, runs: Runs, total: int, count: int) -> str:
    starts = [start for start, _ in runs]
    steps = {b - a for a, b in pairwise(starts)}
    lengths = {end - start for start, end in runs[:-1]}
    if len(steps) == 1 and len(lengths) == 1:
        step, length = steps.pop(), lengths.pop()
        first = starts[0]
        expected = sum(min(length, total - at) for at in range(first, total, step))
        if expected == count and length == 1:
            origin = "" if first == 0 else f", from {first}"
            return f"every {ORDINALS.get(step, f'{step}th')} {word}{origin}"
        if expected == count:
            return f"{length} {word}s of every {step}, from {first}"
    shown = ", ".join(_span(start, end) for start, end in runs[:SHOWN])
    more = ", ..." if count > sum(end - start for start, end in runs[:SHOWN]) else ""
    return f"{count} {word}s of {total} ({shown}{more})"


def _axis_name(size: int, axes: Mapping[str, int]) -> str:
    return next((name for name in sorted(axes) if axes[name] == size), "")


def _line(word: str, runs: Runs, total: int, count: int, axes: Mapping[str, int]) -> str:
    """Which rows or columns; empty when it is all of them."""
    if count == total or (len(runs) > 1 and count >= FULL * total):
        return ""
    if len(runs) == 1:
        return _one_run(word, runs[0], total, _axis_name(total, axes))
    return _many_runs(word, runs, total, count)


def _joined(rows: str, cols: str, where: Where) -> str:
    if rows and cols:
        return f"{rows}, {cols}"
    if cols:
        regular = cols.startswith("every ")
        return cols if regular or where.rows_total == 1 else f"{cols}, every row"
    return rows or "every row and column"


def explain(where: Where, *, axes: Mapping[str, int]) -> str:
    """One phrase for the pattern of bad elements; ``axes`` (name -> size) lets it speak of ``N - N % 128``."""
    total = where.rows_total * where.cols_total
    if where.bad == 0 or not where.bad_rows or not where.bad_cols:
        return "no element beyond the limit for one element"
    if where.bad == total:
        return "all elements"
    if where.bad == 1:
        return f"one element (row {where.bad_rows[0][0]}, column {where.bad_cols[0][0]})"
    rows = _line("row", where.bad_rows, where.rows_total, where.n_bad_rows, axes)
    cols = _line("column", where.bad_cols, where.cols_total, where.n_bad_cols, axes)
    if where.bad >= FULL * where.n_bad_rows * where.n_bad_cols:
        return _joined(rows, cols, where) if rows or cols else f"nearly all elements ({where.bad} of {total})"
    return f"{where.bad} of {total} elements, scattered over {_joined(rows, cols, where)}"


def example(where: Where) -> str:
    """The first bad element with both values, or nothing."""
    if not where.sample:
        return ""
    row, col, got, want = where.sample[0]
    return f"at ({row}, {col}) got {_number(got)}, want {_number(want)}"


def _number(value: float) -> str:
    return f"{value:.6g}" if abs(value) < HUGE else "NaN or infinity"


def calls(bad: Iterable[int], good: Iterable[int]) -> str:
    """Which calls of one process are wrong, given call numbers from 0; empty when the pattern says nothing."""
    wrong, right = sorted(set(bad)), set(good) - set(bad)
    if not wrong or not right:
        return ""
    if wrong == [1]:
        return "second call only"
    if wrong == [0]:
        return "first call only"
    if min(right) < wrong[0] and not any(ix > wrong[0] for ix in right):
        return f"right up to call {wrong[0]}, wrong from call {wrong[0] + 1} on"
    return f"calls {_few([ix + 1 for ix in wrong])} only"


def _few(items: Sequence[int]) -> str:
    shown = ", ".join(str(i) for i in items[:8])
    return f"{shown}, ..." if len(items) > 8 else shown
