"""From a map to shape rules: one for each regime, split where one version does not serve all of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelpilot_helpers import records
from kernelpilot_helpers.autotune import MapCase, PerformanceMap
from kernelpilot_helpers.dispatcher.figures import Figures, figures
from kernelpilot_helpers.dispatcher.model import BASELINE, Guard, Refusal, ShapeRule, Table
from kernelpilot_helpers.units import percent, times


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Cases that one version is to serve: a regime with one set of flags, or one side of its split."""

    regime: str
    flags: dict[str, Any]
    cases: tuple[MapCase, ...]
    choice: str
    note: str = ""


def choose(found: PerformanceMap) -> Table:
    """The table of a map, without its files. Deterministic; held-out cases refuse and never choose."""
    fig = figures(found)
    parts = [part for group in _groups(found) for part in _parts(fig, *group)]
    rules = [_rule(found, fig, part) for part in parts if part.choice != BASELINE]
    rules.sort(key=_volume)  # a smaller box lies in front, so that a larger one around it does not hide it
    refused = [_no_rule(fig, part) for part in parts if part.choice == BASELINE]
    while bad := _first_bad(fig, rules, parts, found):
        rule, why = bad
        rules.remove(rule)
        refused.append(Refusal(regime=rule.regime, version=rule.version, why=why))
    return Table(
        kind="trivial" if len({c.regime for c in found.cases if not c.held_out}) == 1 else "table",
        epoch=found.epoch,
        map_sha256=records.sha256(records.dump(found)),
        rules=tuple(rules),
        refused=tuple(refused),
        files={},
    )


def pick(rules: Sequence[ShapeRule], axes: Mapping[str, int], flags: Mapping[str, Any]) -> str:
    """What the table says of a shape: a version, or ``baseline``."""
    rule = matching(rules, axes, flags)
    return BASELINE if rule is None else rule.version


def matching(rules: Sequence[ShapeRule], axes: Mapping[str, int], flags: Mapping[str, Any]) -> ShapeRule | None:
    """The first rule that covers a shape."""
    return next((rule for rule in rules if covers(rule, axes, flags)), None)


def covers(rule: ShapeRule, axes: Mapping[str, int], flags: Mapping[str, Any]) -> bool:
    """Whether every guard and flag of a rule holds; an axis or flag that is not given does not."""
    inside = all(g.axis in axes and g.low <= axes[g.axis] <= g.high for g in rule.guards)
    return inside and all(name in flags and flags[name] == value for name, value in rule.flags.items())


def _groups(found: PerformanceMap) -> Iterator[tuple[str, dict[str, Any], tuple[MapCase, ...]]]:
    """(regime, flags, cases to choose by): the required ones; where a group has none, all that are timed."""
    groups: dict[tuple[str, str], list[MapCase]] = {}
    for case in found.cases:
        if not case.held_out:
            groups.setdefault((case.regime, json.dumps(case.flags, sort_keys=True)), []).append(case)
    for (regime, _), cases in groups.items():
        required = tuple(case for case in cases if case.required)
        yield regime, cases[0].flags, required or tuple(cases)


def _parts(fig: Figures, regime: str, flags: dict[str, Any], cases: tuple[MapCase, ...]) -> list[Part]:
    fastest = fig.fastest(cases)
    off = {case.case_id for case in cases if fig.beaten(fastest, case)}
    if off:
        for axis in _by_variation(cases):
            sides = _split(cases, off, axis)
            parts = [
                Part(regime=regime, flags=flags, cases=side, choice=fig.best(side), note=f"split on {axis}")
                for side in sides or ()
            ]
            if len({part.choice for part in parts}) > 1:
                return parts
    mixed = off and len(off) < len(cases)
    note = f"no split on one axis serves {', '.join(sorted(off))} better" if mixed else ""
    return [Part(regime=regime, flags=flags, cases=cases, choice=fig.best(cases), note=note)]


