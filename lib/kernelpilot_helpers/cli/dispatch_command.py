"""``kernelpilot dispatch``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.referee.dispatching import Dispatched


@click.command("dispatch")
@common.repo_option
@common.json_option
def command(repo: Path, as_json: bool) -> int:
    """Choose a version for each shape from the performance map, and generate dispatch/.

    dispatch/ runs without KernelPilot: a readable dispatch.py, the frozen versions, the baseline as fallback.
    """
    from kernelpilot_helpers.referee import dispatching
    from kernelpilot_helpers.referee.floor import utc_now

    done = dispatching.dispatch(repo, clock=utc_now)
    for note in done.notes:
        common.say(note)
    common.emit(as_object(done), as_json=as_json, text=words(done))
    return 0


def as_object(done: Dispatched) -> dict[str, Any]:
    """The stable object: keys are always present."""
    from kernelpilot_helpers import dispatcher

    return {
        "kind": done.table.kind,
        "rules": [
            {
                "regime": r.regime,
                "version": r.version,
                "guards": [{"axis": g.axis, "low": g.low, "high": g.high} for g in r.guards],
                "flags": r.flags,
                "why": r.why,
            }
            for r in done.table.rules
        ],
        "refused": [{"regime": r.regime, "version": r.version, "why": r.why} for r in done.table.refused],
        "fallback": done.table.fallback,
        "code": dispatcher.CODE_PATH,
        "decisions": dispatcher.DECISIONS_PATH,
        "reason": done.row.reason,
        "changed": done.changed,
    }


def words(done: Dispatched) -> str:
    """The table for a person."""
    from kernelpilot_helpers import dispatcher

    lines = [f"{done.table.kind}: {len(done.table.rules)} rules, fallback {done.table.fallback}"]
    for rule in done.table.rules:
        shape = ", ".join(f"{g.axis} {g.low}..{g.high}" for g in rule.guards)
        lines.append(f"  {rule.regime}: {shape} -> {rule.version}: {rule.why}")
    lines += [f"  {r.regime}: not {r.version}: {r.why}" for r in done.table.refused if r.version != dispatcher.BASELINE]
    lines += [f"  {r.regime}: baseline: {r.why}" for r in done.table.refused if r.version == dispatcher.BASELINE]
    lines.append("nothing had changed" if not done.changed else f"written: dispatch/, {dispatcher.DECISIONS_PATH}")
    return "\n".join(lines)
