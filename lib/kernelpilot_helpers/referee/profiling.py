"""``kernelpilot profile``: one focused capture of a correct version, digested and filed whole or not at all."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernelpilot_helpers import proc, records
from kernelpilot_helpers.attempt import profile
from kernelpilot_helpers.attempt.profile import Launches, Profile, Why
from kernelpilot_helpers.executors import ncu_tool, profile_stage
from kernelpilot_helpers.executors.lab import encode_job
from kernelpilot_helpers.executors.profile_stage import CALLS, WARM_UP, Rehearsal, Scene, Stage
from kernelpilot_helpers.ncu.model import Digest, RefusedInput
from kernelpilot_helpers.ncu.report import Report
from kernelpilot_helpers.referee import fallback, filing, jobs, subject, workspace
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.measure import Say
from kernelpilot_helpers.referee.subject import Subject
from kernelpilot_helpers.referee.workspace import LOCAL, Workspace

WORK = f"{LOCAL}/profile"
LOCK = f"{LOCAL}/profile.lock"
LIMIT_S = 240.0
SHARE = 0.95
"""Of a call's time: the kernels that are captured."""
KERNELS_MAX, LAUNCHES_MAX, LAUNCHES_BLIND = 8, 24, 12


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


def profile_version(start: Path, request: Request, *, stage: Stage, clock: Clock, say: Say) -> Profiled:
    """Capture, digest, file and commit. A profile that ncu cannot make is filed as a fallback with ncu's own words.

    Raises Refused for what may not be profiled and without a GPU, Busy when another profile of this repo is under way,
    KernelPilotError when the version does not run at all; nothing is then filed.
    """
    ws = workspace.open_repo(start)
    what = subject.choose(ws, version=request.version, variant=request.variant, case_id=request.case_id)
    with proc.file_lock(ws.root / LOCK, timeout_s=0.0, what="a profile of this repo"):
        filing.recover(ws.root)
        work = ws.root / WORK
        shutil.rmtree(work, ignore_errors=True)
        started = time.monotonic()
        try:
            found = _Capture(ws, what, request, work, stage, say).run()
            made = _profile(ws, what, found, stamp(clock), round(time.monotonic() - started, 1))
            return _filed(ws, what, made, found)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def require(start: Path, request: Request) -> Subject:
    """What may not be profiled is refused before a Python or a GPU is looked for."""
    ws = workspace.open_repo(start)
    return subject.choose(ws, version=request.version, variant=request.variant, case_id=request.case_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Captured:
    """What came out of both programs."""

    rehearsal: Rehearsal
    launches: Launches
    report: Report
    """Of ncu, or the fallback's."""
    path: Path | None
    why: Why | None
    tool: str
    command: tuple[str, ...]
    residency: Literal["hot", "cold"]


class _Capture:
    """One scene from rehearsal to report."""

    def __init__(self, ws: Workspace, what: Subject, request: Request, work: Path, stage: Stage, say: Say) -> None:
        self._ws, self._what, self._request, self._work, self._stage, self._say = ws, what, request, work, stage, say

    def run(self) -> Captured:
        """Rehearse, then capture; without ncu what the rehearsal saw."""
        what, label = self._what, self._what.row.version
        question = jobs.Question(job_id="profile", phases=("verify",), arms={"B": subject.program_of(self._ws, what)})
        jobdir = self._work / "job"
        jobdir.parent.mkdir(parents=True, exist_ok=True)
        job = jobs.make(self._ws, question, jobdir)
        (jobdir / "job.json").write_bytes(encode_job(job))
        folder = self._work / "scene"
        folder.mkdir()
        limit = self._request.limit_s
        scene = Scene(jobdir=jobdir, arm="B", case_id=what.case.case_id, folder=folder, limit=limit)
        with self._stage.held():
            self._say(f"{label} on {what.case.case_id}: build and warm up, without ncu")
            rehearsal = self._stage.rehearse(scene)
            profile_stage.require(rehearsal, label)
            return self._captured(scene, rehearsal)

    def _captured(self, scene: Scene, rehearsal: Rehearsal) -> Captured:
        residency = self._residency()
        launches = choose_launches(self._what, rehearsal, residency, self._request.collected)
        program, env = self._stage.program(scene)
        tool = ncu_tool.find(env)
        path, why = self._work / profile.REPORT, tool if isinstance(tool, Why) else None
        command: tuple[str, ...] = ()
        if isinstance(tool, ncu_tool.Tool):
            argv = ncu_tool.argv(tool, launches, path, program)
            command = self._line(argv)
            self._say(f"ncu {tool.version}: {launches.count} launches, {launches.collected} set")
            log = self._work / "ncu.log"
            ended = ncu_tool.run(argv, path, env=env, cwd=scene.folder, log=log, limit=scene.limit)
            path, why = ended.report or path, ended.why
            records.crash_point("profile.captured")
        report = None if why else self._read(path)
        if isinstance(report, Why):
            why, report = report, None
        if why is not None:
            self._say(f"no report of ncu ({why.code}: {why.words}); what is known without one is filed instead")
        return Captured(
            rehearsal=rehearsal,
            launches=launches,
            report=report or fallback.report(rehearsal, why or Why(code="ncu.failed", words="no report")),
            path=path if report is not None else None,
            why=why,
            tool=f"ncu {tool.version}" if isinstance(tool, ncu_tool.Tool) else "",
            command=command,
            residency=residency,
        )

    def _read(self, path: Path) -> Report | Why:
        from kernelpilot_helpers.ncu import load  # noqa: PLC0415 - the reader is large

        try:
            report = load.load([path])
        except RefusedInput as fault:
            return Why(code="ncu.unreadable", words=f"{fault.code}: {fault.what}")
        if not report.launches:
            return Why(code="ncu.no_kernels", words="the report holds no launch")
        return report

    def _residency(self) -> Literal["hot", "cold"]:
        asked = self._request.residency
        if asked != "contract":
            return asked
        return "hot" if self._what.residency == "hot" else "cold"

    def _line(self, argv: Sequence[str]) -> tuple[str, ...]:
        return profile_stage.line(argv, {f"{self._ws.root}/": ""})


def choose_launches(
    what: Subject, found: Rehearsal, residency: Literal["hot", "cold"], collected: Literal["focused", "full"]
) -> Launches:
    """The kernels that hold most of a call's time and how many launches of them the calls make.

    By the rehearsal; else by what the version's last run saw; else whatever comes, up to a limit.
    """
    names, each = _longest(found)
    if not names and what.kernels:
        bare = [(fallback.function(name), count) for name, count in what.kernels]
        names = tuple(dict.fromkeys(name for name, _ in bare if name))[:KERNELS_MAX]
        each = sum(count for name, count in bare if name in names)
    return Launches(
        calls=CALLS,
        warm_up=WARM_UP,
        skip=0,
        count=min(each * CALLS, LAUNCHES_MAX) if each else LAUNCHES_BLIND,
        kernels=names,
        cache_control="none" if residency == "hot" else "all",
        collected=collected,
    )


def _longest(found: Rehearsal) -> tuple[tuple[str, ...], int]:
    """(bare names until 95 % of the time, launches of them in one call); none where a name is not known."""
    took: dict[str, int] = {}
    for kernel in found.kernels:
        name = fallback.function(kernel.name)
        if not name:
            return (), len(found.kernels)
        took[name] = took.get(name, 0) + kernel.ns
    whole, so_far = sum(took.values()), 0
    names: list[str] = []
    for name, ns in sorted(took.items(), key=lambda item: (-item[1], item[0])):
        if names and (so_far >= SHARE * whole or len(names) == KERNELS_MAX):
            break
        names.append(name)
        so_far += ns
    return tuple(sorted(names)), sum(fallback.function(k.name) in names for k in found.kernels)


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


def _filed(ws: Workspace, what: Subject, made: Profile, found: Captured) -> Profiled:
    given = filing.given(what, one_kernel=len(found.rehearsal.kernels) == 1)
    draft = filing.draft(ws.root, made, found.report, given=given, report_path=found.path)
    with workspace.held(ws):
        filing.place(ws.root, draft)
        words = f"{what.row.version.partition('_')[0]} profile {what.case.case_id}: {draft.digest.name}"
        commit = proc.commit(ws.root, words, [profile.folder(made.subject, made.case_id)])
    folder = profile.folder(made.subject, made.case_id)
    return Profiled(profile=draft.profile, digest=draft.digest, folder=folder, commit=commit)
