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

from kernelpilot_helpers import contract, policy, proc
from kernelpilot_helpers.attempt.job import Arm, Job, JobCase, Limits, Phase, TimeSpec, VerifySpec
from kernelpilot_helpers.contract.model import Target
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.referee.workspace import Workspace

ArmName = Literal["A", "B", "Z"]
ENTRY = "candidate.py:entry"
GIB = 2**30

ARMS_MAX = 3
"""A, B and Z: what one arm's memory holds may not depend on how many there are, or an A/A control has other blocks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A committed tree that can be an arm."""

    tree: str
    entry: str
    is_baseline: bool


def baseline_program(workspace: Workspace, tree: str, ix: int = 0) -> Program:
    """The contract's ``ix``-th baseline at a given tree of ``baseline/``."""
    fn = workspace.contract.baseline[ix].fn
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


@lru_cache(maxsize=1)
def nvcc_version() -> str:
    """Last line of ``nvcc --version``, which names the build; empty where there is no nvcc on PATH.

    The job may run on another machine, whose own versions stand in ``raw.env``.
    """
    try:
        return "".join(proc.run(["nvcc", "--version"]).out.splitlines()[-1:])
    except KernelPilotError:
        return ""


def build_key(program: Program, target: Target | None = None) -> str:
    """sha256 of source tree, entry, machine and compiler; for a GPU ``target`` also its architecture and nvcc."""
    parts = [program.tree, program.entry, *tool_versions()]
    if target is not None and contract.device(target) == "gpu":
        parts += ["gpu", target.arch, nvcc_version()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


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
    stop_if_wrong: bool = False
    seeds: int = policy.POLICY.verify_seeds


def make(workspace: Workspace, question: Question, workdir: Path) -> Job:
    """Lay out a job directory and return its job; the caller (or another machine) runs it."""
    made = workspace.contract
    gpu = contract.device(made.target) == "gpu"
    reference, check = _oracle(workspace, workdir)
    arms = tuple(_arm(workspace, name, program, workdir) for name, program in question.arms.items())
    return Job(
        job_id=question.job_id,
        device="gpu" if gpu else "cpu",
        framework="torch" if gpu else made.call.framework,
        arch=made.target.arch if gpu else "",
        phases=question.phases,
        reference=reference,
        reference_check=check,
        deterministic=made.numerics.deterministic,
        library_calls=made.policy.library_calls,
        graph=made.call.graph or "may",
        report=made.timing.report if gpu else (),
        stages=made.call.stages,
        cases=_cases(workspace, question.phases),
        arms=arms,
        stop_if_identical=question.stop_if_identical,
        stop_if_wrong=question.stop_if_wrong,
        time=_time(question, gpu=gpu) if "time" in question.phases else None,
        verify=VerifySpec(seeds=question.seeds) if "verify" in question.phases else None,
        limits=_gpu_limits(made.target) if gpu else _limits(),
    )


def _oracle(workspace: Workspace, workdir: Path) -> tuple[str, str]:
    """A fresh job directory with the reference in it: (reference, check) as the job names them."""
    shutil.rmtree(workdir, ignore_errors=True)
    (workdir / "oracle").mkdir(parents=True)
    reference = workspace.contract.reference
    file, function = reference.fn.split(":", 1)
    oracle = f"oracle/{Path(file).name}"
    shutil.copyfile(workspace.root / file, workdir / oracle)
    check = reference.check.split(":", 1)[-1] if reference.check else ""
    return f"{oracle}:{function}", f"{oracle}:{check}" if check else ""


def _arm(workspace: Workspace, name: ArmName, program: Program, workdir: Path) -> Arm:
    proc.archive(workspace.root, program.tree, workdir / "arms" / name)
    return Arm(
        name=name,
        source=f"arms/{name}",
        entry=program.entry,
        build_key=build_key(program, workspace.contract.target),
        is_baseline=program.is_baseline,
    )


def _limits() -> Limits:
    return Limits(build_s=policy.POLICY.build_s, call_s=policy.POLICY.call_s, wall_s=policy.POLICY.job_s)


def _gpu_limits(target: Target) -> Limits:
    """All arms keep their tensors on the GPU at once, so each may take a third of the contract's memory."""
    return Limits(
        build_s=policy.POLICY.gpu_build_s,
        call_s=policy.POLICY.call_s,
        wall_s=policy.POLICY.gpu_job_s,
        arena_bytes=int(target.memory_gib * GIB / ARMS_MAX),
        sanitize_s=policy.POLICY.sanitize_s,
        lock_s=policy.POLICY.lock_s,
    )


def _time(question: Question, *, gpu: bool) -> TimeSpec:
    usual = TimeSpec(pairs=question.pairs)
    return TimeSpec(
        pairs=question.pairs,
        first_pair=question.first_pair,
        blocks=question.blocks,
        sample_us=policy.POLICY.gpu_sample_us if gpu else usual.sample_us,
        zygote_pairs=policy.POLICY.gpu_zygote_pairs if gpu else usual.zygote_pairs,
        recheck_share=policy.POLICY.recheck_share,
    )


def _cases(workspace: Workspace, phases: tuple[Phase, ...]) -> tuple[JobCase, ...]:
    if set(phases) <= {"time", "figures"}:
        return tuple(c for c in workspace.resolved if c.timed)
    return workspace.resolved
