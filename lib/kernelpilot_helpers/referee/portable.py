"""A measuring job that travels: export it here, run it where the GPU is, import the result, same verdict.

A bundle holds the runtime, one job directory per question (A/A control, main, confirmation, baseline) and what the
row will need. The other machine needs a Python with torch or numpy and nothing of KernelPilot.
"""

from __future__ import annotations

import datetime as dt
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from kernelpilot_helpers import ledger, policy, proc, records
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import BadRecord, NotComparable, Refused
from kernelpilot_helpers.executors import deploy
from kernelpilot_helpers.executors.lab import Lab, encode_job
from kernelpilot_helpers.referee import attempt as attempts
from kernelpilot_helpers.referee import decide, floor, jobs, measure, recover, rows, runs, sources, views, workspace
from kernelpilot_helpers.referee.decide import Ask, Outcome, RunRole, Runs
from kernelpilot_helpers.referee.floor import Clock
from kernelpilot_helpers.referee.runs import FloorRecord, Intent
from kernelpilot_helpers.referee.workspace import LOCAL, Workspace

RUNTIME = deploy.NAME


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job of a bundle."""

    name: str
    role: RunRole
    pairs: int
    job_sha256: str


class Bundle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``bundle.json``."""

    format: Literal["kernelpilot.bundle"] = "kernelpilot.bundle"
    version: int = 1
    id: str
    lock_sha256: str
    intent: Intent
    parts: tuple[Part, ...]


BUNDLE = records.Owner(format="kernelpilot.bundle", version=1, type=Bundle, fix="kernelpilot job export VARIANT")


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """Where the bundle is, and the line that runs it."""

    path: Path
    command: str


def export(start: Path, request: attempts.Request, out: Path, *, clock: Clock) -> Exported:
    """Write a bundle for one attempt. ``out`` ends in .tar.gz, or is a new directory. Raises Refused."""
    if out.exists():
        raise Refused("already exists", where=str(out), fix="name another file")
    ws = workspace.open_repo(start)
    variant = sources.choose_variant(ws, request.variant)
    tree = request.tree or proc.snapshot(ws.root, f"{ws.variants}/{variant}")
    with _held(ws):
        recover.recover(ws, clock)
        ws = workspace.open_repo(start)
        workspace.require_sound(ws)
        views.require_rendered(ws)
        intent = attempts.intent_for(ws, request, variant, tree, clock, recheck=request.again)
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp) / f"kernelpilot-{intent.label}"
        _write(ws, folder, intent, clock)
        _place(folder, out)
    return Exported(path=out, command=f"python3 -I {RUNTIME} jobs/*")


