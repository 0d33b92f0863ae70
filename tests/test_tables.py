"""Markdown tables: what is written is read back cell by cell."""

from __future__ import annotations

import doctest

import pytest

from kernelpilot_helpers import tables, units
from kernelpilot_helpers.errors import BadRecord


@pytest.mark.parametrize("module", [tables, units])
def test_examples_in_docstrings_hold(module: object) -> None:
    """Breaks if a printed example of a unit or a table is wrong."""
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize(
    "text", ["a|b", "a\\|b", "back\\slash", "ends with \\", "\\\\", "`code | x`", "<b>", "*s*", "é", "", "[x](y)"]
)
def test_any_cell_comes_back_as_it_was(text: str) -> None:
    """Breaks if a pipe, a backslash or markup in an idea shifts or changes the cells."""
    table = tables.render(["A", "B", "C"], [["x", text, "y"], ["1", "2", "3"]])
    assert tables.parse(table, at="t") == [{"A": "x", "B": text, "C": "y"}, {"A": "1", "B": "2", "C": "3"}]


def test_white_space_of_any_kind_stays_one_line() -> None:
    """Breaks if a line separator inside a cell ends the row."""
    assert tables.cell("a\r\nb\u2028c\x85d\te") == "a b c d e"


def test_a_row_of_another_width_is_a_bug_not_a_table() -> None:
    """Breaks if cells are dropped silently."""
    with pytest.raises(ValueError, match="a row of 1 cells under 2 columns"):
        tables.render(["A", "B"], [["1"]])


def test_only_the_first_table_is_read_and_none_is_an_error() -> None:
    """Breaks if a second table's rows are mixed in, or text without a table reads as no rows."""
    one = tables.render(["A"], [["1"]])
    assert tables.parse(f"# T\n\n{one}\n\n{tables.render(['B'], [['2']])}", at="t") == [{"A": "1"}]
    with pytest.raises(BadRecord, match="no table found"):
        tables.parse("words\n", at="t")
    assert tables.parse(tables.render(["A"], []), at="t") == []


def test_units_refuse_what_has_no_mean() -> None:
    """Breaks if a zero or infinite time becomes a finite speed-up."""
    for values in ([], [1.0, 0.0], [1.0, -2.0], [float("inf")], [float("nan")]):
        with pytest.raises(ValueError, match="positive, finite"):
            units.geomean(values)
    assert units.micros(float("nan")) == "n/a"
    assert units.percent(0.99996) == "+0.0 %"
    assert units.size(1023) == "1023 B"
    assert units.size(5 * 1024**3) == "5.0 GiB"
