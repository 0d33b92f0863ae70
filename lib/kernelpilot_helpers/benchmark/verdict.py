"""``judge``: IMPROVED, SAME, REGRESSED or AMBIGUOUS, from an interval over cross-over pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.policy import POLICY, DevicePolicy, Policy, Tier
from kernelpilot_helpers.units import percent

from .bench import Bench, CaseBench, Interval, Verdict
from .crossover import Fit, fit, sign_p
from .table import Table, pair_values, tabulate

Objective = Literal["geomean", "total_time"]


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


def _show(log_ratio: float) -> str:
    return percent(math.exp(log_ratio), digits=2)


def _shown(one: Fit, alpha: float) -> str:
    ends = one.interval(alpha)
    return _show(one.mu) + (f" [{_show(ends[0])}, {_show(ends[1])}]" if ends else " (two pairs give no interval)")


def _gains(one: Fit, rule: Rule, alpha: float) -> bool:
    ends = one.interval(alpha)
    return ends is not None and ends[0] > rule.bias and one.mu >= rule.point


def _loses(one: Fit, rule: Rule) -> bool:
    ends = one.interval(rule.alpha)
    return ends is not None and ends[1] < -rule.bias and one.mu <= -rule.point


def _undecided(overall: Fit, rule: Rule, pairs: int) -> str:
    half = overall.half_width(rule.alpha)
    text = f"ambiguous.undecided: {_shown(overall, rule.alpha)}"
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
    shown = _shown(overall, rule.alpha)
    if overall.se is None and max(values) < -rule.gross:
        text = f"regressed.screen: {shown}; every pair is beyond {_show(-rule.gross)}"
        return Decision(verdict="REGRESSED", reason=text)
    if _loses(overall, rule):
        return Decision(verdict="REGRESSED", reason=f"regressed.screen: {shown}")
    text = f"ambiguous.screen: {shown}; the screen tier can only find a regression"
    if rule.may_improve:
        text = f"ambiguous.undecided: {shown}"
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
    shown = _shown(overall, rule.alpha)
    if _loses(overall, rule):
        return Decision(verdict="REGRESSED", reason=f"regressed: {shown}")
    late, clearable = _held_back(cases, required, rule)
    gains = _gains(overall, rule, rule.alpha)
    if gains and not late:
        return Decision(verdict="IMPROVED", reason=f"improved: {shown}")
    # One case out of many is a gain by luck more often than the objective is: share the error among them.
    winners = [c for c, one in sorted(cases.items()) if _gains(one, rule, rule.alpha / len(cases))]
    if late and (gains or winners):
        worst = min(late, key=lambda c: cases[c].mu)
        gain = shown if gains else f"case {winners[0]} {_show(cases[winners[0]].mu)}"
        limit = _show(math.log1p(-rule.margin))
        text = f"{gain}, but required case {worst} {_shown(cases[worst], rule.alpha)} is not above {limit}"
        reason = f"partial.required_case: {text}"
        return Decision(verdict="AMBIGUOUS", reason=reason, partial=True, open=clearable)
    ends = overall.interval(rule.alpha)
    if ends and -rule.band < ends[0] and ends[1] < rule.band:
        return Decision(verdict="SAME", reason=f"same: {shown} lies within {rule.band * 100:.2g} % of equal")
    return Decision(verdict="AMBIGUOUS", reason=_undecided(overall, rule, len(values)), open=True)


def _interval(one: Fit, alpha: float) -> Interval:
    ends = one.interval(alpha)
    low, high = (math.exp(ends[0]), math.exp(ends[1])) if ends else (None, None)
    return Interval(speedup=math.exp(one.mu), ci_low=low, ci_high=high)


def _case(case_id: str, one: Fit, table: Table, *, required: bool, alpha: float) -> CaseBench:
    row = table.cells[case_id]
    shown = _interval(one, alpha)
    return CaseBench(
        case_id=case_id,
        speedup=shown.speedup,
        ci_low=shown.ci_low,
        ci_high=shown.ci_high,
        a_us=median(cell.a_ns for cell in row) / 1000,
        b_us=median(cell.b_ns for cell in row) / 1000,
        required=required,
        pairs=len(row),
    )


def _next_look(tier: Tier, pairs: int, max_pairs: int | None) -> int | None:
    cap = math.inf if max_pairs is None else max_pairs
    return next((look for look in tier.looks if pairs < look <= cap), None)


def objective_of(weights: Mapping[str, float] | None, objective: str = "") -> Objective:
    """The objective by name, or as the weights imply. Raises Refused for one not supported yet."""
    implied: Objective = "geomean" if weights is None else "total_time"
    if objective not in ("", implied):
        what = f"not supported yet: objective.metric = {objective}" + ("" if weights is None else " with weights")
        raise Refused(what, where="contract.toml objective", fix='use "geomean", or "total_time" with weights')
    return implied


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """All figures of one comparison, before any verdict; log ratios."""

    table: Table
    values: tuple[float, ...]
    overall: Fit
    fits: dict[str, Fit]
    arms: tuple[str, str]
    required: frozenset[str]
    objective: Objective
    job_ids: tuple[str, ...]


def _bench(
    made: Decision, read: Reading, *, tier: Tier, device: DevicePolicy, bias_bound: float, max_pairs: int | None
) -> Bench:
    fits, alpha, pairs = read.fits, tier.alpha, len(read.values)
    return Bench(
        verdict=made.verdict,
        partial=made.partial,
        reason=made.reason,
        objective=read.objective,
        geomean=_interval(read.overall, alpha),
        half_width=read.overall.half_width(alpha),
        order_effect=read.overall.gamma,
        bias_bound=bias_bound,
        sign_p=sign_p(read.values),
        alpha=alpha,
        pairs=pairs,
        need_more=_next_look(tier, pairs, max_pairs) if made.open else None,
        arms=read.arms,
        tier=tier.name,
        device=device.kind,
        note=device.note,
        cases=tuple(_case(c, f, read.table, required=c in read.required, alpha=alpha) for c, f in fits.items()),
        best_case=max(fits, key=lambda c: fits[c].mu),
        worst_case=min(fits, key=lambda c: fits[c].mu),
        job_ids=read.job_ids,
    )


def judge(  # noqa: PLR0913 - each is a fact that only the caller knows
    raws: Sequence[Raw],
    *,
    tier: Tier,
    device: DevicePolicy,
    required: frozenset[str],
    timed: Sequence[str],
    weights: Mapping[str, float] | None = None,
    bias_bound: float = 0.0,
    max_pairs: int | None = None,
    arms: tuple[str, str] = ("A", "B"),
    objective: str = "",
    policy: Policy = POLICY,
) -> Bench:
    """Compare two arms over all pairs of these jobs; speed-ups are the first arm's time over the second's.

    ``weights`` (calls per case) selects the objective total_time, None geomean. ``bias_bound`` is a log ratio.
    An undecided comparison names the next look of the tier, up to ``max_pairs``, in ``need_more``.

    Raises:
        NotComparable: the samples do not make one complete, balanced table.
        Refused: an objective, weights or bound that this tool does not take.
    """
    metric = objective_of(weights, objective)
    rule = rule_of(tier, device, bias_bound, policy)
    table = tabulate(raws, timed=timed, required=required, arms=arms)
    values = pair_values(table, weights)
    read = Reading(
        table=table,
        values=values,
        overall=fit(values, table.orders),
        fits={c: fit([cell.log_ratio for cell in row], table.orders) for c, row in table.cells.items()},
        arms=arms,
        required=required,
        objective=metric,
        job_ids=tuple(raw.job_id for raw in raws),
    )
    made = decide(read.overall, read.fits, values, required=required, rule=rule)
    return _bench(made, read, tier=tier, device=device, bias_bound=bias_bound, max_pairs=max_pairs)
