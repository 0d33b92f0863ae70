"""The verdicts and their order, on exact tables and on simulated machines."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kernelpilot_helpers import benchmark
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import Bench, judge
from kernelpilot_helpers.errors import BadRecord, NewerFormat, NotComparable, Refused
from kernelpilot_helpers.policy import ACCEPT, CLAIM, CPU, GPU, SCREEN, DevicePolicy, Tier
from tests.bench_sim import CASES, exact, samples, simulate
from tests.bench_sim import raw as make_raw

WOBBLE = (0.001, 0.001, -0.001, -0.001, 0.0, 0.0)
"""Six pairs, both orders alike: se = sqrt(4e-6 / 4 / 6) = 0.000408; t(0.989, 4) = 3.638, half width 0.00149."""


def per_pair(centre: float, wobble: Sequence[float] = WOBBLE) -> list[float]:
    return [centre + w for w in wobble]


def bench(
    logs: Mapping[str, Sequence[float]],
    *,
    tier: Tier = ACCEPT,
    device: DevicePolicy = GPU,
    required: frozenset[str] | None = None,
    bias: float = 0.0,
    max_pairs: int | None = None,
) -> Bench:
    need = frozenset(logs) if required is None else required
    return judge(
        [exact(logs)], tier=tier, device=device, required=need, timed=tuple(logs), bias_bound=bias,
        max_pairs=max_pairs,
    )  # fmt: skip


def test_the_interval_is_the_hand_computed_one() -> None:
    """Breaks if the unit is not the pair, the quantile is not t(1 - alpha/2, P - 2) or s is not over sqrt(P)."""
    got = bench({"c": per_pair(0.05)})
    assert got.half_width == pytest.approx(0.001485, abs=2e-6)
    assert got.geomean.speedup == pytest.approx(math.exp(0.05), rel=1e-6)
    assert got.geomean.ci_low == pytest.approx(math.exp(0.05 - 0.001485), rel=1e-5)
    assert (got.pairs, got.alpha, got.verdict) == (6, 0.022, "IMPROVED")
    assert (got.cases[0].a_us, got.cases[0].b_us) == pytest.approx((2500 * math.exp(0.05), 2500), rel=2e-3)


@pytest.mark.parametrize(
    ("centre", "verdict", "code"),
    [
        (0.05, "IMPROVED", "improved"),
        (0.004, "SAME", "same"),  # above zero beyond doubt, but below the least gain worth a name
        (0.0, "SAME", "same"),
        (-0.004, "SAME", "same"),
        (-0.02, "REGRESSED", "regressed"),
        (0.0095, "IMPROVED", "improved"),
    ],
)
def test_verdicts_by_the_place_of_the_interval(centre: float, verdict: str, code: str) -> None:
    got = bench({"c": per_pair(centre)})
    assert (got.verdict, got.reason.split(":")[0], got.partial, got.need_more) == (verdict, code, False, None)


def test_a_gain_within_the_bias_of_the_machine_is_none() -> None:
    """Breaks if the A/A floor's bias is not asked: the interval 1.85 .. 2.15 % is no gain at a bias of 2 %."""
    got = bench({"c": per_pair(0.02)}, bias=0.02)
    assert got.verdict == "AMBIGUOUS"
    assert bench({"c": per_pair(0.02)}, bias=0.01).verdict == "IMPROVED"
    assert bench({"c": per_pair(-0.02)}, bias=0.02).verdict == "AMBIGUOUS"


def test_one_case_twice_as_fast_and_one_twice_as_slow_is_no_gain() -> None:
    """Breaks if the mean is arithmetic (1.25x) or the ratio is upside down in one place."""
    got = bench({"up": per_pair(math.log(2)), "down": per_pair(-math.log(2))})
    assert got.geomean.speedup == pytest.approx(1.0)
    assert (got.verdict, got.partial) == ("AMBIGUOUS", True)
    assert got.reason.startswith("partial.required_case: case up +100")
    assert (got.best_case, got.worst_case) == ("up", "down")
    assert got.need_more is None, "more pairs cannot mend a case that is twice as slow"


def test_a_gain_that_costs_a_required_case_is_partial() -> None:
    """A real -3 % on a required case once passed because the interval's upper end was asked, not the lower."""
    logs = {"a": per_pair(0.2), "b": per_pair(-0.03)}
    assert (bench(logs).verdict, bench(logs).partial) == ("AMBIGUOUS", True)
    assert bench(logs, required=frozenset({"a"})).verdict == "IMPROVED"
    assert bench(logs, device=CPU).verdict == "IMPROVED", "a CPU's margin is 10 %"


