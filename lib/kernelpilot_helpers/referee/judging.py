"""The bench of some raws under the facts of an attempt, and its mean as a row keeps it."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpilot_helpers import benchmark, policy
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.ledger.model import Interval
from kernelpilot_helpers.referee.state import Facts


def judge(facts: Facts, raws: Sequence[Raw], tier: policy.Tier) -> Bench:
    """The bench of these raws under the facts of an attempt; ``tier`` may be one fixed look."""
    return benchmark.judge(
        raws,
        tier=tier,
        device=facts.device,
        required=facts.required,
        timed=facts.timed,
        weights=facts.weights,
        bias_bound=facts.bias_bound,
        max_pairs=facts.max_pairs,
        cases=facts.cases,
        ceilings=facts.ceilings,
    )


def interval(mean: benchmark.Interval) -> Interval | None:
    """A mean as a row keeps it; None where two pairs gave no interval."""
    if mean.ci_low is None or mean.ci_high is None:
        return None
    return Interval(speedup=mean.speedup, ci_low=mean.ci_low, ci_high=mean.ci_high)
