"""``judge``: IMPROVED, SAME, REGRESSED or AMBIGUOUS, from an interval over cross-over pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from kernelpilot_helpers.attempt.job import JobCase
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.policy import POLICY, DevicePolicy, Policy, Tier

from . import physics
from .bench import Bench, CaseBench, Interval
from .crossover import Fit, fit, sign_p
from .cycles import contradiction, in_cycles
from .heat import Cooled, cool
from .physics import Memory
from .rule import Decision, Rule, decide, next_look, rule_of
from .table import Table, pair_values, tabulate
from .timer import as_seen, unseen

Objective = Literal["geomean", "total_time"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """All figures of one comparison, before any verdict; log ratios. Hot pairs are left out already."""

    table: Table
    values: tuple[float, ...]
    overall: Fit
    fits: dict[str, Fit]
    arms: tuple[str, str]
    required: frozenset[str]
    objective: Objective
    job_ids: tuple[str, ...]
    memory: Memory
    cooled: Cooled
    cycles: Fit | None
    seen: Fit | None
    """As the GPU's own timer has it."""


def _interval(one: Fit, alpha: float) -> Interval:
    ends = one.interval(alpha)
    low, high = (math.exp(ends[0]), math.exp(ends[1])) if ends else (None, None)
    return Interval(speedup=math.exp(one.mu), ci_low=low, ci_high=high)


def _case(case_id: str, one: Fit, read: Reading, alpha: float) -> CaseBench:
    row = read.table.cells[case_id]
    shown = _interval(one, alpha)
    b_us = median(cell.b_ns for cell in row) / 1000
    figure, method = read.table.ways[case_id]
    return CaseBench(
        case_id=case_id,
        speedup=shown.speedup,
        ci_low=shown.ci_low,
        ci_high=shown.ci_high,
        a_us=median(cell.a_ns for cell in row) / 1000,
        b_us=b_us,
        required=case_id in read.required,
        pairs=len(row),
        figure=figure,
        method=method,
        cold_bytes=read.memory.cold.get(case_id),
        share_of_ceiling=read.memory.share_of_ceiling(case_id, b_us),
        share_of_datasheet=read.memory.share_of_datasheet(case_id, b_us),
    )


def objective_of(weights: Mapping[str, float] | None, objective: str = "") -> Objective:
    """The objective by name, or as the weights imply. Raises Refused for one not supported yet."""
    implied: Objective = "geomean" if weights is None else "total_time"
    if objective not in ("", implied):
        what = f"not supported yet: objective.metric = {objective}" + ("" if weights is None else " with weights")
        raise Refused(what, where="contract.toml objective", fix='use "geomean", or "total_time" with weights')
    return implied


def _doubted(made: Decision, read: Reading, rule: Rule) -> tuple[Decision, tuple[str, ...]]:
    """The decision, or why a GPU's figures decide nothing; and what is only noted."""
    times = {
        case: (median(c.a_ns for c in row) / 1000, median(c.b_ns for c in row) / 1000)
        for case, row in read.table.cells.items()
    }
    floor, notes = physics.impossible(read.memory, times)
    doubt = floor or read.cooled.doubt or contradiction(read.overall, read.cycles, rule)
    doubt = doubt or unseen(read.overall, read.seen, rule)
    decided = Decision(verdict="AMBIGUOUS", reason=doubt) if doubt else made
    return decided, (*read.cooled.notes, *notes)


def _bench(
    made: Decision,
    read: Reading,
    *,
    tier: Tier,
    device: DevicePolicy,
    bias_bound: float,
    max_pairs: int | None,
    notes: tuple[str, ...],
) -> Bench:
    fits, alpha, pairs = read.fits, tier.alpha, len(read.values)
    measured = pairs + len(read.cooled.left_out)
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
        # Pairs that were left out count as looked at: a hot machine may not make a gate endless.
        need_more=next_look(tier, measured, max_pairs) if made.open else None,
        arms=read.arms,
        tier=tier.name,
        device=device.kind,
        note=device.note,
        cases=tuple(_case(c, f, read, alpha) for c, f in fits.items()),
        best_case=max(fits, key=lambda c: fits[c].mu),
        worst_case=min(fits, key=lambda c: fits[c].mu),
        job_ids=read.job_ids,
        cycles=None if read.cycles is None else _interval(read.cycles, alpha),
        left_out=read.cooled.left_out,
        notes=notes,
    )


def _read(
    raws: Sequence[Raw],
    *,
    timed: Sequence[str],
    required: frozenset[str],
    weights: Mapping[str, float] | None,
    arms: tuple[str, str],
    memory: Memory,
    objective: Objective,
) -> Reading:
    cooled = cool(raws)
    table = tabulate(cooled.raws, timed=timed, required=required, arms=arms)
    values = pair_values(table, weights)
    return Reading(
        table=table,
        values=values,
        overall=fit(values, table.orders),
        fits={c: fit([cell.log_ratio for cell in row], table.orders) for c, row in table.cells.items()},
        arms=arms,
        required=required,
        objective=objective,
        job_ids=tuple(raw.job_id for raw in raws),
        memory=memory,
        cooled=cooled,
        cycles=in_cycles(cooled.raws, timed=timed, weights=weights, arms=arms),
        seen=as_seen(cooled.raws, timed=timed, weights=weights, arms=arms),
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
    cases: Sequence[JobCase] = (),
    ceilings: Mapping[str, float] | None = None,
) -> Bench:
    """Compare two arms over all pairs of these jobs; speed-ups are the first arm's time over the second's.

    ``weights`` (calls per case) selects the objective total_time, None geomean. ``bias_bound`` is a log ratio.
    An undecided comparison names the next look of the tier, up to ``max_pairs``, in ``need_more``.

    ``cases`` (GPU only) give the bytes that a call must move: a time below what the memory's datasheet allows is
    AMBIGUOUS, ``suspect.floor``. ``ceilings`` are ``Raw.ceilings`` measured on this GPU, for the shares in the bench.

    Raises:
        NotComparable: the samples do not make one complete, balanced table, or mix figures or methods in a case.
        Refused: an objective, weights or bound that this tool does not take.
    """
    metric = objective_of(weights, objective)
    rule = rule_of(tier, device, bias_bound, policy)
    on_gpu = device.kind == "gpu"
    memory = physics.memory(raws, cases if on_gpu else (), ceilings)
    read = _read(raws, timed=timed, required=required, weights=weights, arms=arms, memory=memory, objective=metric)
    made = decide(read.overall, read.fits, read.values, required=required, rule=rule)
    made, notes = _doubted(made, read, rule)
    return _bench(made, read, tier=tier, device=device, bias_bound=bias_bound, max_pairs=max_pairs, notes=notes)
