"""Small-sample statistics against published table values and hand-worked sums."""

from __future__ import annotations

import math

import pytest

from kernelpilot_helpers.benchmark import fit, sign_p, t_quantile


@pytest.mark.parametrize(
    ("p", "df", "want"),
    [
        (0.975, 1, 12.7062),
        (0.975, 4, 2.7764),
        (0.95, 4, 2.1318),
        (0.995, 8, 3.3554),
        (0.995, 18, 2.8784),
        (0.99, 30, 2.4573),
        (0.975, 120, 1.9799),
    ],
)
def test_t_quantiles_are_those_of_the_printed_tables(p: float, df: int, want: float) -> None:
    """Breaks if the beta function or the tail is wrong, which would bend every interval."""
    assert t_quantile(p, df) == pytest.approx(want, abs=6e-5)


def test_t_quantile_has_a_closed_form_at_two_degrees_of_freedom() -> None:
    """With df = 2 the quantile is (2p - 1) * sqrt(2 / (4p(1 - p))); 0.989 is the tail of one 2.2 % look."""
    p = 0.989
    assert t_quantile(p, 2) == pytest.approx((2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p))), rel=1e-10)
    assert t_quantile(0.011, 2) == pytest.approx(-t_quantile(0.989, 2))
    assert t_quantile(0.5, 7) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("p", "df"), [(0.0, 4), (1.0, 4), (0.9, 0)])
def test_t_quantile_refuses_what_has_no_quantile(p: float, df: int) -> None:
    with pytest.raises(ValueError, match="t quantile"):
        t_quantile(p, df)


def test_the_order_effect_is_fitted_out() -> None:
    """Breaks if a start-order effect of 10 stays in the mean or in the residuals.

    Values 12, -9, 11, -6 with orders +, -, +, -: mu = 2, gamma = 9.5, residuals .5, -1.5, -.5, 1.5;
    squares sum to 5, df 2, se = sqrt(5 / 2 / 4) = 0.790569.
    """
    got = fit([12.0, -9.0, 11.0, -6.0], [1, -1, 1, -1])
    assert (got.mu, got.gamma, got.df) == (2.0, 9.5, 2)
    assert got.se == pytest.approx(0.790569, abs=1e-6)
    assert got.half_width(0.05) == pytest.approx(4.302653 * 0.790569, abs=1e-5)


def test_two_pairs_give_an_estimate_and_no_interval() -> None:
    got = fit([0.1, 0.3], [1, -1])
    assert got.mu == pytest.approx(0.2)
    assert got.half_width(0.05) is None
    assert got.interval(0.05) is None


@pytest.mark.parametrize("orders", [[1, 1], [1, -1, 1], [], [2, -2]])
def test_an_unbalanced_order_is_refused(orders: list[int]) -> None:
    with pytest.raises(ValueError, match="balanced"):
        fit([0.0] * len(orders), orders)


@pytest.mark.parametrize(
    ("values", "want"),
    [([1.0] * 6, 2 / 64), ([1.0] * 5 + [-1.0], 14 / 64), ([0.0, 0.0], 1.0), ([], 1.0), ([1.0, -1.0], 1.0)],
)
def test_sign_test_is_exact(values: list[float], want: float) -> None:
    """Two-sided: 6 of 6 is 2/64; 5 of 6 is 2 * (1 + 6) / 64; ties say nothing."""
    assert sign_p(values) == pytest.approx(want)
