"""A wrong output is explained by its pattern."""

from __future__ import annotations

import pytest

from kernelpilot_helpers.attempt.raw import Where
from kernelpilot_helpers.correctness import explain
from kernelpilot_helpers.correctness.words import calls, example

AXES = {"M": 256, "N": 1000}
EVERY_ROW = ((0, 256),)
EVERY_COL = ((0, 1000),)
Runs = tuple[tuple[int, int], ...]


def where(rows: Runs, cols: Runs, *, bad: int | None = None, n_rows: int = 0, n_cols: int = 0) -> Where:
    n_rows = n_rows or sum(b - a for a, b in rows)
    n_cols = n_cols or sum(b - a for a, b in cols)
    return Where(
        rows_total=256, cols_total=1000, bad=n_rows * n_cols if bad is None else bad, bad_rows=rows,
        bad_cols=cols, n_bad_rows=n_rows, n_bad_cols=n_cols,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "cols", "words"),
    [
        (EVERY_ROW, EVERY_COL, "all elements"),
        (EVERY_ROW, ((896, 1000),), "columns >= N - N % 128 (N = 1000: 896..999), every row"),
        (EVERY_ROW, ((992, 1000),), "columns >= N - N % 32 (N = 1000: 992..999), every row"),
        (EVERY_ROW, ((901, 1000),), "columns 901..999 (the last 99 of 1000), every row"),
        (((255, 256),), EVERY_COL, "last row only"),
        (((0, 1),), EVERY_COL, "first row only"),
        (((17, 18),), EVERY_COL, "row 17 only"),
        (((64, 128),), EVERY_COL, "rows 64..127 (one 64-row tile)"),
        (((60, 124),), EVERY_COL, "rows 60..123"),
        (EVERY_ROW, ((999, 1000),), "last column only, every row"),
        (((17, 18),), ((3, 4),), "one element (row 17, column 3)"),
        (((64, 128),), ((896, 1000),), "rows 64..127 (one 64-row tile), columns >= N - N % 128 (N = 1000: 896..999)"),
    ],
)
def test_patterns_of_one_run(rows: Runs, cols: Runs, words: str) -> None:
    assert explain(where(rows, cols), axes=AXES) == words


@pytest.mark.parametrize(
    ("cols", "count", "words"),
    [
        (tuple((i, i + 1) for i in range(0, 16, 2)), 500, "every second column"),
        (tuple((i, i + 1) for i in range(1, 17, 2)), 500, "every second column, from 1"),
        (tuple((i, i + 1) for i in range(0, 40, 5)), 200, "every 5th column"),
        (tuple((i, i + 16) for i in range(16, 500, 64))[:8], 256, "16 columns of every 64, from 16, every row"),
        (((3, 4), (9, 11)), 3, "3 columns of 1000 (3, 9..10), every row"),
    ],
)
def test_patterns_of_many_runs(cols: Runs, count: int, words: str) -> None:
    assert explain(where(EVERY_ROW, cols, n_cols=count), axes=AXES) == words


def test_an_axis_without_a_name_is_counted() -> None:
    assert explain(where(EVERY_ROW, ((896, 1000),)), axes={}) == "columns 896..999 (the 1000 % 128 tail), every row"


def test_scattered_elements_are_said_to_be_scattered() -> None:
    """Breaks if ten bad elements in 256 rows are told as 256 bad rows."""
    told = explain(where(EVERY_ROW, ((896, 1000),), bad=300), axes={})
    assert told == "300 of 256000 elements, scattered over columns 896..999 (the 1000 % 128 tail), every row"


def test_luckily_right_elements_do_not_hide_the_pattern() -> None:
    told = explain(where(EVERY_ROW, ((896, 1000),), bad=int(256 * 104 * 0.95)), axes=AXES)
    assert told.startswith("columns >= N - N % 128")
    assert explain(where(EVERY_ROW, EVERY_COL, bad=250_000), axes={}) == "nearly all elements (250000 of 256000)"


def test_an_output_of_one_row_speaks_of_columns_alone() -> None:
    one = Where(
        rows_total=1, cols_total=1000, bad=104, bad_rows=((0, 1),), bad_cols=((896, 1000),), n_bad_rows=1,
        n_bad_cols=104,
    )  # fmt: skip
    assert explain(one, axes=AXES) == "columns >= N - N % 128 (N = 1000: 896..999)"


def test_a_pattern_with_holes_is_not_listed_hole_by_hole() -> None:
    cols = tuple((i, i + 9) for i in range(0, 80, 10))
    assert explain(where(EVERY_ROW, cols, n_cols=950), axes={}) == "nearly all elements (243200 of 256000)"
    few = tuple((i, i + 1) for i in (1, 4, 6, 11, 12 + 1, 20, 31, 40))
    told = explain(where(EVERY_ROW, few, n_cols=300), axes={})
    assert told == "300 columns of 1000 (1, 4, 6, ...), every row"


def test_a_non_finite_value_is_called_so() -> None:
    one = Where(
        rows_total=1, cols_total=4, bad=1, bad_rows=((0, 1),), bad_cols=((0, 1),), n_bad_rows=1, n_bad_cols=1,
        sample=((0, 0, 1e308, 0.5),),
    )  # fmt: skip
    assert example(one) == "at (0, 0) got NaN or infinity, want 0.5"


def test_no_bad_element_is_not_all_of_them() -> None:
    assert explain(where((), (), bad=0), axes={}) == "no element beyond the limit for one element"


@pytest.mark.parametrize(
    ("bad", "good", "words"),
    [
        ([1], [0, 2, 3], "second call only"),
        ([0], [1, 2], "first call only"),
        ([2, 3], [0, 1], "right up to call 2, wrong from call 3 on"),
        ([1, 3], [0, 2], "calls 2, 4 only"),
        ([1, 2], [], ""),
        ([], [0], ""),
    ],
)
def test_calls_are_counted_from_one(bad: list[int], good: list[int], words: str) -> None:
    assert calls(bad, good) == words
