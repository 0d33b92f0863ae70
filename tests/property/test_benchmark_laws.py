"""Laws of the benchmark statistics."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import Bench, judge
from kernelpilot_helpers.policy import ACCEPT, CPU
from tests.bench_sim import CASES, simulate

pytestmark = pytest.mark.property
FLIP = {"IMPROVED": "REGRESSED", "REGRESSED": "IMPROVED", "SAME": "SAME", "AMBIGUOUS": "AMBIGUOUS"}


def bench(one: Raw, arms: tuple[str, str] = ("A", "B")) -> Bench:
    return judge([one], tier=ACCEPT, device=CPU, required=frozenset(), timed=CASES, arms=arms)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), gain=st.floats(0.5, 2.0), pairs=st.sampled_from([4, 6, 10]))
def test_swapping_the_arms_inverts_the_interval(seed: int, gain: float, pairs: int) -> None:
    """Breaks if any step favours one arm: a mean of ratios, a one-sided median, a lopsided limit."""
    one = simulate(random.Random(seed), pairs=pairs, gain=gain, blocks=4, order=0.003)
    there, back = bench(one), bench(one, ("B", "A"))
    assert there.geomean.ci_low is not None and back.geomean.ci_high is not None
    assert there.geomean.speedup * back.geomean.speedup == pytest.approx(1.0)
    assert there.geomean.ci_low * back.geomean.ci_high == pytest.approx(1.0)
    assert there.order_effect == pytest.approx(-back.order_effect)
    assert FLIP[there.verdict] == back.verdict
    for x, y in zip(there.cases, back.cases, strict=True):
        assert x.speedup * y.speedup == pytest.approx(1.0)
        assert (x.a_us, x.b_us) == (y.b_us, y.a_us)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), order=st.randoms(use_true_random=False))
def test_pairs_of_one_start_order_may_trade_places(seed: int, order: random.Random) -> None:
    """Breaks if the number of a pair, or the place of a sample in the file, carries weight."""
    one = simulate(random.Random(seed), pairs=6, gain=1.03, blocks=4, order=0.01)
    even, odd = [0, 2, 4], [1, 3, 5]
    to = dict(zip([0, 2, 4, 1, 3, 5], [*order.sample(even, 3), *order.sample(odd, 3)], strict=True))
    moved = [msgspec.structs.replace(s, pair=to[s.pair]) for s in one.samples]
    order.shuffle(moved)
    there, back = bench(one), bench(msgspec.structs.replace(one, samples=tuple(moved)))
    assert there.geomean.speedup == pytest.approx(back.geomean.speedup, rel=1e-12)
    assert there.half_width == pytest.approx(back.half_width, rel=1e-9)
    assert there.verdict == back.verdict


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), factor=st.floats(0.25, 4.0))
def test_a_constant_factor_moves_the_interval_and_not_its_width(seed: int, factor: float) -> None:
    """Breaks if an average is taken of times or ratios instead of their logarithms."""
    one = simulate(random.Random(seed), pairs=6, blocks=4)
    slower = [
        msgspec.structs.replace(s, ns=tuple(round(t * factor * 1000) for t in s.ns))
        if s.arm == "A"
        else msgspec.structs.replace(s, ns=tuple(t * 1000 for t in s.ns))
        for s in one.samples
    ]
    there, back = bench(one), bench(msgspec.structs.replace(one, samples=tuple(slower)))
    assert math.log(back.geomean.speedup / there.geomean.speedup) == pytest.approx(math.log(factor), abs=1e-7)
    assert back.half_width == pytest.approx(there.half_width, abs=1e-7)
