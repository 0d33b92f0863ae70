"""``kernelpilot job import``: results that were measured elsewhere, trusted for nothing that this repo can know itself.

Everything is checked and judged before the first byte is written: a refused bundle leaves no trace.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path

import msgspec

from kernelpilot_helpers import ledger, policy, proc, records
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import BadRecord, NotComparable
from kernelpilot_helpers.executors import absent
from kernelpilot_helpers.executors.lab import encode_job
from kernelpilot_helpers.referee import attempt as attempts
from kernelpilot_helpers.referee import decide, floor, jobs, measure, recover, rows, runs, sources, views, workspace
from kernelpilot_helpers.referee.decide import Ask, Outcome, Runs
from kernelpilot_helpers.referee.floor import Clock
from kernelpilot_helpers.referee.portable import (
    EXPORT,
    RUNTIME,
    Bundle,
    Part,
    fixed_pairs,
    load,
    opened,
    question,
    roles,
)
from kernelpilot_helpers.referee.runs import FloorRecord, Intent
from kernelpilot_helpers.referee.workspace import Workspace


def import_bundle(start: Path, source: Path, *, clock: Clock) -> attempts.Recorded:
    """Judge a bundle that was run elsewhere and record the row, by the same decisions as a local attempt.

    Raises NotComparable when the lock, the incumbent or a job is not what this repo would ask for now, BadRecord
    when a result is missing or garbled.
    """
    ws = workspace.open_repo(start)
    with opened(source) as folder, workspace.held(ws):
        notes = recover.recover(ws, clock)
        ws = workspace.open_repo(start)
        workspace.require_sound(ws)
        views.require_rendered(ws)
        bundle = load(folder)
        _require_ours(ws, bundle, folder)
        sources.require_cited(ws, bundle.intent.motivation)
        raws = {part.name: _result(folder, part) for part in bundle.parts}
        _require_new(ws, bundle, folder)
        _require_independent(raws, folder)
        bundle = msgspec.structs.replace(bundle, intent=_own_intent(ws, bundle.intent, folder))
        outcome, intent, control = _judged(ws, bundle, folder, raws, clock)
        intent, made = _write_runs(ws, bundle, folder, raws, (outcome, intent, control))
        row = rows.make_row(ws, intent, outcome, made, clock)
        records.append(ws.root / ledger.LINEAGE_PATH, row, ledger.LINEAGE, chained=True)
        recover.finish(workspace.open_repo(start), row)
    return attempts.Recorded(row=row, outcome=outcome, notes=tuple(notes))


def _require_ours(ws: Workspace, bundle: Bundle, folder: Path) -> None:
    fix = f"{EXPORT}  # and run that"
    if bundle.intent.tier not in policy.TIERS:
        raise NotComparable(f"tier {bundle.intent.tier!r} is unknown", where=str(folder), fix=fix)
    if bundle.lock_sha256 != records.file_sha256(ws.root / workspace.LOCK):
        raise NotComparable("it was exported under another contract lock", where=str(folder), fix=fix)
    incumbent = attempts.incumbent_of(ws, bundle.intent.tree).version
    if incumbent != bundle.intent.incumbent:
        what = f"it was measured against {bundle.intent.incumbent}; the incumbent is {incumbent} now"
        raise NotComparable(what, where=str(folder), fix=fix)
    for part in bundle.parts:
        job = records.read_bytes(folder / "jobs" / part.name / "job.json", fix=fix)
        with tempfile.TemporaryDirectory() as tmp:
            asked = question(ws, bundle.intent, part.role, f"{bundle.intent.label}/{part.name}", part.which)
            ours = encode_job(jobs.make(ws, asked, Path(tmp) / "job"))
        if not records.sha256(job) == part.job_sha256 == records.sha256(ours):
            raise NotComparable(f"job {part.name} is not the one that this repo asks for", where=str(folder), fix=fix)
    if tuple((p.role, p.which) for p in bundle.parts) != roles(ws, bundle.intent):
        raise NotComparable("its jobs are not the ones that this repo asks for", where=str(folder), fix=fix)


def _result(folder: Path, part: Part) -> Raw:
    path = folder / "jobs" / part.name / "raw.json"
    fix = f"in the bundle: python3 -I {RUNTIME} jobs/{part.name}"
    owner = raw_owner(fix)
    raw = records.parse(records.read_bytes(path, fix=fix), owner, at=str(path))
    if raw.job_sha256 != part.job_sha256:
        raise NotComparable("this result belongs to another job", where=str(path), fix=fix)
    if code := absent.code_of(raw):
        what = f"it ran where there was no GPU to measure on ({code})"
        raise NotComparable(what, where=str(path), fix=f"{fix}  # on a machine whose GPU is free")
    return raw


def raw_owner(fix: str) -> records.Owner[Raw]:
    """The raw format with the command that makes this one anew."""
    return records.Owner(format=runs.RAW.format, version=runs.RAW.version, type=Raw, fix=fix)


def _judged(
    ws: Workspace, bundle: Bundle, folder: Path, raws: dict[str, Raw], clock: Clock
) -> tuple[Outcome, Intent, FloorRecord]:
    """Outcome of a bundle, before anything of it is written. Raises as ``import_bundle``."""
    control: FloorRecord | None = None
    intent, state = bundle.intent, Runs()
    for part in bundle.parts:
        raw = raws[part.name]
        if part.role == "floor":
            control = floor.judge(ws, raw, run="", at=_ended(raw, clock))
            found = floor.pooled([control])
            pairs = fixed_pairs(ws, intent)
            intent = msgspec.structs.replace(intent, bias_bound=found.bias_bound, unfit=found.unfit, max_pairs=pairs)
            continue
        _same_booking(control, raw, folder)
        state = state.with_raw(part.role, raw)
    if control is None:
        raise BadRecord("it holds no A/A control", where=str(folder), fix="export again")
    outcome = decide.step(measure.facts_of(ws, intent), state)
    if isinstance(outcome, Ask):
        outcome = Outcome(verdict="BROKEN", reason=f"evidence.missing: the bundle holds no {outcome.role} run")
    if outcome.reason.startswith("evidence."):
        raise BadRecord(outcome.reason, where=str(folder), fix=f"run it again: python3 -I {RUNTIME} jobs/*")
    return outcome, intent, control


def _write_runs(
    ws: Workspace, bundle: Bundle, folder: Path, raws: dict[str, Raw], judged: tuple[Outcome, Intent, FloorRecord]
) -> tuple[Intent, list[str]]:
    """Run directories of an accepted bundle; only now does the repo change."""
    outcome, intent, control = judged
    used = {"main"}
    if outcome.confirmed:
        used = {"main", "confirm", "baseline"}
    elif outcome.reason.startswith("confirm.failed"):
        used = {"main", "confirm"}
    made: list[str] = []
    state = Runs()
    for part in bundle.parts:
        run = runs.next_run(ws.root, intent.label)
        intent = msgspec.structs.replace(intent, run=run, role=part.role)
        runs.begin(ws.root, intent)
        made.append(run)
        for name in ("job.json", "raw.json"):
            source = folder / "jobs" / part.name / name
            records.write_bytes(runs.run_dir(ws.root, run) / name, source.read_bytes())
        if part.role == "floor":
            runs.note(ws.root, run, {"floor.json": msgspec.structs.replace(control, run=run)})
            continue
        state = state.with_raw(part.role, raws[part.name])
        if part.role in used:  # a run that decided nothing keeps its raw, and no judgement that could be taken for one
            measure.note_judgements(ws, measure.facts_of(ws, intent), run, part.role, state)
    return intent, made


def _own_intent(ws: Workspace, given: Intent, folder: Path) -> Intent:
    """The bundle's intent with every field that this repo can know taken from the repo. Raises NotComparable."""
    path = f"{ws.variants}/{given.variant}"
    known = (
        sources.NAME.fullmatch(given.variant) and given.kind in ("attempt", "recheck") and given.tier in policy.TIERS
    )
    if not known or given.epoch != ws.epoch or proc.tree(ws.root, given.commit, path) != given.tree:
        what = f"it is about {given.variant!r} at commit {given.commit[:12]!r}, which this repo does not hold so"
        raise NotComparable(what, where=str(folder), fix=EXPORT)
    label = given.label
    if not sources.LABEL.fullmatch(label) or any(row.version == label for row in ws.rows):
        label = ledger.next_version(ws.rows, given.variant)
    again = any(row.kind == "attempt" for row in ledger.by_tree(ws.rows, given.tree, ws.epoch))
    return msgspec.structs.replace(
        given,
        label=label,
        kind="recheck" if again else "attempt",
        parent=ledger.find(ws.rows, given.parent).version,
        provenance=sources.provenance(ws, given.tree, path),
    )