def test_a_required_case_too_noisy_to_clear_asks_for_more() -> None:
    """-1 % with a half width of 3 % may still be non-inferior: the next look decides."""
    noisy = per_pair(-0.01, [w * 20 for w in WOBBLE])
    got = bench({"a": per_pair(0.3), "b": noisy})
    assert (got.verdict, got.partial, got.need_more) == ("AMBIGUOUS", True, 10)


def test_an_undecided_look_names_the_next_one() -> None:
    """Breaks if a demo that stops at 10 pairs is sent to 20, or the last look asks for another."""
    logs = {"c": per_pair(0.01, [w * 20 for w in WOBBLE])}
    assert bench(logs).need_more == 10
    assert bench(logs, max_pairs=10).need_more == 10
    assert bench(logs, max_pairs=8).need_more is None
    assert bench(logs, max_pairs=6).need_more is None
    got = bench(logs)
    assert got.reason.startswith("ambiguous.undecided: +1.01 % [-1.9")
    assert "half width 2.97 %; below 1.00 % would decide, about 54 pairs" in got.reason
    twenty = {"c": [*logs["c"], *logs["c"], *logs["c"], 0.05, -0.03]}
    last = bench(twenty)
    assert (last.verdict, last.need_more, last.pairs) == ("AMBIGUOUS", None, 20)


def test_pairs_between_looks_keep_the_tiers_error() -> None:
    got = bench({"c": [0.05, 0.06, 0.05, 0.06]})
    assert (got.pairs, got.alpha) == (4, 0.022)
    assert bench({"c": per_pair(0.05)}, tier=CLAIM).alpha == 0.01


@pytest.mark.parametrize(
    ("logs", "verdict"),
    [
        ([0.5, 0.6], "AMBIGUOUS"),
        ([-0.01, -0.02], "AMBIGUOUS"),
        ([-0.3, 0.01], "AMBIGUOUS"),
        ([-0.041, -0.05], "REGRESSED"),
    ],
)
def test_two_pairs_can_only_show_a_gross_loss(logs: list[float], verdict: str) -> None:
    """Breaks if the screen tier improves anything, or one bad pair of two condemns (limit 2 x 2 %)."""
    got = bench({"c": logs}, tier=SCREEN)
    assert (got.verdict, got.geomean.ci_low, got.half_width, got.need_more) == (verdict, None, None, None)


def test_screen_never_improves_even_with_pairs_to_spare() -> None:
    assert bench({"c": per_pair(0.5)}, tier=SCREEN).verdict == "AMBIGUOUS"
    assert bench({"c": per_pair(-0.5)}, tier=SCREEN).verdict == "REGRESSED"


def test_total_time_weighs_by_microseconds_saved() -> None:
    """A 2 us case has no vote beside a 2 ms case: geomean 1.41, total time 1.001."""
    items = []
    for pair in range(6):
        for case, a, b in (("tiny", 2000, 1000), ("big", 2_000_000, 2_000_000)):
            first = "AB"[pair % 2]
            items.append(samples(pair, case, "A", [a] * 3, first=first, calls=1))
            items.append(samples(pair, case, "B", [b] * 3, first=first, calls=1))
    jobs = [make_raw(items)]
    weights = {"tiny": 1.0, "big": 1.0}
    timed = ("tiny", "big")
    total = judge(jobs, tier=ACCEPT, device=GPU, required=frozenset(), timed=timed, weights=weights)
    assert total.objective == "total_time"
    assert total.geomean.speedup == pytest.approx(2002 / 2001)
    mean = judge(jobs, tier=ACCEPT, device=GPU, required=frozenset(), timed=timed)
    assert mean.objective == "geomean"
    assert mean.geomean.speedup == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(("objective", "weights"), [("worst", None), ("total_time", None), ("geomean", {"c": 1.0})])
def test_an_objective_not_supported_is_refused_by_name(objective: str, weights: dict[str, float] | None) -> None:
    with pytest.raises(Refused, match=f"not supported yet: objective.metric = {objective}"):
        judge(
            [exact({"c": per_pair(0.0)})], tier=ACCEPT, device=GPU, required=frozenset(), timed=("c",),
            weights=weights, objective=objective,
        )  # fmt: skip


