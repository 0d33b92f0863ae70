"""Benches of the tune runs to one performance map: pure, and the same figures give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kernelpilot_helpers.autotune.model import Cell, LeftOut, MapCase, MapVariant, PerformanceMap
from kernelpilot_helpers.benchmark import Bench, CaseBench
from kernelpilot_helpers.contract import Case, Contract
from kernelpilot_helpers.contract.dtypes import normalise
from kernelpilot_helpers.contract.tensors import flags_of
from kernelpilot_helpers.errors import NotComparable, Refused
from kernelpilot_helpers.ledger import Interval, Row, by_tree

FIX = "kernelpilot tune"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuned:
    """One version, its run, what was judged from it (arm A the baseline, arm B the version), and where."""

    version: str
    variant: str
    tree: str
    run: str
    bench: Bench
    booking: Mapping[str, Any]


def selected(rows: Sequence[Row], epoch: int) -> tuple[Row, ...]:
    """Versions that a dispatcher may choose among: IMPROVED, or faster on some cases only (partial).

    One a tree, the newest row; none whose tree was found WRONG by a later row. In the order of their rows.
    """
    kept: dict[str, Row] = {}
    for row in rows:
        if row.kind == "attempt" and row.epoch == epoch and (row.verdict == "IMPROVED" or row.partial):
            kept.pop(row.tree, None)
            kept[row.tree] = row
    return tuple(row for tree, row in kept.items() if by_tree(rows, tree, epoch)[-1].verdict != "WRONG")


def cases_of(contract: Contract, written: Sequence[Case]) -> tuple[MapCase, ...]:
    """The cases of a map: everything of W but edges, flags and axes in one form."""
    known = flags_of(contract.tensors)
    return tuple(
        MapCase(
            case_id=case.case_id,
            regime=case.regime,
            axes={n: size for n, size in case.axes.items() if contract.axes[n].expr is None},
            flags={name: _flag(case, name, use) for name, use in known.items()},
            required=case.required,
            held_out=case.held_out,
            calls=case.calls,
        )
        for case in written
        if not case.edge
    )


def _flag(case: Case, name: str, use: str) -> Any:
    if use == "optional":
        return case.flags.get(name) is True
    value = case.flags[name]
    return normalise(str(value)) if use == "dtype" else value


def build(
    *,
    epoch: int,
    at: str,
    device: Literal["cpu", "gpu"],
    objective: Literal["geomean", "total_time"],
    baseline_tree: str,
    cases: Sequence[MapCase],
    tuned: Sequence[Tuned],
    left_out: Sequence[LeftOut] = (),
) -> PerformanceMap:
    """The map. Raises Refused when no version is left, NotComparable when runs or intervals do not make one table."""
    if not tuned:
        said = "; ".join(f"{out.version}: {out.why}" for out in left_out) or "no version is selected"
        raise Refused(f"nothing to map: {said}", where="tune", fix="kernelpilot attempt")
    _same_place(tuned)
    return PerformanceMap(
        epoch=epoch,
        at=at,
        device=device,
        objective=objective,
        alpha=tuned[0].bench.alpha,
        environment=dict(tuned[0].booking),
        baseline_tree=baseline_tree,
        cases=tuple(cases),
        variants=tuple(
            MapVariant(version=t.version, variant=t.variant, tree=t.tree, run=t.run, pairs=t.bench.pairs) for t in tuned
        ),
        cells=tuple(cell for t in tuned for cell in _cells(t, cases)),
        left_out=tuple(left_out),
    )


def _same_place(tuned: Sequence[Tuned]) -> None:
    first = tuned[0]
    for other in tuned[1:]:
        keys = first.booking.keys() | other.booking.keys()
        differ = sorted(k for k in keys if first.booking.get(k) != other.booking.get(k))
        differ += ["confidence"] if first.bench.alpha != other.bench.alpha else []
        if differ:
            what = f"runs {first.run} and {other.run} differ in {', '.join(differ)}"
            raise NotComparable(what, where="performance map", fix=FIX)
    if not first.booking:
        raise NotComparable(f"run {first.run} does not say where it was measured", where="performance map", fix=FIX)


def _cells(tuned: Tuned, cases: Sequence[MapCase]) -> Iterator[Cell]:
    found = {case.case_id: case for case in tuned.bench.cases}
    for case in cases:
        one = found.get(case.case_id)
        if one is None:
            raise NotComparable(f"run {tuned.run} did not time case {case.case_id}", where="performance map", fix=FIX)
        yield Cell(
            case_id=case.case_id,
            version=tuned.version,
            vs_baseline=_interval(one, tuned.run),
            baseline_us=one.a_us,
            version_us=one.b_us,
        )


def _interval(one: CaseBench, run: str) -> Interval:
    if one.ci_low is None or one.ci_high is None:
        what = f"run {run} has too few pairs for an interval on case {one.case_id}"
        raise NotComparable(what, where="performance map", fix="kernelpilot tune --max-pairs 6 or more")
    return Interval(speedup=one.speedup, ci_low=one.ci_low, ci_high=one.ci_high)


def coverage(found: PerformanceMap, *, epoch: int, wanted: Sequence[Row], cases: Sequence[MapCase]) -> list[str]:
    """What the map lacks to speak for W and for the versions of now; empty when it covers them."""
    out: list[str] = []
    if found.epoch != epoch:
        out.append(f"measured under lock epoch {found.epoch}; the lock is of epoch {epoch} now")
    if found.cases != tuple(cases):
        out.append(_case_words(found, cases))
    measured = {v.version: v.tree for v in found.variants} | {o.version: o.tree for o in found.left_out}
    for row in wanted:
        if measured.get(row.version) != row.tree:
            out.append(f"{row.version} is selected and was not tuned")
    labels = {row.version for row in wanted}
    out += [f"{v.version} is in the map and no longer selected" for v in found.variants if v.version not in labels]
    held = {(c.case_id, c.version) for c in found.cells}
    for case in cases:
        lost = [v.version for v in found.variants if (case.case_id, v.version) not in held]
        if lost:
            out.append(f"case {case.case_id} has no figure of {', '.join(lost)}")
    if len(held) != len(found.cells):
        out.append("a case and version is there twice")
    return out


def _case_words(found: PerformanceMap, cases: Sequence[MapCase]) -> str:
    have, want = {c.case_id: c for c in found.cases}, {c.case_id: c for c in cases}
    odd = sorted(name for name in have.keys() | want.keys() if have.get(name) != want.get(name))
    return f"its cases are not those of W: {', '.join(odd) or 'another order'}"