def _require_new(ws: Workspace, bundle: Bundle, folder: Path) -> None:
    """Neither imported before, nor one run told twice. Raises NotComparable."""
    told = [records.file_sha256(folder / "jobs" / part.name / "raw.json") for part in bundle.parts]
    held = {records.file_sha256(p) for p in (ws.root / workspace.RUNS).glob("*/raw.json")}
    if held & set(told):
        raise NotComparable("its results are in this repo already", where=str(folder), fix="kernelpilot ledger check")


def _require_independent(raws: dict[str, Raw], folder: Path) -> None:
    """A confirmation must be a second measurement. Raises NotComparable."""
    seen: set[tuple[int, ...]] = set()
    for raw in raws.values():
        mine = {s.ns for s in raw.samples if len(s.ns) > 3}
        if seen & mine:
            raise NotComparable("two of its jobs hold the same samples", where=str(folder), fix="run all jobs/* again")
        seen |= mine


def _ended(raw: Raw, clock: Clock) -> str:
    started = raw.env.get("started")
    if isinstance(started, str):
        try:
            return dt.datetime.fromisoformat(started.replace("Z", "+00:00")).strftime("%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            pass
    return floor.stamp(clock)


def _same_booking(control: FloorRecord | None, raw: Raw, folder: Path) -> None:
    if control is None or control.booking != floor.booking(raw):
        raise NotComparable(
            "its jobs ran on different machines, boots or Pythons", where=str(folder), fix="run all jobs/* in one go"
        )
