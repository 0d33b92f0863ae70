"""Samples of one or more jobs as a table of pairs and cases, or a refusal: half a table is not compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from kernelpilot_helpers.attempt.raw import Raw, Samples
from kernelpilot_helpers.errors import NotComparable, Refused

VOLATILE = frozenset({"started", "seconds", "clock_ns", "phase_seconds"})
"""Environment keys that differ between two jobs of one booking and say nothing about speed."""
FIX = "measure both arms again in one job: kernelpilot bench"
Key = tuple[int, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One case in one pair: median log ratio over neighbouring blocks, and each arm's median ns per call."""

    log_ratio: float
    a_ns: float
    b_ns: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Every timed case in every pair. ``orders`` is +1 or -1 by which arm was started first."""

    pairs: tuple[int, ...]
    orders: tuple[int, ...]
    cells: dict[str, tuple[Cell, ...]]
    """case id -> one cell per pair, in the order of ``pairs``."""
    ways: dict[str, tuple[str, str]] = field(default_factory=dict)
    """case id -> (figure, method)."""


def _no(what: str) -> NotComparable:
    return NotComparable(what, where="samples", fix=FIX)


def _same_place(raws: Sequence[Raw]) -> None:
    if not raws:
        raise _no("there is no measurement")
    for raw in raws:
        if raw.died is not None:
            raise _no(f"job {raw.job_id} ended early: arm {raw.died.arm or 'oracle'} died in {raw.died.stage}")
    first = raws[0]
    for raw in raws[1:]:
        keys = (first.env.keys() | raw.env.keys()) - VOLATILE
        differ = sorted(k for k in keys if first.env.get(k) != raw.env.get(k))
        if first.framework != raw.framework:
            differ.append("framework")
        if differ:
            raise _no(f"jobs {first.job_id} and {raw.job_id} differ in {', '.join(differ)}")


def _same_programs(raws: Sequence[Raw], arms: tuple[str, str]) -> None:
    for arm in arms:
        if len({(b.build_key, b.binary_id) for raw in raws for b in raw.builds if b.arm == arm}) > 1:
            raise _no(f"the jobs measured different programs as arm {arm}")


def _index(raws: Sequence[Raw], arms: tuple[str, str]) -> dict[Key, Samples]:
    found: dict[Key, Samples] = {}
    for raw in raws:
        for item in raw.samples:
            key = (item.pair, item.case_id, item.arm)
            if item.arm in arms and key in found:
                raise _no(f"pair {item.pair}, case {item.case_id}, arm {item.arm} is there twice")
            if item.arm in arms:
                found[key] = item
    return found


def _complete(found: Mapping[Key, Samples], timed: Sequence[str], arms: tuple[str, str]) -> tuple[int, ...]:
    pairs = tuple(sorted({pair for pair, _, _ in found}))
    if extra := sorted({case for _, case, _ in found} - set(timed)):
        raise _no(f"cases {', '.join(extra)} were measured but not asked for")
    if not pairs or len(pairs) % 2:
        raise _no(f"{len(pairs)} pairs: half must start with either arm, so the number is even and not zero")
    for pair in pairs:
        for case in timed:
            for arm in arms:
                if (pair, case, arm) not in found:
                    raise _no(f"no samples of case {case}, arm {arm} in pair {pair}")
    return pairs


def _alike(a: Samples, b: Samples) -> None:
    at = f"pair {a.pair}, case {a.case_id}"
    if a.calls != b.calls or a.calls < 1:
        raise _no(f"{at}: {a.calls} and {b.calls} calls a block")
    if not a.ns or len(a.ns) != len(b.ns):
        raise _no(f"{at}: {len(a.ns)} and {len(b.ns)} blocks")
    if any(len(s.wall_ns) != len(s.ns) for s in (a, b)):
        raise _no(f"{at}: not every block was timed by both clocks")
    if min(*a.ns, *b.ns) <= 0:
        raise _no(f"{at}: a block took no time")


def _one_way(partners: Iterable[tuple[Samples, Samples]]) -> dict[str, tuple[str, str]]:
    """One figure and one method a case, in every pair and arm."""
    ways: dict[str, tuple[str, str]] = {}
    for item in (item for both in partners for item in both):
        way = (item.figure, item.method)
        if ways.setdefault(item.case_id, way) != way:
            mixed = " and ".join(" by ".join(filter(None, w)) for w in (ways[item.case_id], way))
            raise _no(f"case {item.case_id} was timed in two ways: {mixed}")
    return ways


def _orders(found: Mapping[Key, Samples], pairs: Sequence[int]) -> tuple[int, ...]:
    first: dict[int, str] = {}
    for (pair, case, _), item in found.items():
        if first.setdefault(pair, item.first_arm) != item.first_arm:
            raise _no(f"pair {pair}: case {case} disagrees about which arm was started first")
    counts = Counter(first[p] for p in pairs)
    labels = sorted(counts)
    if len(labels) != 2 or counts[labels[0]] != counts[labels[1]]:
        told = ", ".join(f"{arm} first in {n}" for arm, n in sorted(counts.items()))
        raise _no(f"the start order is not balanced: {told} of {len(pairs)} pairs")
    return tuple(1 if first[p] == labels[0] else -1 for p in pairs)


def _cell(a: Samples, b: Samples) -> Cell:
    logs = [math.log(x / y) for x, y in zip(a.ns, b.ns, strict=True)]
    return Cell(log_ratio=median(logs), a_ns=median(a.ns) / a.calls, b_ns=median(b.ns) / b.calls)


def tabulate(
    raws: Sequence[Raw],
    *,
    timed: Sequence[str],
    required: frozenset[str] = frozenset(),
    arms: tuple[str, str] = ("A", "B"),
) -> Table:
    """The samples of all jobs, pair by case.

    Raises NotComparable where the jobs were made in different places or of different programs, or where a pair,
    a case, an arm or a clock is missing, there twice, or unlike its partner.
    """
    if not timed or len(set(timed)) != len(timed):
        raise _no("the list of timed cases is empty or names a case twice")
    if lost := sorted(required - set(timed)):
        raise _no(f"required cases {', '.join(lost)} are not timed")
    _same_place(raws)
    _same_programs(raws, arms)
    found = _index(raws, arms)
    pairs = _complete(found, timed, arms)
    partners = {(p, c): (found[p, c, arms[0]], found[p, c, arms[1]]) for p in pairs for c in timed}
    for a, b in partners.values():
        _alike(a, b)
    ways = _one_way(partners.values())
    cells = {case: tuple(_cell(*partners[pair, case]) for pair in pairs) for case in timed}
    return Table(pairs=pairs, orders=_orders(found, pairs), cells=cells, ways=ways)


def refuse(
    raws: Sequence[Raw],
    *,
    timed: Sequence[str],
    required: frozenset[str] = frozenset(),
    arms: tuple[str, str] = ("A", "B"),
) -> None:
    """Raise NotComparable exactly where ``judge`` would."""
    tabulate(raws, timed=timed, required=required, arms=arms)


def pair_values(table: Table, weights: Mapping[str, float] | None) -> tuple[float, ...]:
    """One log ratio per pair: the mean over cases, or with weights that of the weighted sums of times.

    Raises Refused for weights that are not positive, finite and there for exactly the timed cases.
    """
    count = range(len(table.pairs))
    if weights is None:
        size = len(table.cells)
        return tuple(math.fsum(row[p].log_ratio for row in table.cells.values()) / size for p in count)
    bad = weights.keys() ^ table.cells.keys() or {c for c, w in weights.items() if not 0 < w < math.inf}
    if bad:
        what = f"weights must be positive and there for each timed case; see {', '.join(sorted(bad))}"
        raise Refused(what, where="objective.weights", fix="give every timed case its number of calls")
    totals = [
        (
            math.fsum(weights[c] * row[p].a_ns for c, row in table.cells.items()),
            math.fsum(weights[c] * row[p].b_ns for c, row in table.cells.items()),
        )
        for p in count
    ]
    return tuple(math.log(a / b) for a, b in totals)
