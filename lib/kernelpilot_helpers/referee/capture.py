"""One scene from rehearsal to report: the version alone, then the same below ncu, or why that gave no report."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.attempt import profile
from kernelpilot_helpers.attempt.profile import LIMIT_S, Launches, Why
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.executors import ncu_tool, profile_stage
from kernelpilot_helpers.executors.lab import encode_job
from kernelpilot_helpers.executors.profile_stage import CALLS, WARM_UP, Rehearsal, Scene, Stage
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import Report
from kernelpilot_helpers.referee import fallback, jobs, subject
from kernelpilot_helpers.referee.measure import Say
from kernelpilot_helpers.referee.subject import Subject
from kernelpilot_helpers.referee.workspace import LOCAL, Workspace

LOGS = f"{LOCAL}/profile-logs"
"""Of the last profile that gave no report: what ncu and the program said, and what ncu wrote."""
KEPT_BYTES = 64 << 20
SHARE = 0.95
"""Of a call's time: the kernels that are captured."""
KERNELS_MAX, LAUNCHES_MAX, LAUNCHES_BLIND = 8, 24, 12


@dataclass(frozen=True, kw_only=True, slots=True)
class How:
    """How to capture."""

    collected: Literal["focused", "full"]
    residency: Literal["contract", "hot", "cold"]
    limit_s: float


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
    scratch: tuple[Path, ...] = ()
    """Copies of the version's folder that the program ran in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shot:
    """One run of ncu and what came of it."""

    launches: Launches
    report: Report | None
    path: Path
    why: Why | None
    command: tuple[str, ...]


class Capture:
    """One scene from rehearsal to report."""

    def __init__(self, ws: Workspace, what: Subject, how: How, work: Path, stage: Stage, say: Say) -> None:
        self._ws, self._what, self._how, self._work, self._stage, self._say = ws, what, how, work, stage, say

    def run(self) -> Captured:
        """Rehearse, then capture; without ncu what the rehearsal saw.

        Raises KernelPilotError for a version that does not run, and where ncu was given too little time to say so.
        """
        label = self._what.row.version
        program = subject.program_of(self._ws, self._what)
        question = jobs.Question(job_id="profile", phases=("verify",), arms={"B": program})
        jobdir = self._work / "job"
        jobdir.parent.mkdir(parents=True, exist_ok=True)
        job = jobs.make(self._ws, question, jobdir)
        (jobdir / "job.json").write_bytes(encode_job(job))
        folder = self._work / "scene"
        folder.mkdir()
        case_id = self._what.case.case_id
        source = jobdir / next(arm.source for arm in job.arms if arm.name == "B")
        scene = Scene(
            jobdir=jobdir, arm="B", case_id=case_id, folder=folder, limit=self._how.limit_s, source=source
        )  # fmt: skip
        with self._stage.held():
            self._say(f"{label} on {case_id}: build and warm up, without ncu")
            rehearsal = self._stage.rehearse(scene)
            profile_stage.require(rehearsal, label)
            return self._captured(scene, rehearsal)

    def _captured(self, scene: Scene, rehearsal: Rehearsal) -> Captured:
        residency = self._residency()
        launches = choose_launches(self._what, rehearsal, residency, self._how.collected)
        program, env = self._stage.program(scene)
        tool = ncu_tool.find(env)
        if isinstance(tool, Why):
            shot = _Shot(launches=launches, report=None, path=self._work, why=tool, command=())
        else:
            shot = self._shoot(tool, launches, scene, (program, env))
            if shot.why is not None and shot.why.code == "ncu.no_kernels" and launches.kernels:
                self._say(f"ncu took none of {', '.join(launches.kernels)}: once more without names")
                blind = msgspec.structs.replace(launches, kernels=(), count=LAUNCHES_BLIND)
                shot = self._shoot(tool, blind, scene, self._stage.program(scene))
        why = shot.why
        if why is not None:
            self._say(f"no report of ncu ({why.code}: {why.words}); its log: {LOGS}")
            self._enough(why)
        return Captured(
            rehearsal=rehearsal,
            launches=shot.launches,
            report=shot.report or fallback.report(rehearsal, why or Why(code="ncu.failed", words="no report")),
            path=shot.path if shot.report is not None else None,
            why=why,
            tool=f"ncu {tool.version}" if isinstance(tool, ncu_tool.Tool) else "",
            command=shot.command,
            residency=residency,
            scratch=(scene.folder, *((scene.source,) if scene.source else ())),
        )

    def _shoot(
        self, tool: ncu_tool.Tool, launches: Launches, scene: Scene, program: tuple[list[str], Mapping[str, str]]
    ) -> _Shot:
        path = self._work / profile.REPORT
        argv = ncu_tool.argv(tool, launches, path, program[0])
        self._say(f"ncu {tool.version}: {launches.count} launches, {launches.collected} set")
        done = scene.folder / profile_stage.DONE if self._stage.marks else None
        where, log = scene.source or scene.folder, self._work / "ncu.log"
        ended = ncu_tool.run(argv, path, env=program[1], cwd=where, log=log, limit=scene.limit, done=done)
        records.crash_point("profile.captured")
        path, why = ended.report or path, ended.why
        if why is not None and (said := profile_stage.fault(scene)):
            why = Why(code=why.code, words=f"{why.words}; below ncu the version said: {ncu_tool.clean(said)}")
        report = None if why else self._read(path, launches)
        if isinstance(report, Why):
            report, why = None, report
        command = profile_stage.line(argv, {f"{self._ws.root}/": ""})
        return _Shot(launches=launches, report=report, path=path, why=why, command=command)

    def _read(self, path: Path, launches: Launches) -> Report | Why:
        from kernelpilot_helpers.ncu import load  # noqa: PLC0415 - the reader is large

        try:
            report = load.load([path])
        except (KernelPilotError, RefusedInput) as fault:
            return Why(code="ncu.unreadable", words=f"{getattr(fault, 'code', 'bad')}: {fault.what}"[: ncu_tool.WORDS])
        if not report.launches:
            return Why(code="ncu.no_kernels", words="the report holds no launch")
        seen = [launch.function for launch in report.launches]
        if launches.kernels and not set(seen) & set(launches.kernels):
            return Why(code="ncu.no_kernels", words=f"the report holds no launch that was asked for, but {seen[0]}")
        return report

    def _enough(self, why: Why) -> None:
        if why.code == "ncu.timeout" and self._how.limit_s < LIMIT_S:
            what = f"{why.words}: too little time to say that it cannot"
            fix = f"{profile.command(self._what.row.version, self._what.case.case_id)} --limit {LIMIT_S:g}"
            raise KernelPilotError(what, where=self._what.row.version, fix=fix)

    def _residency(self) -> Literal["hot", "cold"]:
        asked = self._how.residency
        if asked != "contract":
            return asked
        return "hot" if self._what.residency == "hot" else "cold"


def keep_logs(root: Path, work: Path) -> None:
    """What a capture without a report leaves: both ends of the logs, and ncu's file where it wrote one."""
    kept = root / LOGS
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for path in (work / "ncu.log", work / "scene" / profile_stage.LOG):
        if path.is_file():
            (kept / path.name).write_text(ncu_tool.ends(path))
    for path in ncu_tool.forms(work / profile.REPORT):
        if path.is_file() and path.stat().st_size <= KEPT_BYTES:
            path.replace(kept / path.name)


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
