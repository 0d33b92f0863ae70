"""``kernelpilot tune``: each selected version against the baseline over W and the held-out cases, to one map.

One job a version; the row is the commit point, and the map is made from the runs that it cites.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kernelpilot_helpers import autotune, ledger, proc, records
from kernelpilot_helpers.autotune import MAP_PATH, PerformanceMap
from kernelpilot_helpers.errors import KernelPilotError, NotComparable, Refused
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.gate.facts import ATTEMPT
from kernelpilot_helpers.ledger.model import Motivation, Row
from kernelpilot_helpers.referee import attempt, jobs, mapping, measure, recover, runs, seals, views, workspace
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.runs import Intent
from kernelpilot_helpers.referee.workspace import Workspace

TRIES = 2
"""A disturbed machine is measured once more before the command gives up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TunedMap:
    """The new map and the row behind it."""

    row: Row
    map: PerformanceMap
    notes: tuple[str, ...] = ()


def tune(start: Path, *, max_pairs: int | None, lab: Lab, clock: Clock, say: measure.Say) -> TunedMap:
    """Measure and map. Raises Refused when nothing is selected, NotComparable when the machine was not quiet."""
    with deciding(start, clock) as (ws, notes):
        pairs = _pairs(max_pairs, mapping.tier(ws).looks)
        wanted = autotune.selected(ws.rows, ws.epoch)
        if not wanted:
            raise Refused("no version is IMPROVED, so there is nothing to tune", fix=ATTEMPT.format(name="VARIANT"))
        bench = measure.Bench(workspace=mapping.timing_held_out(ws), lab=lab, clock=clock, say=say)
        with _unless_done(ws) as made:
            for version in wanted:
                made.append(_measured(bench, ws, version, pairs, made))
            row = _row(ws, made, wanted, clock)
            found = mapping.map_of(ws, made, row.at)
            sealed = {**seals.evidence(ws.root, made), MAP_PATH: records.sha256(records.dump(found))}
            row = msgspec.structs.replace(row, evidence=sealed)
            records.append(ws.root / ledger.LINEAGE_PATH, row, ledger.LINEAGE, chained=True)
        records.crash_point("derived.row")
        recover.finish(workspace.open_repo(start), row)
    return TunedMap(row=row, map=found, notes=tuple(notes))


@contextmanager
def deciding(start: Path, clock: Clock) -> Iterator[tuple[Workspace, list[str]]]:
    """The repo, held and mended, fit for one more decision row; and what was mended. Raises Refused or BadRecord."""
    ws = workspace.open_repo(start)
    with workspace.held(ws):
        attempt.require_git_ready(ws)
        notes = recover.recover(ws, clock)
        ws = workspace.open_repo(start)
        workspace.require_sound(ws)
        views.require_rendered(ws)
        yield ws, notes


def _pairs(asked: int | None, looks: tuple[int, ...]) -> int:
    least, usual, most = looks[0], looks[1], looks[-1]
    if asked is not None and asked < least:
        what = f"--max-pairs {asked}: an interval for each case needs {least} pairs"
        raise Refused(what, fix=f"give --max-pairs {least} or more")
    return usual if asked is None else min(asked, most) // 2 * 2


@contextmanager
def _unless_done(ws: Workspace) -> Iterator[list[str]]:
    """Runs of a tune that ends in an error are put aside: no row will cite them."""
    made: list[str] = []
    try:
        yield made
    except KernelPilotError:
        for run in runs.orphans(ws.root, ws.rows):
            runs.put_aside(ws.root, run)
        raise


def _measured(bench: measure.Bench, ws: Workspace, version: Row, pairs: int, made: list[str]) -> str:
    """The run that measured a version. Raises NotComparable when the machine is disturbed each time."""
    said = ""
    for _ in range(TRIES):
        intent = _intent(ws, version, pairs, bench.clock)
        bench.say(f"{version.version} against the baseline, {pairs} cross-over pairs ({len(made) + 1})")
        question = jobs.Question(
            job_id=intent.run,
            phases=("verify", "time"),
            arms={
                "A": jobs.baseline_program(ws, ws.baseline().tree),
                "B": jobs.variant_program(version.tree),
            },
            pairs=pairs,
            blocks=mapping.tier(ws).blocks,
        )
        judged = mapping.judge(ws, measure.run_job(bench, intent, question))
        files = {"verify.json": judged.verification, "bench.json": judged.bench}
        runs.note(ws.root, intent.run, {name: record for name, record in files.items() if record is not None})
        if not judged.disturbed:
            if judged.left_out:
                bench.say(f"{version.version} is left out: {judged.left_out}")
            return intent.run
        said = judged.disturbed
        runs.put_aside(ws.root, intent.run)
        bench.say(f"{version.version}: measured again, because {said}")
    raise NotComparable(
        f"{version.version} could not be measured: {said}", fix="kernelpilot tune  # on a quiet machine"
    )


def _intent(ws: Workspace, version: Row, pairs: int, clock: Clock) -> Intent:
    label = ws.best().version
    return Intent(
        run=runs.next_run(ws.root, label),
        role="tune",
        kind="tune",
        label=label,
        variant=version.variant,
        tree=version.tree,
        commit=version.commit,
        parent=version.parent,
        incumbent=ws.baseline().version,
        motivation=Motivation(kind="benchmark", text=f"performance map: {version.version} over W"),
        language=version.language,
        provenance=version.provenance,
        tier=mapping.tier(ws).name,
        max_pairs=pairs,
        epoch=ws.epoch,
        subject=version.version,
        at=stamp(clock),
    )


def _row(ws: Workspace, made: list[str], wanted: tuple[Row, ...], clock: Clock) -> Row:
    cases = len(autotune.cases_of(ws.contract, ws.cases))
    return decision(ws, f"{ledger.TUNE} {len(wanted)} versions x {cases} cases", clock, runs=tuple(made))


def decision(ws: Workspace, reason: str, clock: Clock, *, runs: tuple[str, ...] = ()) -> Row:
    """A decision row beside the best version of now, evidence left empty."""
    return msgspec.structs.replace(
        ws.best(),
        kind="decision",
        at=stamp(clock),
        motivation=Motivation(kind="benchmark", text=reason),
        runs=runs,
        evidence={},
        verdict=None,
        gain=None,
        vs_baseline=None,
        confirmed_by=None,
        partial=False,
        reason=reason,
        status="selected",
        at_head=proc.head(ws.root) or "",
    )
