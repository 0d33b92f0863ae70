"""``artifacts/tuning-decisions.md``: the table told for people, rendered from table and map."""

from __future__ import annotations

from collections.abc import Mapping

from kernelpilot_helpers import tables, units
from kernelpilot_helpers.autotune import Cell, MapCase, PerformanceMap
from kernelpilot_helpers.dispatcher.choose import matching, pick
from kernelpilot_helpers.dispatcher.model import BASELINE, ShapeRule, Table

HEAD = (
    "<!-- Generated from artifacts/performance-map.json; a change made here is lost. "
    "Render again: kernelpilot dispatch -->"
)


def decisions(table: Table, found: PerformanceMap, *, fallback: str = "") -> str:
    """The whole page; ``fallback`` says which of several baselines serves the rest."""
    sections = [
        f"{HEAD}\n\n# Tuning decisions",
        _head(table, found, fallback),
        "## Rules\n\nThe first rule that covers a shape serves it.\n\n" + _rules(table),
        "## Why\n\n" + _list([f"`{r.version}` for {r.regime} ({guards(r)}): {r.why}" for r in table.rules]),
        "## Rejected\n\n" + _rejected(table, found),
        "## Held-out cases\n\nMeasured to check the rules, never to choose.\n\n" + _held_out(table, found),
        "## Figures\n\n" + _figures(table, found),
    ]
    return "\n\n".join(section.rstrip() for section in sections) + "\n"


def guards(rule: ShapeRule) -> str:
    """The condition of a rule, as the generated code spells it."""
    parts = [f"{g.low} <= {g.axis} <= {g.high}" if g.low != g.high else f"{g.axis} == {g.low}" for g in rule.guards]
    return " and ".join([*parts, *(f"{name} == {value!r}" for name, value in rule.flags.items())])


def _head(table: Table, found: PerformanceMap, fallback: str) -> str:
    kind = "trivial: W has one regime" if table.kind == "trivial" else "a table of shape rules"
    one = ", ".join(f"{k} {v}" for k, v in sorted(found.environment.items()) if k != "boot_id")
    return (
        f"Dispatcher: {kind}; {len(table.rules)} rules. Map of {found.at}, lock epoch {found.epoch}, "
        f"sha256 `{table.map_sha256}`.\n\nMeasured on: {one}.\n\n"
        f"Fallback: `{table.fallback}` for every shape outside the rules, and for tensors that are not laid out as "
        "the contract says." + (f" {fallback}" if fallback else "")
    )


def _rules(table: Table) -> str:
    rows = [[str(ix), r.regime, guards(r), r.version] for ix, r in enumerate(table.rules, start=1)]
    return tables.render(["#", "Regime", "Shape", "Version"], [*rows, ["-", "any", "otherwise", table.fallback]])


def _list(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "Nothing."


def _rejected(table: Table, found: PerformanceMap) -> str:
    lines = [f"regime {r.regime}, `{r.version}`: {r.why}" for r in table.refused if r.version != BASELINE]
    lines += [f"regime {r.regime} stays with the baseline: {r.why}" for r in table.refused if r.version == BASELINE]
    lines += [f"`{o.version}` was left out of the map: {o.why} (run {o.run})" for o in found.left_out]
    used = {r.version for r in table.rules}
    lines += [f"`{v.version}` serves no shape" for v in found.variants if v.version not in used]
    return _list(lines)


def _held_out(table: Table, found: PerformanceMap) -> str:
    cells = {(c.case_id, c.version): c for c in found.cells}
    lines = []
    for case in (c for c in found.cases if c.held_out):
        rule = matching(table.rules, case.axes, case.flags)
        if rule is None:
            lines.append(f"{case.case_id} ({_axes(case)}): outside every rule, goes to the baseline")
        else:
            lines.append(
                f"{case.case_id} ({_axes(case)}): `{rule.version}` {_shown(cells[case.case_id, rule.version])}"
            )
    return _list(lines) if lines else "W has none, so nothing was checked between the measured shapes."


def _axes(case: MapCase) -> str:
    return ", ".join([f"{k} {v}" for k, v in case.axes.items()] + [f"{k} {v}" for k, v in case.flags.items()])


def _shown(cell: Cell) -> str:
    seen = cell.vs_baseline
    return f"{units.times(seen.speedup)} [{units.times(seen.ci_low)}, {units.times(seen.ci_high)}]"


def _figures(table: Table, found: PerformanceMap) -> str:
    cells: Mapping[tuple[str, str], Cell] = {(c.case_id, c.version): c for c in found.cells}
    rows = []
    for case in found.cases:
        chosen = pick(table.rules, case.axes, case.flags)
        for version in (v.version for v in found.variants):
            cell = cells[case.case_id, version]
            name = f"{case.case_id}{' (held out)' if case.held_out else ''}"
            times = (units.micros(cell.baseline_us), units.micros(cell.version_us))
            rows.append(
                [name, case.regime, _axes(case), version, _shown(cell), *times, "yes" if version == chosen else "-"]
            )
    sure = f"vs baseline [CI at {(1 - found.alpha) * 100:g} %]"
    return tables.render(["Case", "Regime", "Axes", "Version", sure, "Baseline", "Time", "Serves it"], rows)
