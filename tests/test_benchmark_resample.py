"""Gates replayed from a pool: the rules are the referee's, the draws are balanced, and several baselines combine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

import pytest

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import Gate, Pool, against_fastest, gate, pool_of
from kernelpilot_helpers.errors import NotComparable, Refused
from kernelpilot_helpers.policy import ACCEPT, GPU, SCREEN, Tier
from tests.bench_sim import exact, look, on_gpu, simulate

T = TypeVar("T")
CASES = ("c0", "c1")
NEED = frozenset(CASES)


def pool(centre: float, *, wobble: float = 0.001, pairs: int = 8, order: float = 0.0) -> Pool:
    """Log ratios centre +- wobble, in either start order; ``order`` is added where A starts first."""
    logs = [centre + (order if p % 2 == 0 else -order) + (wobble if p // 2 % 2 else -wobble) for p in range(pairs)]
    return pool_of([exact(dict.fromkeys(CASES, logs))], timed=CASES, effect="x")


class Scripted:
    """Instead of chance: hands out a pool's members in turn, starting where the script says, and keeps what it gave."""

    def __init__(self, *starts: int) -> None:
        self.starts = list(starts)
        self.asked: list[int] = []

    def choices(self, population: Sequence[T], *, k: int) -> list[T]:
        self.asked.append(k)
        start = self.starts.pop(0) if self.starts else 0
        return [population[(start + i) % len(population)] for i in range(k)]


def run(one: Pool, rng: Scripted | random.Random, tier: Tier = ACCEPT, bias: float = 0.0) -> Gate:
    return gate(one, tier=tier, device=GPU, required=NEED, rng=rng, bias_bound=bias)


def test_a_clear_gain_takes_one_look_and_one_confirmation() -> None:
    rng = Scripted()
    got = run(pool(0.05), rng)
    assert (got.verdict, got.first, got.pairs, got.looks) == ("IMPROVED", "IMPROVED", 12, 1)
    assert rng.asked == [3, 3, 3, 3], "half of either start order, twice"
    assert got.point == pytest.approx(0.05, abs=1e-3)


def test_what_fresh_draws_do_not_show_again_is_no_gain() -> None:
    """The first draw takes the pairs of 5 %, the confirmation those of -0.1 %: breaks if the two are pooled."""
    logs = [0.05, 0.05, 0.051, 0.051, 0.049, 0.049, -0.001, -0.001, 0.0, 0.0, -0.001, -0.001]
    mixed = pool_of([exact(dict.fromkeys(CASES, logs))], timed=CASES, effect="mixed")
    got = run(mixed, Scripted(0, 0, 3, 3))
    assert (got.first, got.verdict, got.pairs, got.partial) == ("IMPROVED", "AMBIGUOUS", 12, False)
    assert got.reason.startswith("confirm.failed: ")


def test_an_undecided_gate_draws_up_to_the_last_look() -> None:
    rng = Scripted()
    got = run(pool(0.004, wobble=0.03), rng)
    assert (got.verdict, got.pairs, got.looks) == ("AMBIGUOUS", 20, 3)
    assert rng.asked == [3, 3, 2, 2, 5, 5]
    assert run(pool(-0.3), Scripted(), SCREEN).verdict == "REGRESSED"


def test_the_bias_bound_and_the_order_effect_are_the_rules_own() -> None:
    assert run(pool(0.02), Scripted(), bias=0.03).verdict == "AMBIGUOUS"
    assert run(pool(0.0, order=0.02), Scripted()).verdict == "SAME", "an order effect is fitted out"


def test_a_seed_gives_the_same_gates_and_null_pools_few_false_gains() -> None:
    """A/A pairs of 0.3 %: 300 gates."""
    null = pool_of(
        [simulate(random.Random(5), pairs=40, pair_sd=0.003, block_sd=0.002, cases=CASES)], timed=CASES, effect="A/A"
    )
    first = [run(null, rng) for rng in [random.Random(7)] for _ in range(300)]
    assert first == [run(null, rng) for rng in [random.Random(7)] for _ in range(300)]
    assert sum(g.verdict == "IMPROVED" for g in first) == 0
    assert sum(g.verdict == "SAME" for g in first) > 250


def test_a_pool_needs_both_orders_and_leaves_hot_pairs_out() -> None:
    one = pool(0.05)
    with pytest.raises(Refused, match="no pair of one start order"):
        run(Pool(effect="half", pairs=tuple(p for p in one.pairs if p.order == 1)), Scripted())
    hot = on_gpu(exact({c: [0.01 * p for p in range(6)] for c in CASES}), looks=[look(3, "hw_thermal")])
    kept = pool_of([hot], timed=CASES, effect="hot")
    assert [round(p.cells["c0"].log_ratio, 6) for p in kept.pairs] == [0.0, 0.01, 0.04, 0.05]


# --- several baselines


def job(c0: float, c1: float) -> Raw:
    """Log ratios of two cases, with a wobble; the baseline's own times follow from B's, 1 ms times the ratio."""
    wobble = (0.001, 0.001, -0.001, -0.001, 0.0, 0.0)
    return exact({"c0": [c0 + w for w in wobble], "c1": [c1 + w for w in wobble]})


def test_each_case_is_held_against_its_fastest_baseline() -> None:
    """Baseline 0 is the faster on c0 (2 % slower than B), baseline 1 on c1 (3 %): 2.5 % together, not 6 or 6.5 %."""
    got = against_fastest({0: [job(0.02, 0.10)], 1: [job(0.10, 0.03)]}, timed=CASES, tier=ACCEPT)
    assert got.chosen == {"c0": 0, "c1": 1}
    assert got.interval.speedup == pytest.approx(1.02532, abs=1e-4)
    assert got.interval.ci_low is not None and got.interval.ci_low > 1.023


def test_jobs_are_joined_by_start_order_whatever_their_order_of_pairs() -> None:
    """With +-1 % by start order, joining an A-first pair with a B-first one would hide the effect in the noise."""
    push = (0.01, -0.01)
    ab = exact({c: [0.05 + push[p % 2] for p in range(6)] for c in CASES}, firsts="ABABAB")
    ba = exact({c: [0.04 + push[(p + 1) % 2] for p in range(8)] for c in CASES}, firsts="BABABABA")
    swapped = exact({"c0": [0.2] * 8, "c1": [0.04 + push[(p + 1) % 2] for p in range(8)]}, firsts="BABABABA")
    for other, chosen in ((ba, {"c0": 1, "c1": 1}), (swapped, {"c0": 0, "c1": 1})):
        got = against_fastest({0: [ab], 1: [other]}, timed=CASES, tier=ACCEPT)
        assert got.chosen == chosen
        assert got.interval.ci_high is not None and got.interval.ci_low is not None
        assert got.interval.ci_high - got.interval.ci_low < 1e-4


def test_no_baseline_at_all_is_refused() -> None:
    with pytest.raises(NotComparable, match="no baseline was measured"):
        against_fastest({}, timed=CASES, tier=ACCEPT)
