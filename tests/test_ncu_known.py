"""Our own captures of kernels with a known bottleneck keep their class under every loss that a capture can have."""

from __future__ import annotations

import dataclasses
import functools

import pytest

from kernelpilot_helpers.ncu import raw, sections, steps, validity
from kernelpilot_helpers.ncu.decide import Decision, decide
from kernelpilot_helpers.ncu.facts import gather
from kernelpilot_helpers.ncu.metrics import PIPES, STALLS, Readings
from kernelpilot_helpers.ncu.model import INSUFFICIENT, RANK, NextStep
from kernelpilot_helpers.ncu.report import Launch, Report
from kernelpilot_helpers.ncu.roles import ROLES
from tests import ncu_files as files

# capture: class, kind of step, confidence
KNOWN = {
    "copy_vec4": ("mem.dram_bw", "stop", "high"),
    "fma_bound": ("exec.pipe_bound:fma", "stop", "high"),
    "low_occupancy": ("lat.occupancy", "edit", "high"),
    "reg_spill": ("mem.spill", "edit", "high"),
    "smem_conflict": ("mem.smem_conflict", "edit", "high"),
    "tail_wave": ("exec.imbalance", "edit", "high"),
    "tiny_launch": ("launch.grid_small", "edit", "medium"),
    "embedding": ("mem.bytes_in_flight", "edit", "high"),
    "gemm_large": ("exec.tensor_bound", "stop", "high"),
    "gemm_small_m": ("launch.grid_small", "edit", "medium"),
    "gemv": ("mem.dram_bw", "edit", "high"),
    "sdpa": ("exec.tensor_bound", "edit", "medium"),
    "triton_rms": ("mem.dram_bw", "edit", "high"),
}
_OF_SECTION = {
    "SpeedOfLight": ("sm__throughput", "gpu__compute_memory_throughput", "gpu__dram_throughput", "breakdown:"),
    "ComputeWorkloadAnalysis": ("sm__inst_executed_pipe", "sm__pipe_", "sm__inst_issued", "sm__issue"),
    "MemoryWorkloadAnalysis_Tables": ("l1tex__t_", "l1tex__data", "lts__t_", "smsp__sass_average_data"),
    "SourceCounters": ("memory_l", "derived__memory", "derived__local", "sass__", "smsp__pcsamp", "thread_inst"),
    "WarpStateStats": ("smsp__average_warp", "smsp__thread_inst"),
    "WorkloadDistribution": ("sm__cycles_active.m", "lts__cycles_active", "dram__cycles_active.m"),
}


@functools.cache
def report(name: str) -> Report:
    return raw.parse(files.capture(f"{name}.raw.csv"), name="x.csv", sha256="0" * 64)


def judged(one: Launch, locale: str = "C") -> tuple[Decision, NextStep]:
    facts = gather(Readings(launch=one, locale=locale))
    decision = decide(facts, validity.doubts(facts))
    return decision, steps.step(facts, decision, min_bytes=None)


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_kernel_gets_its_class(name: str) -> None:
    """Breaks when a rule, a threshold, an alias or the order of the decision list goes wrong."""
    decision, step = judged(report(name).launches[0])
    assert (decision.hit.name, step.kind, decision.confidence) == KNOWN[name]


@pytest.mark.parametrize("name", KNOWN)
def test_a_lost_section_leaves_the_class_or_asks_for_a_capture(name: str) -> None:
    """Breaks when a section that was not captured turns into another class, or makes the same one surer."""
    (one,) = report(name).launches
    before, _ = judged(one)
    kept = {k: one.metrics[k] for k in one.metrics}
    for section, starts in _OF_SECTION.items():
        left = {k: v for k, v in kept.items() if not k.startswith(starts)}
        assert len(left) < len(kept)
        after, step = judged(dataclasses.replace(one, metrics=left))
        assert after.hit.name == before.hit.name or step.kind == "capture", section
        assert after.hit.name != before.hit.name or RANK[after.confidence] <= RANK[before.confidence], section


@pytest.mark.parametrize("name", KNOWN)
def test_a_list_of_metrics_names_no_class(name: str) -> None:
    """Breaks when a handful of metrics, as scripts ask for them, gives a class that a set would overturn."""
    (one,) = report(name).launches
    wanted = {ROLES[r][1] for r in ("duration", "sm_sol", "dram_sol", "l1_active", "occupancy", "issue", "lanes")}
    few = {k: v for k, v in one.metrics.items() if k in wanted}
    assert len(few) == len(wanted)
    decision, step = judged(dataclasses.replace(one, metrics=few))
    assert (decision.hit.name, step.kind) == (INSUFFICIENT, "capture")


@pytest.mark.parametrize("name", KNOWN)
def test_a_basic_set_is_right_or_asks_for_a_capture(name: str) -> None:
    """Breaks when a set without memory tables and warp states names what only those could tell."""
    (one,) = report(name).launches
    gone = tuple(s for section, starts in _OF_SECTION.items() for s in starts if section not in (
        "SpeedOfLight", "WorkloadDistribution", "ComputeWorkloadAnalysis"))  # fmt: skip
    left = {k: v for k, v in one.metrics.items() if not k.startswith(gone)}
    decision, step = judged(dataclasses.replace(one, metrics=left))
    assert decision.hit.name in (KNOWN[name][0], INSUFFICIENT)
    assert decision.hit.name != INSUFFICIENT or step.kind == "capture"


def test_the_families_of_stalls_and_pipes_agree_on_the_class() -> None:
    """Breaks when the class hangs on which of several equal families a capture holds."""
    for name in ("low_occupancy", "smem_conflict", "embedding", "triton_rms"):
        (one,) = report(name).launches
        left = {k: v for k, v in one.metrics.items() if not (STALLS[0].fullmatch(k) or PIPES[1].fullmatch(k))}
        assert judged(dataclasses.replace(one, metrics=left))[0].hit.name == KNOWN[name][0]


def test_a_capture_asks_for_sections_that_exist() -> None:
    """Breaks when the command names a section that ncu does not have."""
    known = {"SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables", "SourceCounters",
             "WarpStateStats", "Occupancy", "LaunchStats", "WorkloadDistribution"}  # fmt: skip
    assert set(sections.SECTIONS) == known
    _, step = judged(dataclasses.replace(report("sdpa").launches[0], metrics={}))
    asked = [word for word in step.command.split() if word in known]
    assert set(asked) == known
