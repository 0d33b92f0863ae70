"""The drawings: round ticks, even scales, and nothing outside the picture."""

from __future__ import annotations

import re

import msgspec
import pytest

from kernelpilot_helpers.ledger import Interval
from kernelpilot_helpers.report import ReportData, RunFacts, render
from kernelpilot_helpers.report.axes import span, ticks
from tests.report_sim import baseline, bench, row


def _coordinates(html: str) -> list[tuple[float, float]]:
    out: list[tuple[float, float]] = []
    for svg in re.findall(r'<svg viewBox="0 0 760 [\d.]+".*?</svg>', html, re.S):
        height = float(re.search(r'viewBox="0 0 760 ([\d.]+)"', svg)[1])  # type: ignore[index]
        for tag in re.findall(r"<(?:line|circle|rect|text)[^>]*>", svg):
            for key, value in re.findall(r' (x1|x2|cx|x|y1|y2|cy|y)="([^"]*)"', tag):
                out.append((float(value), 760 if "x" in key else height))
    return out


@pytest.mark.parametrize("n", [1, 7, 84])
def test_nothing_is_drawn_outside_the_drawing(n: int) -> None:
    """Breaks if a wild interval, an extreme figure or many attempts leave the picture."""
    wild = Interval(speedup=1.1, ci_low=1e-6, ci_high=1e6)
    rows = [baseline(), *(row(ix, "IMPROVED", 1.01, 1.0 + ix / 10) for ix in range(1, n + 1))]
    rows[1] = msgspec.structs.replace(rows[1], gain=wild, vs_baseline=Interval(speedup=40.0, ci_low=30.0, ci_high=50.0))
    runs = {run: RunFacts(run=run, bench=bench(1.01)) for r in rows for run in r.runs}
    found = _coordinates(render(ReportData(task="t", epoch=1, rows=tuple(rows), runs=runs)))
    assert len(found) > 20
    assert [pair for pair in found if not 0 <= pair[0] <= pair[1]] == []


def test_a_version_that_was_not_timed_has_its_mark_too() -> None:
    """Breaks if an attempt whose program is the incumbent's leaves a gap in the drawing, or is drawn as timed."""
    rows = (baseline(), row(1, "IMPROVED", 1.2, 1.2), row(2, "SAME"), row(3, "SAME", 1.001), row(4, "WRONG"))
    html = render(ReportData(task="t", epoch=1, rows=rows))
    drawing = html.partition('aria-label="Chart of attempts"')[2].partition('class="legend"')[0]
    marks = re.findall(r'<rect [^>]*class="untimed"><title>([^<]*)', drawing)
    assert len(marks) == 2 and all(said.startswith("v002_try2 SAME") for said in marks)
    assert "same or ambiguous, not timed" in html


def test_cases_name_what_they_are_held_against() -> None:
    """Breaks if cases against the incumbent stand below a figure against the baseline without a word."""
    rows = (baseline(), row(1, "IMPROVED", 1.2, 1.2), row(2, "IMPROVED", 1.1, 1.3, incumbent="v001_try1"))
    runs = {"v002_try2.2": RunFacts(run="v002_try2.2", bench=bench(1.1))}
    html = render(ReportData(task="t", epoch=1, rows=rows, runs=runs))
    assert "<h2>Cases of v002_try2 against v001_try1</h2>" in html
    assert "The figure on top of this page is against the baseline." in html


@pytest.mark.parametrize(
    ("low", "high", "want"),
    [
        (0.99, 1.01, [0.99, 0.995, 1.0, 1.005, 1.01]),
        (0.9, 2.3, [1.0, 1.25, 1.5, 1.75, 2.0, 2.25]),
        (0.4, 9.0, [0.5, 1.0, 2.0, 5.0]),
        (0.001, 1000.0, [0.001, 0.1, 10.0, 1000.0]),
    ],
)
def test_axis_ticks_are_round_and_few(low: float, high: float, want: list[float]) -> None:
    """Breaks if a tick is 1.0350000001, lies outside, or there are a dozen of them."""
    found = ticks(low, high)
    assert len(found) <= 6
    assert all(low <= t <= high for t in found)
    assert found == want


def test_half_and_double_are_equally_far_from_one() -> None:
    """Breaks if the axis is linear, which would make slow-downs look small."""
    axis = span([0.5, 2.0], [], start=200, end=0)
    assert axis.at(1.0) == 100.0
    assert 200 - axis.at(0.5) == pytest.approx(axis.at(2.0))
