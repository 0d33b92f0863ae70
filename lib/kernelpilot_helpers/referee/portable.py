"""A measuring job that travels: export it here, run it where the GPU is, import the result, same verdict.

A bundle holds the runtime, one job directory per question (A/A control, main, confirmation, baseline) and what the
row will need. The other machine needs a Python with torch or numpy and nothing of KernelPilot.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from kernelpilot_helpers import proc, records
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.executors import deploy
from kernelpilot_helpers.executors.lab import Lab, encode_job
from kernelpilot_helpers.referee import attempt as attempts
from kernelpilot_helpers.referee import baselines, decide, jobs, measure, recover, runs, sources, views, workspace
from kernelpilot_helpers.referee.decide import Ask, RunRole
from kernelpilot_helpers.referee.floor import Clock
from kernelpilot_helpers.referee.runs import Intent
from kernelpilot_helpers.referee.workspace import Workspace

RUNTIME = deploy.NAME


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job of a bundle."""

    name: str
    role: RunRole
    pairs: int
    job_sha256: str
    which: int = 0
    """Role ``baseline``: which of the contract's baselines."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``bundle.json``."""

    format: Literal["kernelpilot.bundle"] = "kernelpilot.bundle"
    version: int = 1
    id: str
    lock_sha256: str
    intent: Intent
    parts: tuple[Part, ...]


EXPORT = 'kernelpilot job export VARIANT --out FILE.tar.gz --motivation "..."'
BUNDLE = records.Owner(format="kernelpilot.bundle", version=1, type=Bundle, fix=EXPORT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """Where the bundle is, and the line that runs it."""

    path: Path
    command: str


def export(start: Path, request: attempts.Request, out: Path, *, clock: Clock) -> Exported:
    """Write a bundle for one attempt. ``out`` ends in .tar.gz, or is a new directory. Raises Refused."""
    ws = workspace.open_repo(start)
    if out.exists():
        raise Refused("already exists", where=str(out), fix="name another file")
    variant = sources.choose_variant(ws, request.variant)
    tree = request.tree or proc.snapshot(ws.root, f"{ws.variants}/{variant}")
    with workspace.held(ws):
        recover.recover(ws, clock)
        ws = workspace.open_repo(start)
        workspace.require_sound(ws)
        views.require_rendered(ws)
        sources.require_cited(ws, request.motivation)
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
    parts: list[Part] = []
    for role, which in roles(ws, intent):
        name = f"{len(parts):02d}-{role}"
        asked = question(ws, intent, role, f"{intent.label}/{name}", which)
        target = folder / "jobs" / name
        job = encode_job(jobs.make(ws, asked, target))
        records.write_bytes(target / "job.json", job)
        parts.append(Part(name=name, role=role, pairs=asked.pairs, job_sha256=records.sha256(job), which=which))
    bundle = Bundle(
        id=f"{intent.label}-{intent.tree[:12]}-{clock():%Y%m%d%H%M%S}",
        lock_sha256=records.file_sha256(ws.root / workspace.LOCK),
        intent=intent,
        parts=tuple(parts),
    )
    records.save(folder / "bundle.json", bundle)
    records.write_text(folder / "README.txt", _readme(intent, gpu=ws.device.kind == "gpu"))


def _readme(intent: Intent, *, gpu: bool) -> str:
    needs = "a torch that sees the GPU" if gpu else "torch or numpy"
    return (
        f"Measuring job of {intent.label}. On the machine to measure on, in this folder:\n\n"
        f"    python3 -I {RUNTIME} jobs/*\n\n"
        f"python3 must import {needs}; nothing else is needed. Then bring the folder back and, in the\n"
        "standalone repo:\n\n    kernelpilot job import FOLDER\n"
    )


def fixed_pairs(ws: Workspace, intent: Intent) -> int:
    """An exported job has one look: the middle one of the tier, or what ``--max-pairs`` allows."""
    looks = ws.tier(intent.tier).looks
    chosen = looks[min(1, len(looks) - 1)]
    return min(chosen, intent.max_pairs) if intent.max_pairs is not None else chosen


def roles(ws: Workspace, intent: Intent) -> tuple[tuple[RunRole, int], ...]:
    """The questions that a bundle answers, in order; beside a direct run which baseline it is against."""
    if not ws.tier(intent.tier).confirm:
        return (("floor", 0), ("main", 0))
    direct = baselines.wanted(measure.facts_of(ws, intent))
    return (("floor", 0), ("main", 0), ("confirm", 0), *(("baseline", which) for which in direct))


def question(ws: Workspace, intent: Intent, role: RunRole, job_id: str, which: int = 0) -> jobs.Question:
    """The job of one role, with the phases that an attempt here would ask for."""
    if role == "floor":
        return measure.floor_question(ws, intent, job_id)
    ask = Ask(
        role=role,
        phases=decide.phases(ws.tier(intent.tier), ws.device, role),
        pairs=fixed_pairs(ws, intent),
        first_pair=0,
        why="exported",
        which=which,
    )
    return measure.question_for(ws, intent, ask, job_id)


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
            fix = EXPORT
            raise BadRecord(f"not a readable bundle: {error}", where=str(source), fix=fix) from None
        folders = [p for p in Path(tmp).iterdir() if p.is_dir()]
        yield folders[0] if len(folders) == 1 else Path(tmp)


def _extract(tar: tarfile.TarFile, into: Path, source: Path) -> None:
    for member in tar.getmembers():
        inside = (into / member.name).resolve().is_relative_to(into.resolve())
        if not inside or not (member.isfile() or member.isdir()):
            raise BadRecord(f"refused: {member.name} is a link or lies outside", where=str(source), fix=EXPORT)
    tar.extractall(into)  # noqa: S202 - every member was checked just above


def load(folder: Path) -> Bundle:
    """``bundle.json`` of a bundle's folder. Raises BadRecord."""
    return records.load(folder / "bundle.json", BUNDLE)


def on_gpu(folder: Path) -> bool:
    """Whether a job of a bundle's folder needs a GPU. Raises BadRecord."""
    parts = load(folder).parts
    return any(records.load(folder / "jobs" / part.name / "job.json", runs.JOB).device == "gpu" for part in parts)


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
