"""The page's part about tuning: a heat table of versions by cases, and the dispatcher's rules."""

from __future__ import annotations

import math
from typing import Any

from kernelpilot_helpers.autotune import Cell, PerformanceMap
from kernelpilot_helpers.dispatcher import ShapeRule, Table
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.units import times

STEPS = (0.95, 1.05, 1.25, 1.6, 2.5)
"""Speed-up at which the next warmer class begins."""


def map_part(evidence: Evidence | None) -> dict[str, Any]:
    """Words of the map's section; ``absent`` says why there is none."""
    if evidence is None:
        return {"absent": "The performance map was not read for this page."}
    found, table = evidence.tuning.map, evidence.tuning.table
    faults = (*evidence.tuning.map_faults, *evidence.tuning.dispatch_faults)
    if found is None and table is None and not faults:
        return {"absent": "Not tuned: no performance map and no dispatcher (kernelpilot tune, then dispatch)."}
    return {
        "absent": "",
        "map": _map(found) if found else None,
        "table": _table(table) if table else None,
        "faults": faults,
    }


def heat(speedup: float) -> int:
    """Class of a speed-up: 0 slower, 1 about equal, 2 and on ever faster.

    >>> heat(0.9), heat(1.0), heat(1.3), heat(9.0)
    (0, 1, 3, 5)
    """
    if not math.isfinite(speedup):
        return 1
    return sum(speedup >= step for step in STEPS)


def _map(found: PerformanceMap) -> dict[str, Any]:
    cells = {(cell.case_id, cell.version): cell for cell in found.cells}
    lines = []
    for case in found.cases:
        row = [cells.get((case.case_id, variant.version)) for variant in found.variants]
        best = max((cell.vs_baseline.speedup for cell in row if cell), default=None)
        kind = "held out" if case.held_out else "required" if case.required else "optional"
        lines.append((case.case_id, f"{case.regime}, {kind}", [_cell(cell, best) for cell in row]))
    return {"columns": [(v.version, v.run) for v in found.variants], "lines": lines, "at": found.at}


def _cell(cell: Cell | None, best: float | None) -> dict[str, Any]:
    if cell is None:
        return {"figure": "not measured", "ci": "", "us": "", "heat": 1, "best": False}
    value = cell.vs_baseline
    return {
        "figure": times(value.speedup),
        "ci": f"[{times(value.ci_low)}, {times(value.ci_high)}]",
        "us": f"{cell.baseline_us:.4g} to {cell.version_us:.4g} us",
        "heat": heat(value.speedup),
        "best": value.speedup == best and value.speedup > 1,
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "kind": "trivial: one regime, one choice" if table.kind == "trivial" else "shape rules, first match wins",
        "fallback": table.fallback,
        "rules": [(rule.regime, guards(rule), rule.version, rule.why) for rule in table.rules],
    }


def guards(rule: ShapeRule) -> str:
    """When a rule applies, in words."""
    parts = [f"{g.low} <= {g.axis} <= {g.high}" for g in rule.guards]
    parts += [f"{name} = {value}" for name, value in sorted(rule.flags.items())]
    return " and ".join(parts) or "any shape"
