"""``kernelpilot tune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.referee.tuning import TunedMap


@click.command("tune")
@click.option("--max-pairs", type=click.IntRange(min=2), help="cross-over pairs for each version (default: 10)")
@common.repo_option
@common.json_option
def command(max_pairs: int | None, repo: Path, as_json: bool) -> int:
    """Measure every selected version against the baseline over W and the held-out cases.

    Writes artifacts/performance-map.json behind one decision row. Tuning again measures again and replaces the map.
    """
    from kernelpilot_helpers.referee import tuning
    from kernelpilot_helpers.referee.floor import utc_now

    lab = common.measuring_lab(repo)
    done = tuning.tune(repo, max_pairs=max_pairs, lab=lab, clock=utc_now, say=common.progress())
    for note in done.notes:
        common.say(note)
    common.emit(as_object(done), as_json=as_json, text=words(done))
    return 0


def as_object(done: TunedMap) -> dict[str, Any]:
    """The stable object: keys are always present."""
    from kernelpilot_helpers.autotune import MAP_PATH

    return {
        "map": MAP_PATH,
        "version": done.row.version,
        "reason": done.row.reason,
        "versions": [v.version for v in done.map.variants],
        "left_out": [{"version": o.version, "why": o.why} for o in done.map.left_out],
        "regimes": list(dict.fromkeys(c.regime for c in done.map.cases if not c.held_out)),
        "cells": [
            {
                "case_id": c.case_id,
                "version": c.version,
                "speedup": c.vs_baseline.speedup,
                "ci_low": c.vs_baseline.ci_low,
                "ci_high": c.vs_baseline.ci_high,
            }
            for c in done.map.cells
        ],
        "run_ids": list(done.row.runs),
    }


def words(done: TunedMap) -> str:
    """The map for a person: one line a case, one column a version."""
    from kernelpilot_helpers import units

    cells = {(c.case_id, c.version): c.vs_baseline for c in done.map.cells}
    names = [v.version for v in done.map.variants]
    wide = max(len(c.case_id) for c in done.map.cases)
    lines = [f"{done.row.reason} (against the baseline, above 1x is faster)", " " * (wide + 2) + "  ".join(names)]
    for case in done.map.cases:
        shown = [units.times(cells[case.case_id, name].speedup).rjust(len(name)) for name in names]
        lines.append(f"{case.case_id.ljust(wide)}  {'  '.join(shown)}{'  held out' if case.held_out else ''}")
    lines += [f"left out: {o.version}: {o.why}" for o in done.map.left_out]
    return "\n".join([*lines, "next: kernelpilot dispatch"])