def _by_variation(cases: Sequence[MapCase]) -> list[str]:
    """Axes, the one that varies most first."""
    spread = {axis: [case.axes[axis] for case in cases] for axis in cases[0].axes}
    return sorted(spread, key=lambda axis: (-max(spread[axis]) / min(spread[axis]), axis))


def _split(
    cases: Sequence[MapCase], off: set[str], axis: str
) -> tuple[tuple[MapCase, ...], tuple[MapCase, ...]] | None:
    """The two sides of a threshold on one axis with every case of ``off`` alone on one of them."""
    inside = tuple(case for case in cases if case.case_id in off)
    outside = tuple(case for case in cases if case.case_id not in off)
    if not inside or not outside:
        return None
    a, b = [case.axes[axis] for case in inside], [case.axes[axis] for case in outside]
    if max(a) < min(b):
        return inside, outside
    return (outside, inside) if max(b) < min(a) else None


def _box(cases: Sequence[MapCase]) -> tuple[Guard, ...]:
    """The box of what was measured: nothing beyond it is claimed."""
    return tuple(
        Guard(axis=axis, low=min(c.axes[axis] for c in cases), high=max(c.axes[axis] for c in cases))
        for axis in cases[0].axes
    )


def _volume(rule: ShapeRule) -> tuple[int, str]:
    return math.prod(g.high - g.low + 1 for g in rule.guards), rule.regime


def _rule(found: PerformanceMap, fig: Figures, part: Part) -> ShapeRule:
    variant = next(v for v in found.variants if v.version == part.choice)
    return ShapeRule(
        regime=part.regime,
        guards=_box(part.cases),
        flags=part.flags,
        version=variant.version,
        variant=variant.variant,
        tree=variant.tree,
        why=_why(fig, part),
    )


def _why(fig: Figures, part: Part) -> str:
    mine = fig.ratio(part.choice, part.cases)
    shown = [f"{c.case_id} {times(fig.cells[c.case_id, part.choice].vs_baseline.speedup)}" for c in part.cases]
    words = [f"{times(mine)} over {', '.join(shown)}"]
    others = [v for v in fig.versions if v != part.choice]
    if others:
        second = fig.fastest_of(others, part.cases)
        words.append(f"next {second} {times(fig.ratio(second, part.cases))}")
    late = [(c.case_id, fig.beaten(part.choice, c)) for c in part.cases]
    words += [f"slower than {other} on {case}" for case, other in late if other]
    return "; ".join([*words, *([part.note] if part.note else [])])


def _no_rule(fig: Figures, part: Part) -> Refusal:
    fastest = fig.fastest(part.cases)
    named = ", ".join(case.case_id for case in part.cases)
    shown, doubt = times(fig.ratio(fastest, part.cases)), fig.doubt(fastest, part.cases)
    why = f"on {named} the fastest is {fastest} ({shown}), {doubt}"
    return Refusal(regime=part.regime, version=BASELINE, why="; ".join([why, *([part.note] if part.note else [])]))


def _first_bad(
    fig: Figures, rules: Sequence[ShapeRule], parts: Sequence[Part], found: PerformanceMap
) -> tuple[ShapeRule, str] | None:
    """The first rule that must go: it takes another part's case and is slower there, or a held-out case says no."""
    for part in parts:
        for case in part.cases:
            rule = matching(rules, case.axes, case.flags)
            if rule is not None and rule.version != part.choice and fig.slower(rule.version, part.choice, case):
                return rule, f"its box holds {case.case_id} of regime {part.regime}, where {part.choice} is faster"
    for case in found.cases:
        rule = matching(rules, case.axes, case.flags) if case.held_out else None
        if rule is not None:
            seen = fig.cells[case.case_id, rule.version].vs_baseline
            if seen.ci_high < 1 - fig.margin:
                shown = f"{percent(seen.speedup)} [{percent(seen.ci_low)}, {percent(seen.ci_high)}]"
                return rule, f"held-out case {case.case_id} is worse than the baseline: {shown}"
    return None
