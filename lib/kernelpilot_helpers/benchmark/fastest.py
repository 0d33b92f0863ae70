"""One candidate against several baselines: case by case, against whichever of them is the fastest there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import NotComparable
from kernelpilot_helpers.policy import Tier

from .bench import Interval
from .crossover import fit
from .heat import cool
from .table import Cell, Table, pair_values, tabulate


@dataclass(frozen=True, kw_only=True, slots=True)
class Fastest:
    """The combined figure, and which baseline was the fastest on each case."""

    interval: Interval
    chosen: dict[str, int]
    """case id -> index of the baseline in the contract."""


def _halves(table: Table) -> tuple[list[int], list[int]]:
    """Positions of the pairs by start order."""
    return (
        [p for p, order in enumerate(table.orders) if order == 1],
        [p for p, order in enumerate(table.orders) if order == -1],
    )


def _rows(table: Table, case: str, each: int) -> tuple[Cell, ...]:
    """The first ``each`` pairs of either order, in turn: the same places in every job's table."""
    first, second = _halves(table)
    turns = zip(first[:each], second[:each], strict=True)
    return tuple(table.cells[case][p] for turn in turns for p in turn)


def against_fastest(
    runs: Mapping[int, Sequence[Raw]],
    *,
    timed: Sequence[str],
    tier: Tier,
    weights: Mapping[str, float] | None = None,
    arms: tuple[str, str] = ("A", "B"),
) -> Fastest:
    """Combine direct runs against several baselines; ``runs`` holds the jobs of each by its index.

    The fastest baseline of a case has the least median time there; the case's pairs are that job's. Jobs with more
    pairs than the others give as many as the others have, half of either start order.

    Raises NotComparable for no runs, or as ``judge`` does.
    """
    if not runs:
        raise NotComparable("no baseline was measured", where="baselines", fix="kernelpilot attempt VARIANT --again")
    tables = {ix: tabulate(cool(raws).raws, timed=timed, arms=arms) for ix, raws in sorted(runs.items())}
    each = min(len(table.pairs) for table in tables.values()) // 2
    chosen = {case: min(tables, key=lambda ix: median(c.a_ns for c in tables[ix].cells[case])) for case in timed}
    cells = {case: _rows(tables[ix], case, each) for case, ix in chosen.items()}
    table = Table(pairs=tuple(range(2 * each)), orders=(1, -1) * each, cells=cells)
    overall = fit(pair_values(table, weights), table.orders)
    ends = overall.interval(tier.alpha)
    low, high = (math.exp(ends[0]), math.exp(ends[1])) if ends else (None, None)
    return Fastest(interval=Interval(speedup=math.exp(overall.mu), ci_low=low, ci_high=high), chosen=chosen)
