"""One output's statistics against the limits: neither gullible nor pedantic."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kernelpilot_helpers.correctness import faults
from kernelpilot_helpers.correctness.limits import together, yard
from tests.correct_sim import GOOD, stats

SHAPE = (64, 1000)


def kinds(shape: tuple[int, int] | None = SHAPE, **changed: Any) -> list[str]:
    return [f.kind for f in faults(stats(**changed), shape=shape)]


def test_as_good_as_the_baseline_passes() -> None:
    assert faults(GOOD, shape=SHAPE) == ()


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ({"rms": 0.6}, {"rms": 0.601}),  # 1.5 x 0.4
        ({"base_rms": 0.0, "rms": 0.43}, {"base_rms": 0.0, "rms": 0.44}),  # 1.5 x 0.29: rounding is legal
        ({"row_ratio": 3.0, "base_max": 1.0}, {"row_ratio": 3.01, "base_max": 1.0}),
        ({"row_ratio": 5.0}, {"row_ratio": 5.01}),
        ({"col_ratio": 3.0, "base_max": 1.0}, {"col_ratio": 3.01, "base_max": 1.0}),
        ({"col_ratio": 5.0}, {"col_ratio": 5.01}),
        ({"tile_ratio": 3.0, "base_max": 1.0}, {"tile_ratio": 3.01, "base_max": 1.0}),
        ({"tile_ratio": 5.0}, {"tile_ratio": 5.01}),
        ({"max": 6.0}, {"max": 6.01}),  # 2 x 2 + 2 ulp
        ({"base_rms": 0.2, "rms": 0.2, "bias": 0.25}, {"base_rms": 0.2, "rms": 0.2, "bias": 0.26}),  # 0.25 ulp slack
        ({"bias": 0.3}, {"bias": 0.31}),  # 64 rows: 4 x 1.5 x 0.4 / 8
        ({"bias": 0.39, "bias_se": 0.1}, {"bias": 0.41, "bias_se": 0.1}),  # 4 sigma
        ({"bias": -0.54, "base_bias": -0.3}, {"bias": -0.56, "base_bias": -0.3}),
    ],
)
def test_each_limit_holds_at_its_edge(inside: dict[str, Any], outside: dict[str, Any]) -> None:
    """Breaks if a limit moves, loses its floor, or is compared with a sign."""
    assert kinds(**inside) == []
    assert kinds(**outside) == ["tolerance"]


@pytest.mark.parametrize(
    "field", ["rms", "max", "bias", "bias_se", "base_rms", "base_max", "base_bias", "row_ratio", "tile_ratio"]
)
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e308])
def test_a_statistic_that_is_no_number_never_passes(field: str, value: float) -> None:
    """NaN compares false with every limit, and an infinite baseline error would allow anything."""
    changed: dict[str, Any] = {field: value}
    assert "nonfinite" in kinds(**changed)


def test_nonfinite_and_unwritten_are_faults_of_their_own() -> None:
    assert kinds(nonfinite_equal=False) == ["nonfinite"]
    assert kinds(unwritten=1) == ["unwritten"]
    assert kinds(unwritten=64000, nonfinite_equal=False, rms=0.0) == ["nonfinite", "unwritten"]


def test_no_compared_element_is_not_a_pass() -> None:
    assert kinds(n=0) == ["tolerance"]


def test_integer_outputs_may_not_differ_at_all() -> None:
    assert kinds(exact=True, rms=0.0, max=0.0) == []
    assert kinds(exact=True, rms=0.001, max=1.0) == ["tolerance"]
    assert kinds(exact=True, rms=1.0, max=9.0, unwritten=3) == ["unwritten"]
    # A poison byte may be the right answer; what equals the reference everywhere was written.
    assert kinds(exact=True, rms=0.0, max=0.0, unwritten=3) == []


def test_a_column_of_one_element_is_not_held_to_an_rms() -> None:
    """With one row every column is one element: at 4 ulp, legal by the limit of 6, it has 10 x the rms of 0.4."""
    assert kinds((1, 1000), n=1000, col_ratio=10.0, max=4.0) == []
    assert kinds((64, 1000), col_ratio=10.0, max=4.0) == ["tolerance"]
    assert kinds(None, col_ratio=10.0, max=4.0) == ["tolerance"], "an unknown shape gets no allowance"
    # One element at 6 ulp is 15 x 0.4; beyond sqrt(6^2 + 0.4^2) = 6.013, 15.03 x, nothing is legal.
    assert kinds((1, 1000), n=1000, col_ratio=15.1) == ["tolerance"]


def test_one_row_may_stray_further_than_many() -> None:
    """One rounding of a row's scale moves the row: 1 row may reach 5.5 x, 16 rows 2 x, 64 rows and more 1.5 x.

    An honest fused norm of one row, judged by rms <= 1.5 x the baseline's, failed in every second job.
    """
    assert kinds((1, 64000), rms=2.1, row_ratio=5.2, max=4.0) == []
    assert kinds((1, 64000), rms=2.3, max=4.0) == ["tolerance"]
    assert kinds((16, 4000), rms=0.78) == []
    assert kinds((16, 4000), rms=0.85) == ["tolerance"]
    assert kinds((64, 1000), rms=0.61) == ["tolerance"]


def test_the_baseline_is_measured_over_several_calls() -> None:
    """A lucky call of the baseline (0.3 ulp) is no yardstick for one of 0.65; over all calls it makes 0.5."""
    lucky = stats(base_rms=0.3, rms=0.65)
    assert [f.kind for f in faults(lucky, shape=SHAPE)] == ["tolerance"]
    over = yard([lucky, stats(base_rms=0.64)])
    assert over.unit == pytest.approx(math.sqrt((0.09 + 0.4096) / 2))
    assert faults(lucky, shape=SHAPE, over=over) == ()
    assert yard([stats(base_rms=1e308)]).unit == 0.29, "a figure that is no number is no yardstick"


def test_calls_that_pass_one_by_one_may_fail_together() -> None:
    """One row at 1.8 ulp is chance (limit 2.2); forty of them, 20 independent rows, are not (limit 1.9 x 0.4)."""
    one = stats(rms=1.8, max=4.0)
    assert faults(one, shape=(1, 64000)) == ()
    assert [f.kind for f in together([one] * 40, rows=1)] == ["tolerance"]
    assert together([stats(rms=0.5)] * 40, rows=1) == ()
    assert together([one], rows=1) == ()


def test_a_small_bias_that_never_goes_away_is_found() -> None:
    """0.6 ulp of one row is within four sigma of one row; over 40 calls four sigma is 0.36 ulp."""
    one = stats(bias=0.6, max=4.0)
    assert faults(one, shape=(1, 64000)) == ()
    assert [f.text for f in together([one] * 40, rows=1)] == ["a bias of +0.6 ulp over 40 calls (limit 0.358)"]
    assert together([stats(bias=0.6), stats(bias=-0.6)] * 20, rows=1) == ()


def test_a_ragged_last_tile_is_judged_by_its_own_size() -> None:
    """The tile (0, 15) of a 1 x 961 output holds one element, tile (0, 14) holds 64."""
    assert kinds((1, 961), n=961, tile_ix=(0, 15), tile_ratio=10.0) == []
    assert kinds((1, 961), n=961, tile_ix=(0, 14), tile_ratio=10.0) == ["tolerance"]


def test_a_correctly_rounded_scalar_passes() -> None:
    """One output element, half an ulp off, baseline 0.1 ulp off: rms and bias of one number are that number."""
    one = {"n": 1, "rms": 0.5, "max": 0.5, "bias": 0.5, "bias_se": 0.0, "base_rms": 0.1, "base_max": 0.1}
    ratios = {"row_ratio": 1.7, "col_ratio": 1.7, "tile_ratio": 1.7, "tile_ix": (0, 0)}
    assert kinds((1, 1), **one, **ratios) == []
    assert kinds((1, 1), **{**one, "rms": 3.0, "max": 3.0, "bias": 3.0}, **ratios) != []
