"""From a question to a job directory: sources extracted from git, the oracle's file, ``job.json``."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from kernelpilot_helpers import policy, proc
from kernelpilot_helpers.attempt.job import Arm, Job, JobCase, Limits, Phase, TimeSpec, VerifySpec
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.referee.workspace import Workspace

ArmName = Literal["A", "B", "Z"]
ENTRY = "candidate.py:entry"


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A committed tree that can be an arm."""

    tree: str
    entry: str
    is_baseline: bool


def baseline_program(workspace: Workspace, tree: str) -> Program:
    """The contract's baseline at a given tree of ``baseline/``."""
    fn = workspace.contract.baseline[0].fn
    return Program(tree=tree, entry=fn.removeprefix("baseline/"), is_baseline=True)


def variant_program(tree: str) -> Program:
    """A variant directory at a given tree."""
    return Program(tree=tree, entry=ENTRY, is_baseline=False)


@lru_cache(maxsize=1)
def tool_versions() -> tuple[str, ...]:
    """What decides, beside the source, what a build gives."""
    try:
        compiler = proc.run(["cc", "--version"]).out.splitlines()[:1]
    except KernelPilotError:
        compiler = ["no cc"]
    return (platform.machine(), *compiler)


def build_key(program: Program) -> str:
    """sha256 of source tree, entry, architecture and compiler."""
    return hashlib.sha256(json.dumps([program.tree, program.entry, *tool_versions()]).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What one job is to answer."""

    job_id: str
    phases: tuple[Phase, ...]
    arms: dict[ArmName, Program]
    pairs: int = 0
    first_pair: int = 0
    blocks: int = 0
    stop_if_identical: bool = False
    seeds: int = policy.POLICY.verify_seeds


def make(workspace: Workspace, question: Question, workdir: Path) -> Job:
    """Lay out a job directory and return its job; the caller (or another machine) runs it."""
    shutil.rmtree(workdir, ignore_errors=True)
    (workdir / "oracle").mkdir(parents=True)
    reference = workspace.contract.reference
    file, function = reference.fn.split(":", 1)
    shutil.copyfile(workspace.root / file, workdir / "oracle" / Path(file).name)
    arms: list[Arm] = []
    for name, program in question.arms.items():
        proc.archive(workspace.root, program.tree, workdir / "arms" / name)
        arms.append(
            Arm(
                name=name,
                source=f"arms/{name}",
                entry=program.entry,
                build_key=build_key(program),
                is_baseline=program.is_baseline,
            )
        )
    check = reference.check.split(":", 1)[-1] if reference.check else ""
    oracle = f"oracle/{Path(file).name}"
    return Job(
        job_id=question.job_id,
        device="cpu" if workspace.device.kind == "cpu" else "gpu",
        framework=workspace.contract.call.framework,
        phases=question.phases,
        reference=f"{oracle}:{function}",
        reference_check=f"{oracle}:{check}" if check else "",
        deterministic=workspace.contract.numerics.deterministic,
        library_calls=workspace.contract.policy.library_calls,
        stages=workspace.contract.call.stages,
        cases=_cases(workspace, question.phases),
        arms=tuple(arms),
        stop_if_identical=question.stop_if_identical,
        time=_time(question) if "time" in question.phases else None,
        verify=VerifySpec(seeds=question.seeds) if "verify" in question.phases else None,
        limits=Limits(build_s=policy.POLICY.build_s, call_s=policy.POLICY.call_s, wall_s=policy.POLICY.job_s),
    )


def _time(question: Question) -> TimeSpec:
    return TimeSpec(
        pairs=question.pairs,
        first_pair=question.first_pair,
        blocks=question.blocks,
        recheck_share=policy.POLICY.recheck_share,
    )


def _cases(workspace: Workspace, phases: tuple[Phase, ...]) -> tuple[JobCase, ...]:
    if phases == ("time",):
        return tuple(c for c in workspace.resolved if c.timed)
    return workspace.resolved