def _place(folder: Path, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.name.endswith((".tar.gz", ".tgz")):
        partial = out.with_name(f".{out.name}.part")
        with tarfile.open(partial, "w:gz") as tar:
            tar.add(folder, arcname=folder.name)
        partial.replace(out)
    else:
        shutil.copytree(folder, out)


def _write(ws: Workspace, folder: Path, intent: Intent, clock: Clock) -> None:
    shutil.copytree(deploy.deploy(), folder / RUNTIME, ignore=shutil.ignore_patterns("__pycache__"))
    pairs = fixed_pairs(intent.tier, intent.max_pairs)
    parts: list[Part] = []
    for role in _roles(ws, intent):
        name = f"{len(parts):02d}-{role}"
        question = _question(ws, intent, role, f"{intent.label}/{name}", pairs)
        target = folder / "jobs" / name
        job = encode_job(jobs.make(ws, question, target))
        records.write_bytes(target / "job.json", job)
        parts.append(Part(name=name, role=role, pairs=question.pairs, job_sha256=records.sha256(job)))
    bundle = Bundle(
        id=f"{intent.label}-{intent.tree[:12]}-{clock():%Y%m%d%H%M%S}",
        lock_sha256=records.file_sha256(ws.root / workspace.LOCK),
        intent=intent,
        parts=tuple(parts),
    )
    records.save(folder / "bundle.json", bundle)
    records.write_text(folder / "README.txt", _readme(intent))


def _readme(intent: Intent) -> str:
    return (
        f"Measuring job of {intent.label}. On the machine to measure on, in this folder:\n\n"
        f"    python3 -I {RUNTIME} jobs/*\n\n"
        "python3 must import torch or numpy; nothing else is needed. Then bring the folder back and, in the\n"
        "standalone repo:\n\n    kernelpilot job import FOLDER\n"
    )


def fixed_pairs(tier: str, max_pairs: int | None) -> int:
    """An exported job has one look: the middle one of the tier, or what ``--max-pairs`` allows."""
    looks = policy.TIERS[tier].looks
    chosen = looks[min(1, len(looks) - 1)]
    return min(chosen, max_pairs) if max_pairs is not None else chosen


def _roles(ws: Workspace, intent: Intent) -> tuple[RunRole, ...]:
    if not policy.TIERS[intent.tier].confirm:
        return ("floor", "main")
    direct = intent.incumbent == ws.baseline().version
    return ("floor", "main", "confirm") if direct else ("floor", "main", "confirm", "baseline")


def _question(ws: Workspace, intent: Intent, role: RunRole, job_id: str, pairs: int) -> jobs.Question:
    if role == "floor":
        program = jobs.baseline_program(ws, ws.baseline().tree)
        return jobs.Question(
            job_id=job_id,
            phases=("verify", "time"),
            arms={"A": program, "B": program},
            pairs=policy.ACCEPT.looks[0],
            blocks=policy.ACCEPT.blocks,
        )
    ask = Ask(
        role=role,
        phases=("time",) if role == "baseline" else ("verify", "time"),
        pairs=pairs,
        first_pair=0,
        why="exported",
    )
    return measure.question_for(ws, intent, ask, job_id)


@contextmanager
def _held(ws: Workspace) -> Iterator[None]:
    with proc.file_lock(ws.root / LOCAL / "repo.lock", timeout_s=policy.POLICY.lock_s, what="this repo's referee"):
        yield


@contextmanager
def opened(source: Path) -> Iterator[Path]:
    """The bundle's folder, unpacked into a temporary one when it is a tar file. Raises BadRecord."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory() as tmp:
        try:
            with tarfile.open(source) as tar:
                _extract(tar, Path(tmp), source)
        except (tarfile.TarError, OSError, EOFError) as error:
            fix = "kernelpilot job export VARIANT --out FILE.tar.gz"
            raise BadRecord(f"not a readable bundle: {error}", where=str(source), fix=fix) from None
        folders = [p for p in Path(tmp).iterdir() if p.is_dir()]
        yield folders[0] if len(folders) == 1 else Path(tmp)


def _extract(tar: tarfile.TarFile, into: Path, source: Path) -> None:
    for member in tar.getmembers():
        inside = (into / member.name).resolve().is_relative_to(into.resolve())
        if not inside or not (member.isfile() or member.isdir()):
            raise BadRecord(f"refused: {member.name} is a link or lies outside", where=str(source), fix="export again")
    tar.extractall(into)  # noqa: S202 - every member was checked just above


def load(folder: Path) -> Bundle:
    """``bundle.json`` of a bundle's folder. Raises BadRecord."""
    return records.load(folder / "bundle.json", BUNDLE)


def import_bundle(start: Path, source: Path, *, clock: Clock) -> attempts.Recorded:
    """Judge a bundle that was run elsewhere and record the row, by the same decisions as a local attempt.

    Raises NotComparable when the lock, the incumbent or a job is not what this repo would ask for now, BadRecord
    when a result is missing or garbled.
    """
    ws = workspace.open_repo(start)
    with opened(source) as folder, _held(ws):
        notes = recover.recover(ws, clock)
        ws = workspace.open_repo(start)
        workspace.require_sound(ws)
        views.require_rendered(ws)
        bundle = load(folder)
        _require_ours(ws, bundle, folder)
        raws = {part.name: _result(folder, part) for part in bundle.parts}
        outcome, intent, made = _record_runs(ws, bundle, folder, raws, clock)
        row = rows.make_row(ws, intent, outcome, made, clock)
        records.append(ws.root / ledger.LINEAGE_PATH, row, ledger.LINEAGE, chained=True)
        recover.finish(workspace.open_repo(start), row)
    return attempts.Recorded(row=row, outcome=outcome, notes=tuple(notes))


def run_bundle(folder: Path, lab: Lab, say: measure.Say) -> dict[str, str]:
    """Run every job of a bundle's folder here; per job ``done`` or how it died. Raises BadRecord."""
    out: dict[str, str] = {}
    for part in load(folder).parts:
        workdir = folder / "jobs" / part.name
        job = records.load(workdir / "job.json", runs.JOB)
        say(f"{part.name}: {part.pairs} cross-over pairs")
        raw = lab.run(job, workdir)
        out[part.name] = "done" if raw.died is None else f"died in {raw.died.stage} (arm {raw.died.arm or 'oracle'})"
    return out


def _require_ours(ws: Workspace, bundle: Bundle, folder: Path) -> None:
    fix = "kernelpilot job export VARIANT, and run it again"
    if bundle.lock_sha256 != records.file_sha256(ws.root / workspace.LOCK):
        raise NotComparable("it was exported under another contract lock", where=str(folder), fix=fix)
    if ws.best().version != bundle.intent.incumbent:
        what = f"it was measured against {bundle.intent.incumbent}; the incumbent is {ws.best().version} now"
        raise NotComparable(what, where=str(folder), fix=fix)
    pairs = fixed_pairs(bundle.intent.tier, bundle.intent.max_pairs)
    for part in bundle.parts:
        job = records.read_bytes(folder / "jobs" / part.name / "job.json", fix=fix)
        with tempfile.TemporaryDirectory() as tmp:
            question = _question(ws, bundle.intent, part.role, f"{bundle.intent.label}/{part.name}", pairs)
            ours = encode_job(jobs.make(ws, question, Path(tmp) / "job"))
        if not records.sha256(job) == part.job_sha256 == records.sha256(ours):
            raise NotComparable(f"job {part.name} is not the one that this repo asks for", where=str(folder), fix=fix)
    if tuple(p.role for p in bundle.parts) != _roles(ws, bundle.intent):
        raise NotComparable("its jobs are not the ones that this repo asks for", where=str(folder), fix=fix)


def _result(folder: Path, part: Part) -> Raw:
    path = folder / "jobs" / part.name / "raw.json"
    fix = f"in the bundle: python3 -I {RUNTIME} jobs/{part.name}"
    owner = raw_owner(fix)
    raw = records.parse(records.read_bytes(path, fix=fix), owner, at=str(path))
    if raw.job_sha256 != part.job_sha256:
        raise NotComparable("this result belongs to another job", where=str(path), fix=fix)
    return raw


def raw_owner(fix: str) -> records.Owner[Raw]:
    """The raw format with the command that makes this one anew."""
    return records.Owner(format=runs.RAW.format, version=runs.RAW.version, type=Raw, fix=fix)


def _record_runs(
    ws: Workspace, bundle: Bundle, folder: Path, raws: dict[str, Raw], clock: Clock
) -> tuple[Outcome, Intent, list[str]]:
    label = bundle.intent.label
    if any(row.version == label for row in ws.rows):
        label = ledger.next_version(ws.rows, bundle.intent.variant)
    intent = msgspec.structs.replace(bundle.intent, label=label)
    made: list[str] = []
    state = Runs()
    control: FloorRecord | None = None
    for part in bundle.parts:
        run = runs.next_run(ws.root, label)
        intent = msgspec.structs.replace(intent, run=run, role=part.role)
        runs.begin(ws.root, intent)
        made.append(run)
        for name in ("job.json", "raw.json"):
            source = folder / "jobs" / part.name / name
            records.write_bytes(runs.run_dir(ws.root, run) / name, source.read_bytes())
        if part.role == "floor":
            control = floor.judge(ws, raws[part.name], run=run, at=_ended(raws[part.name], clock))
            runs.note(ws.root, run, {"floor.json": control})
            found = floor.pooled([control])
            intent = msgspec.structs.replace(intent, bias_bound=found.bias_bound, unfit=found.unfit)
            continue
        _same_booking(control, raws[part.name], folder)
        state = state.with_raw(part.role, raws[part.name])
        facts = measure.facts_of(ws, intent)
        measure.note_judgements(ws, facts, run, part.role, state)
    pairs = fixed_pairs(intent.tier, intent.max_pairs)
    facts = measure.facts_of(ws, msgspec.structs.replace(intent, max_pairs=pairs))
    outcome = decide.step(facts, state)
    if isinstance(outcome, Ask):
        outcome = Outcome(verdict="BROKEN", reason=f"evidence.missing: the bundle holds no {outcome.role} run")
    return outcome, intent, made


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
