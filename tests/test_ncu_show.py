"""Every value with its unit and place; a table where pandas is, and a clear word where it is not."""

from __future__ import annotations

import csv
import io
import sys

import pytest

from kernelpilot_helpers.errors import ToolMissing
from kernelpilot_helpers.ncu import show
from tests import ncu_made as made

TWO = made.report([
    made.launch(1e5, metrics={"device__attribute_display_name": "GPU A"}), made.launch(2e5, ix=1, kernel="=other(int)"),
])  # fmt: skip


def test_a_row_says_value_unit_file_and_row() -> None:
    """Breaks when provenance or a unit is lost, or a text is shown as a number."""
    rows = {(r.launch, r.metric): r for r in show.rows(TWO)}
    duration = rows["1", "gpu__time_duration.sum"]
    assert (duration.value, duration.unit, duration.file) == (2e5, "ns", "r.ncu-rep")
    assert duration.row > 0
    assert rows["0", "device__attribute_display_name"].value == "GPU A"
    assert ("1", "device__attribute_display_name") not in rows  # absent, never empty or 0


def test_filters_choose_kernels_and_metrics() -> None:
    """Breaks when a glob or a part of a name chooses too much or nothing."""
    assert {r.metric for r in show.rows(TWO, metric="dram__*")} == {"dram__bytes_read.sum", "dram__bytes_write.sum"}
    assert {r.launch for r in show.rows(TWO, kernel="other")} == {"1"}
    assert show.text(show.rows(TWO, metric="nothing*")) == "no value matches"


def test_csv_has_full_precision_and_no_formula() -> None:
    """Breaks when a number is rounded, or a kernel's name becomes a spreadsheet's formula."""
    report = made.times(123_456.789, kernel="=1+1(int)")
    found = list(csv.DictReader(io.StringIO(show.as_csv(show.rows(report, metric="gpu__time_duration.sum")))))
    assert [(r["value"], r["unit"], r["kernel"]) for r in found] == [("123456.789", "ns", "'=1+1(int)")]


def test_names_cannot_colour_a_terminal() -> None:
    """Breaks when control characters of a kernel's name are printed."""
    assert "\x1b" not in show.text(show.rows(made.times(1e5, kernel="k\x1b[31m(int)")))


def test_a_table_has_numbers_and_texts_apart() -> None:
    """Breaks when a text makes the whole column text, or a row is lost."""
    pytest.importorskip("pandas", reason="the extra `frame` is not installed")
    table = show.frame(TWO)
    assert len(table) == len(list(show.rows(TWO)))
    assert table["value"].dtype == float
    named = table[table["metric"] == "device__attribute_display_name"]
    assert list(named["text"]) == ["GPU A"]


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a missing extra is a traceback."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ToolMissing) as fault:
        show.frame(TWO)
    assert fault.value.fix == f"{sys.executable} -m pip install pandas"
