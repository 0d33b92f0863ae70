"""Gates replayed from a pool of measured pairs: how often the rules err, without measuring each gate anew.

    pool = pool_of([raw], timed=cases, effect="slower 2 %")      # from one or more jobs of one booking
    rng = random.Random(1)
    gates = [gate(pool, tier=policy.ACCEPT, device=policy.GPU, required=frozenset(cases), rng=rng) for _ in range(2000)]
    false = sum(g.verdict == "IMPROVED" for g in gates) / len(gates)          # confirmed gains
    alone = sum(g.first == "IMPROVED" for g in gates) / len(gates)            # what they were before confirmation

Pairs are drawn with replacement, half of either start order, so that each gate is one fair draw from the measured
distribution; a pool of 40 pairs or more keeps the repeats of one pair rare. Seconds of a gate are its ``pairs`` times
the measured seconds of a pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.policy import POLICY, DevicePolicy, Policy, Tier

from .bench import Verdict
from .crossover import Fit, fit
from .heat import cool
from .rule import Decision, Rule, decide, next_look, rule_of
from .table import Cell, Table, pair_values, tabulate

T = TypeVar("T")


class Rng(Protocol):
    """What is needed of a seeded ``random.Random``: the caller owns chance."""

    def choices(self, population: Sequence[T], *, k: int) -> list[T]:
        """``k`` members, with replacement."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One measured cross-over pair: every timed case."""

    order: int
    """+1 where arm A was started first, -1 where arm B was."""
    cells: Mapping[str, Cell]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Measured pairs of one effect; speed-ups are arm A's time over arm B's."""

    effect: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """What one resampled gate says."""

    verdict: Verdict
    """After confirmation, where the tier asks for one."""
    first: Verdict
    """Before it."""
    partial: bool
    pairs: int
    """Pairs used in all, the confirmation's among them."""
    looks: int
    point: float
    """Log ratio that would be recorded: the confirmation's where there was one."""
    half_width: float | None
    reason: str


def pool_of(raws: Sequence[Raw], *, timed: Sequence[str], effect: str, arms: tuple[str, str] = ("A", "B")) -> Pool:
    """The pairs of these jobs, hot ones left out. Raises NotComparable as ``judge`` does."""
    table = tabulate(cool(raws).raws, timed=timed, arms=arms)
    cells = [{case: row[p] for case, row in table.cells.items()} for p in range(len(table.pairs))]
    return Pool(effect=effect, pairs=tuple(Pair(order=o, cells=c) for o, c in zip(table.orders, cells, strict=True)))


def _draw(pool: Pool, count: int, rng: Rng) -> list[Pair]:
    found: list[Pair] = []
    for order in (1, -1):
        half = [pair for pair in pool.pairs if pair.order == order]
        if not half:
            raise Refused(f"pool {pool.effect}: no pair of one start order", where="pool", fix="measure an even number")
        found += rng.choices(half, k=count // 2)
    return found


def _judged(
    drawn: Sequence[Pair], rule: Rule, required: frozenset[str], weights: Mapping[str, float] | None
) -> tuple[Decision, Fit]:
    cells = {case: tuple(pair.cells[case] for pair in drawn) for case in drawn[0].cells}
    table = Table(pairs=tuple(range(len(drawn))), orders=tuple(p.order for p in drawn), cells=cells)
    values = pair_values(table, weights)
    overall = fit(values, table.orders)
    fits = {c: fit([cell.log_ratio for cell in row], table.orders) for c, row in cells.items()}
    return decide(overall, fits, values, required=required, rule=rule), overall


def gate(
    pool: Pool,
    *,
    tier: Tier,
    device: DevicePolicy,
    required: frozenset[str],
    rng: Rng,
    bias_bound: float = 0.0,
    weights: Mapping[str, float] | None = None,
    policy: Policy = POLICY,
) -> Gate:
    """One gate: looks until it is decided, then fresh draws to confirm an IMPROVED, never pooled with the first.

    ``required`` are case ids, ``bias_bound`` a log ratio, ``weights`` calls a case (None: geomean). The rules are
    those of ``judge``. Raises Refused for a pool without both start orders.
    """
    rule = rule_of(tier, device, bias_bound, policy)
    drawn: list[Pair] = []
    look: int | None = next_look(tier, 0, None)
    looks = 0
    made, overall = Decision(verdict="AMBIGUOUS", reason=""), Fit(mu=0.0, gamma=0.0, se=None, df=0)
    while look is not None:
        drawn += _draw(pool, look - len(drawn), rng)
        made, overall = _judged(drawn, rule, required, weights)
        looks += 1
        look = next_look(tier, len(drawn), None) if made.open else None
    first, used, count = made, len(drawn), len(drawn)
    if made.verdict == "IMPROVED" and tier.confirm:
        made, overall = _judged(_draw(pool, count, rng), rule, required, weights)
        used += count
        if made.verdict != "IMPROVED":
            made = Decision(verdict="AMBIGUOUS", reason=f"confirm.failed: {made.reason}")
    return Gate(
        verdict=made.verdict,
        first=first.verdict,
        partial=made.partial,
        pairs=used,
        looks=looks,
        point=overall.mu,
        half_width=overall.half_width(rule.alpha),
        reason=made.reason,
    )
