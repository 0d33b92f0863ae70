"""From fitted log ratios to a verdict: the limits and their order, whatever the samples came from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.policy import POLICY, DevicePolicy, Policy, Tier
from kernelpilot_helpers.units import percent

from .bench import Verdict
from .crossover import Fit


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """The limits of one comparison; log ratios."""

    alpha: float
    bias: float
    point: float
    band: float
    margin: float
    gross: float
    may_improve: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """A verdict; ``open`` says whether more pairs may change it."""

    verdict: Verdict
    reason: str
    partial: bool = False
    open: bool = False


def show(log_ratio: float) -> str:
    """A log ratio as a signed percentage."""
    return percent(math.exp(log_ratio), digits=2)


def shown(one: Fit, alpha: float) -> str:
    """Estimate and interval in words."""
    ends = one.interval(alpha)
    return show(one.mu) + (f" [{show(ends[0])}, {show(ends[1])}]" if ends else " (two pairs give no interval)")


def gains(one: Fit, rule: Rule, alpha: float) -> bool:
    """Faster beyond noise and bias, by enough to be worth a name."""
    ends = one.interval(alpha)
    return ends is not None and ends[0] > rule.bias and one.mu >= rule.point


def loses(one: Fit, rule: Rule) -> bool:
    """Slower beyond noise and bias, by enough to be worth a name."""
    ends = one.interval(rule.alpha)
    return ends is not None and ends[1] < -rule.bias and one.mu <= -rule.point


def _undecided(overall: Fit, rule: Rule, pairs: int) -> str:
    half = overall.half_width(rule.alpha)
    text = f"ambiguous.undecided: {shown(overall, rule.alpha)}"
    if half is None:
        return text
    size = abs(overall.mu)
    wanted = max(size - rule.bias if size >= rule.point else 0.0, rule.band - size)
    text += f", half width {half * 100:.2f} %"
    if wanted <= 0.0 or half <= wanted:
        return f"{text}; the estimate lies between the limits, so more pairs alone may not decide"
    needed = 2 * math.ceil(pairs * (half / wanted) ** 2 / 2)
    return f"{text}; below {wanted * 100:.2f} % would decide, about {needed} pairs at this noise"


def _screen(overall: Fit, values: Sequence[float], rule: Rule) -> Decision:
    """Two pairs can show a gross loss and nothing else."""
    told = shown(overall, rule.alpha)
    if overall.se is None and max(values) < -rule.gross:
        text = f"regressed.screen: {told}; every pair is beyond {show(-rule.gross)}"
        return Decision(verdict="REGRESSED", reason=text)
    if loses(overall, rule):
        return Decision(verdict="REGRESSED", reason=f"regressed.screen: {told}")
    text = f"ambiguous.screen: {told}; the screen tier can only find a regression"
    if rule.may_improve:
        text = f"ambiguous.undecided: {told}"
    return Decision(verdict="AMBIGUOUS", reason=text, open=True)


def _held_back(cases: Mapping[str, Fit], required: frozenset[str], rule: Rule) -> tuple[list[str], bool]:
    """Required cases not shown to be non-inferior, and whether more pairs may clear them all."""
    floor = math.log1p(-rule.margin)
    ends = {c: cases[c].interval(rule.alpha) for c in sorted(required)}
    late = [c for c, e in ends.items() if e is None or e[0] <= floor]
    lost = any(e is not None and e[1] < floor for e in ends.values())
    return late, not lost


def decide(
    overall: Fit, cases: Mapping[str, Fit], values: Sequence[float], *, required: frozenset[str], rule: Rule
) -> Decision:
    """The verdicts in their order: REGRESSED, IMPROVED, partial, SAME, AMBIGUOUS."""
    if not rule.may_improve or overall.se is None:
        return _screen(overall, values, rule)
    told = shown(overall, rule.alpha)
    if loses(overall, rule):
        return Decision(verdict="REGRESSED", reason=f"regressed: {told}")
    late, clearable = _held_back(cases, required, rule)
    better = gains(overall, rule, rule.alpha)
    if better and not late:
        return Decision(verdict="IMPROVED", reason=f"improved: {told}")
    # One case out of many is a gain by luck more often than the objective is: share the error among them.
    winners = [c for c, one in sorted(cases.items()) if gains(one, rule, rule.alpha / len(cases))]
    if late and (better or winners):
        worst = min(late, key=lambda c: cases[c].mu)
        gain = told if better else f"case {winners[0]} {show(cases[winners[0]].mu)}"
        limit = show(math.log1p(-rule.margin))
        text = f"{gain}, but required case {worst} {shown(cases[worst], rule.alpha)} is not above {limit}"
        reason = f"partial.required_case: {text}"
        return Decision(verdict="AMBIGUOUS", reason=reason, partial=True, open=clearable)
    ends = overall.interval(rule.alpha)
    if ends and -rule.band < ends[0] and ends[1] < rule.band:
        return Decision(verdict="SAME", reason=f"same: {told} lies within {rule.band * 100:.2g} % of equal")
    return Decision(verdict="AMBIGUOUS", reason=_undecided(overall, rule, len(values)), open=True)


def next_look(tier: Tier, pairs: int, max_pairs: int | None) -> int | None:
    """Pairs in all at the tier's next look, None where there is none up to ``max_pairs``."""
    cap = math.inf if max_pairs is None else max_pairs
    return next((look for look in tier.looks if pairs < look <= cap), None)


def rule_of(tier: Tier, device: DevicePolicy, bias_bound: float, policy: Policy = POLICY) -> Rule:
    """The limits as log ratios. Raises Refused for a bias bound that is not a number from 0."""
    if not 0.0 <= bias_bound < math.inf:
        raise Refused(f"bias bound {bias_bound}", where="A/A floor", fix="measure the A/A floor again")
    return Rule(
        alpha=tier.alpha,
        bias=bias_bound,
        point=math.log1p(policy.improved_point),
        band=math.log1p(policy.same_band),
        margin=device.noninferiority,
        gross=policy.screen_gross * device.noninferiority,
        may_improve=tier.may_improve,
    )