@pytest.mark.parametrize("bias", [-0.1, math.nan, math.inf])
def test_a_bias_bound_that_is_no_bound_is_refused(bias: float) -> None:
    with pytest.raises(Refused, match="bias bound"):
        bench({"c": per_pair(0.1)}, bias=bias)


def test_odd_pairs_and_missing_cases_do_not_reach_a_verdict() -> None:
    with pytest.raises(NotComparable, match="5 pairs"):
        bench({"c": per_pair(0.1)[:5]})
    with pytest.raises(NotComparable, match="no samples of case d"):
        judge([exact({"c": per_pair(0.1)})], tier=ACCEPT, device=GPU, required=frozenset(), timed=("c", "d"))


def test_jobs_are_pooled_by_pair() -> None:
    """A second look continues the first: pairs 0..5 and 6..9 in two jobs are ten pairs."""
    rng = random.Random(3)
    jobs = [
        simulate(rng, pairs=6, gain=1.1, job_id="j1"),
        simulate(rng, pairs=4, first_pair=6, gain=1.1, job_id="j2"),
    ]
    got = judge(jobs, tier=ACCEPT, device=GPU, required=frozenset(CASES), timed=CASES)
    assert (got.pairs, got.verdict, got.job_ids) == (10, "IMPROVED", ("j1", "j2"))
    assert got.geomean.speedup == pytest.approx(1.1, rel=0.01)
    assert got.sign_p == pytest.approx(2 / 1024)


def gate(rng: random.Random, *, gain: float, order: float = 0.0) -> Bench:
    """One accept with its looks at 6, 10 and 20 pairs."""
    jobs: list[Raw] = []
    have, want = 0, 6
    while True:
        jobs.append(
            simulate(
                rng, pairs=want - have, first_pair=have, gain=gain, pair_sd=0.012, block_sd=0.003, order=order,
                blocks=3, cases=("c",),
            )
        )  # fmt: skip
        got = judge(jobs, tier=ACCEPT, device=CPU, required=frozenset({"c"}), timed=("c",))
        if got.need_more is None:
            return got
        have, want = want, got.need_more


def test_equal_programs_rarely_improve_over_three_looks() -> None:
    """400 gates of equal programs, pair sd 1.2 %: at most 5 % may say IMPROVED (20)."""
    rng = random.Random(20)
    verdicts = [gate(rng, gain=1.0).verdict for _ in range(400)]
    assert verdicts.count("IMPROVED") <= 20
    assert verdicts.count("REGRESSED") <= 20
    assert verdicts.count("IMPROVED") > 0, "a simulation that never errs does not test the error"


def test_a_real_gain_is_found() -> None:
    rng = random.Random(21)
    assert all(gate(rng, gain=1.10).verdict == "IMPROVED" for _ in range(50))


def test_an_order_effect_of_one_percent_is_not_a_gain() -> None:
    """Breaks if the start order is left in: half of the pairs are pushed by +1 %, half by -1 %."""
    rng = random.Random(22)
    gates = [
        judge(
            [simulate(rng, pairs=6, order=0.01, pair_sd=0.001, block_sd=0.002)], tier=ACCEPT, device=GPU,
            required=frozenset(CASES), timed=CASES,
        )
        for _ in range(40)
    ]  # fmt: skip
    assert sum(g.verdict == "IMPROVED" for g in gates) == 0
    assert sum(g.verdict == "SAME" for g in gates) >= 38
    assert sum(g.order_effect for g in gates) / 40 == pytest.approx(0.01, abs=0.0005)


def test_a_bench_survives_the_file_and_a_foreign_file_is_refused() -> None:
    got = bench({"c": [0.1, 0.2]}, tier=SCREEN)
    assert benchmark.parse(benchmark.dump(got)) == got
    assert b'"ci_low": null' in benchmark.dump(got), "an infinite interval has no number in JSON"
    with pytest.raises(BadRecord, match="verdict"):
        benchmark.parse(benchmark.dump(got).replace(b"AMBIGUOUS", b"BETTER", 1), at="runs/x/bench.json")
    with pytest.raises(NewerFormat):
        benchmark.parse(benchmark.dump(got).replace(b'"version": 1', b'"version": 2', 1))


def test_the_documented_example_is_a_bench() -> None:
    """Breaks if a field is renamed, added or dropped and the page is not."""
    page = (Path(__file__).parents[1] / "docs/formats/bench.md").read_text(encoding="utf-8")
    block = page.split("```json\n")[1].split("```")[0]
    assert benchmark.parse(block.encode()).verdict == "IMPROVED"
