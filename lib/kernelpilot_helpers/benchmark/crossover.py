"""Small-sample statistics with the standard library: t quantiles, the cross-over fit, the sign test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

ITERATIONS = 300


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function, evaluated forwards with guarded denominators."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    total = d
    for m in range(1, ITERATIONS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1.0 + term * d, 1.0 + term / c
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            total *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return total


def _beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _beta(b, a, 1.0 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _beta_fraction(a, b, x) / a


def _upper_tail(t: float, df: int) -> float:
    return 0.5 * _beta(df / 2.0, 0.5, df / (df + t * t))


@lru_cache(maxsize=256)
def t_quantile(p: float, df: int) -> float:
    """The value below which Student's t with ``df`` degrees of freedom lies with probability ``p``.

    Raises ValueError for p outside (0, 1) or df below 1.
    """
    if not 0.0 < p < 1.0 or df < 1:
        raise ValueError(f"t quantile of p = {p}, df = {df}")
    if p < 0.5:
        return -t_quantile(1.0 - p, df)
    low, high = 0.0, 2.0
    while _upper_tail(high, df) > 1.0 - p:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if _upper_tail(middle, df) > 1.0 - p else (low, middle)
    return 0.5 * (low + high)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """Least squares of ``g = mu + gamma * order`` over balanced pairs; log ratios throughout."""

    mu: float
    gamma: float
    se: float | None
    """Standard error of mu; None with two pairs, which leave nothing to estimate it from."""
    df: int

    def half_width(self, alpha: float) -> float | None:
        """Half width of the two-sided ``1 - alpha`` interval of mu."""
        return None if self.se is None else t_quantile(1.0 - alpha / 2.0, self.df) * self.se

    def interval(self, alpha: float) -> tuple[float, float] | None:
        """The two-sided ``1 - alpha`` interval of mu."""
        half = self.half_width(alpha)
        return None if half is None else (self.mu - half, self.mu + half)


def fit(values: Sequence[float], orders: Sequence[int]) -> Fit:
    """Fit one log ratio per pair; ``orders`` holds +1 and -1 equally often.

    Raises ValueError for no pairs or an unbalanced order, where mu and gamma would not be independent.
    """
    count = len(values)
    if count == 0 or sum(orders) != 0 or any(s not in (1, -1) for s in orders):
        raise ValueError(f"orders {list(orders)} are not balanced over {count} pairs")
    mu = math.fsum(values) / count
    gamma = math.fsum(s * g for s, g in zip(orders, values, strict=True)) / count
    df = count - 2
    if df == 0:
        return Fit(mu=mu, gamma=gamma, se=None, df=0)
    square = math.fsum((g - mu - gamma * s) ** 2 for s, g in zip(orders, values, strict=True))
    return Fit(mu=mu, gamma=gamma, se=math.sqrt(square / df / count), df=df)


def sign_p(values: Sequence[float]) -> float:
    """Exact two-sided sign test that positive and negative values are equally likely; zeros are left out.

    >>> sign_p([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    0.03125
    """
    kept = [v for v in values if v != 0]
    fewer = min(sum(v > 0 for v in kept), sum(v < 0 for v in kept))
    tail: int = sum(math.comb(len(kept), k) for k in range(fewer + 1))
    return float(min(1.0, 2 * tail / 2 ** len(kept)))
