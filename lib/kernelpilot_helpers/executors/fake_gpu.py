"""What FakeLab adds for a job on a GPU: the machine, the kernels, the clocks, the figures. Pure, from the job alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kernelpilot_helpers.attempt.job import Job, JobCase
from kernelpilot_helpers.attempt.raw import FigureTime, GpuLook, KernelUse, Residency, Sanitized

MHZ = 1830
TOOLS: tuple[Literal["memcheck", "racecheck", "initcheck"], ...] = ("memcheck", "racecheck", "initcheck")
BESIDE = ("span", "floor", "touch")
CEILINGS = {"read@256MiB": 4200.0, "write@256MiB": 4000.0, "copy@256MiB": 3900.0, "matmul:bfloat16": 750.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """How arm B does on a GPU, beside what FakeLab's own script says."""

    ours: float = 1.0
    """Share of B's time in kernels that it built."""
    sanitizer: int = 0
    """Errors that memcheck finds."""
    method: Literal["graph", "events"] = "graph"


def env() -> dict[str, object]:
    """The GPU's part of ``Raw.env``."""
    return {
        "gpu": "Fake GPU", "gpu_uuid": "GPU-fake", "driver": "580.0", "arch": "sm_90a", "sm_count": 132,
        "l2_bytes": 60 * 2**20, "memory_bytes": 140 * 2**30, "dram_gbs": 4800.0, "cuda": "13.0",
    }  # fmt: skip


def probes(job: Job) -> tuple[str, ...]:
    """Probes that a GPU's verification adds to a call and its repeats."""
    return ("late",) if job.graph == "never" else ("graph", "late")


def timed(job: Job) -> list[JobCase]:
    """The cases that a job times, in order."""
    return [c for c in job.cases if c.timed]


def inventory(job: Job, *, ours: float) -> Iterator[KernelUse]:
    """One watched call of every arm and case; ``ours`` is the share of arm B's time in kernels that it built."""
    if "verify" not in job.phases:
        return
    for case in timed(job):
        for arm in job.arms:
            share = 1.0 if arm.name != "B" else ours
            for name, part, own in (("tuned_kernel", share, True), ("library_gemm", 1.0 - share, False)):
                if part > 0:
                    yield KernelUse(
                        arm=arm.name, case_id=case.case_id, name=name, count=1, ns=round(10_000 * part), ours=own
                    )


def figures(job: Job) -> Iterator[FigureTime]:
    """Reported figures, and what they are held against: the profiler's span, the launch floor, a touch of the bytes."""
    if "figures" not in job.phases:
        return
    for case in timed(job):
        for arm in job.arms:
            for ix, name in enumerate((*job.report, *BESIDE)):
                joules = 0.004 if name == "sustained" else None
                yield FigureTime(arm=arm.name, case_id=case.case_id, figure=name, us=10.0 + ix, joules=joules)


def residency(job: Job) -> Iterator[Residency]:
    """Every timed tensor lay where the job asked."""
    if "time" not in job.phases:
        return
    for case in timed(job):
        for tensor in case.tensors:
            if tensor.role != "scalar":
                how = "touched after the flush" if tensor.residency == "hot" else "flushed before the group"
                asked = tensor.residency
                yield Residency(case_id=case.case_id, tensor=tensor.name, asked=asked, reached=asked, how=how)


def looks(job: Job) -> Iterator[GpuLook]:
    """Steady clocks in every phase that ran."""
    for phase in job.phases:
        yield GpuLook(
            phase=phase, sm_mhz=(MHZ, MHZ, MHZ), mem_mhz=3201, temp_c=(38, 41), power_w=(180.0, 240.0), reasons=()
        )


def sanitizer(job: Job, *, errors: int) -> Iterator[Sanitized]:
    """One run of each tool over the first case; ``errors`` are memcheck's."""
    if "sanitize" not in job.phases or not job.cases:
        return
    for tool in TOOLS:
        found = errors if tool == "memcheck" else 0
        yield Sanitized(tool=tool, case_id=job.cases[0].case_id, errors=found, seconds=5.0)
