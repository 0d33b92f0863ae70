"""``kernelpilot profile``: one focused capture of a correct version, digested and filed whole or not at all."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernelpilot_helpers import proc
from kernelpilot_helpers.attempt import profile
from kernelpilot_helpers.attempt.profile import LIMIT_S, Profile
from kernelpilot_helpers.executors.profile_stage import Stage
from kernelpilot_helpers.ncu.model import Digest
from kernelpilot_helpers.referee import capture, filing, subject, workspace
from kernelpilot_helpers.referee.capture import Captured
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.measure import Say
from kernelpilot_helpers.referee.subject import Subject
from kernelpilot_helpers.referee.workspace import LOCAL, Workspace

WORK = f"{LOCAL}/profile"
LOCK = f"{LOCAL}/profile.lock"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the user asked for; None takes the default."""

    version: str | None = None
    variant: str | None = None
    case_id: str | None = None
    collected: Literal["focused", "full"] = "focused"
    residency: Literal["contract", "hot", "cold"] = "contract"
    limit_s: float = LIMIT_S


@dataclass(frozen=True, kw_only=True, slots=True)
class Profiled:
    """What was filed."""

    profile: Profile
    digest: Digest
    folder: str
    commit: str | None
    logs: str | None = None
    """Where the words of ncu and of the program lie, where there is no report."""


def profile_version(start: Path, request: Request, *, stage: Stage, clock: Clock, say: Say) -> Profiled:
    """Capture, digest, file and commit. A profile that ncu cannot make is filed as a fallback with ncu's own words.

    Raises Refused for what may not be profiled and without a GPU, Busy when another profile of this repo is under way,
    KernelPilotError when the version does not run at all, or ncu got less than its usual time and did not end; nothing
    is then filed.
    """
    ws = workspace.open_repo(start)
    what = subject.choose(ws, version=request.version, variant=request.variant, case_id=request.case_id)
    with proc.file_lock(ws.root / LOCK, timeout_s=0.0, what="a profile of this repo"):
        filing.recover(ws.root)
        work = ws.root / WORK
        shutil.rmtree(work, ignore_errors=True)
        started, keep = time.monotonic(), True
        try:
            how = capture.How(
                collected=request.collected, residency=request.residency, limit_s=request.limit_s
            )  # fmt: skip
            found = capture.Capture(ws, what, how, work, stage, say).run()
            made = _profile(ws, what, found, stamp(clock), round(time.monotonic() - started, 1))
            done = _filed(ws, what, made, found)
            keep = found.why is not None
        finally:
            if keep:
                capture.keep_logs(ws.root, work)
            shutil.rmtree(work, ignore_errors=True)
    return done


def require(start: Path, request: Request) -> Subject:
    """What may not be profiled is refused before a Python or a GPU is looked for."""
    ws = workspace.open_repo(start)
    return subject.choose(ws, version=request.version, variant=request.variant, case_id=request.case_id)


def _profile(ws: Workspace, what: Subject, found: Captured, at: str, seconds: float) -> Profile:
    row, rehearsal = what.row, found.rehearsal
    return Profile(
        subject=row.version,
        variant=row.variant,
        tree=row.tree,
        epoch=ws.epoch,
        case_id=what.case.case_id,
        regime=what.regime,
        residency=found.residency,
        verdict=row.verdict or row.kind,
        run=what.run,
        at=at,
        seconds=seconds,
        source="fallback" if found.why else "ncu",
        why=found.why,
        tool=found.tool,
        gpu=rehearsal.gpu or found.report.session.gpu,
        driver=rehearsal.driver,
        framework=rehearsal.framework,
        command=found.command,
        launches=found.launches,
        facts_sha256="",
        digest_sha256="",
        page_sha256="",
    )


def roots(ws: Workspace, what: Subject, found: Captured) -> dict[str, str]:
    """Beginning of a path on this machine -> where the same file lies in the repo."""
    folder = "" if what.program else f"{ws.variants}/{what.row.variant}/"
    pairs = [(path, folder) for path in found.scratch] + [(ws.root, "")]
    return {f"{place}/": to for path, to in pairs for place in (path, path.resolve())}


def _filed(ws: Workspace, what: Subject, made: Profile, found: Captured) -> Profiled:
    given = filing.given(what, one_kernel=len(found.rehearsal.kernels) == 1)
    draft = filing.draft(ws.root, made, found.report, given=given, report_path=found.path, roots=roots(ws, what, found))
    with workspace.held(ws):
        filing.place(ws.root, draft)
        words = f"{what.row.version.partition('_')[0]} profile {what.case.case_id}: {draft.digest.name}"
        commit = proc.commit(ws.root, words, [profile.folder(made.subject, made.case_id)])
    folder = profile.folder(made.subject, made.case_id)
    logs = capture.LOGS if found.why is not None else None
    return Profiled(profile=draft.profile, digest=draft.digest, folder=folder, commit=commit, logs=logs)
