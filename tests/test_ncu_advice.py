"""NVIDIA's rules beside our class: what agrees, what may disagree, and which estimate bounds the gain."""

from __future__ import annotations

import pytest

from kernelpilot_helpers.ncu.advice import Agreement, agreement
from kernelpilot_helpers.ncu.report import Advice, Rule, Scope
from tests import ncu_rep_build as build


def rule(
    rule_id: str, title: str, speedup: float | None = None, scope: Scope = "", kind: Advice = "optimization"
) -> Rule:
    return Rule(id=rule_id, section="s", type=kind, title=title, text="t", speedup=speedup, scope=scope)


CONFLICT = rule("SharedMemoryConflicts", "Shared Load Bank Conflicts", 40.0, "global")
MEMORY = rule("SOLBottleneck", "High Memory Throughput")


def test_a_rule_on_another_topic_is_no_disagreement() -> None:
    """Breaks when every rule that does not name our class is held against it."""
    assert agreement([CONFLICT], "mem.dram_bw") == Agreement()
    assert agreement([rule("MemoryL2Compression", "Low Compression Rate", 24.0, "global")], "mem.spill") == Agreement()


def test_only_the_bottleneck_rule_can_disagree() -> None:
    """Breaks when a contradiction by the rule on the whole kernel is not reported."""
    assert agreement([MEMORY], "mem.l2_bw").agrees == ("SOLBottleneck: High Memory Throughput",)
    assert agreement([MEMORY], "exec.pipe_bound:xu").disagrees == ("SOLBottleneck: High Memory Throughput",)
    latency = rule("SOLBottleneck", "Latency Issue")
    assert agreement([latency], "lat.barrier").agrees == ("SOLBottleneck: Latency Issue",)
    assert agreement([latency], "mem.dram_bw").disagrees == ("SOLBottleneck: Latency Issue",)
    assert agreement([latency], "none.insufficient") == Agreement()


def test_local_estimates_bound_nothing() -> None:
    """Breaks when the estimate of one part is compared with that of the whole kernel."""
    local = rule("TheoreticalOccupancy", "Theoretical Occupancy", 90.0, "local")
    whole = rule("AchievedOccupancy", "Achieved Occupancy", 12.0, "global")
    assert agreement([local], "lat.occupancy").bound is None
    assert agreement([local, whole], "lat.occupancy").bound == 12.0
    assert len(agreement([local, whole], "lat.occupancy").agrees) == 2


def test_a_symptoms_estimate_does_not_bound_another_class() -> None:
    """Breaks when the small estimate of a rule on imbalance caps the gain of a tail that it only hints at."""
    uneven = rule("WorkloadImbalance", "SMs Workload Imbalance", 13.0, "global")
    assert agreement([uneven], "launch.tail") == Agreement(agrees=("WorkloadImbalance: SMs Workload Imbalance",))
    assert agreement([uneven], "exec.imbalance").bound == 13.0


@pytest.mark.parametrize(
    ("rule_id", "title", "name"),
    [
        ("CPIStall", "Long Scoreboard Stalls", "mem.bytes_in_flight"),
        ("CPIStall", "long_scoreboard", "mem.bytes_in_flight"),
        ("CPIStallBarrier", "CPI Stall 'Barrier'", "lat.barrier"),
        ("CPIStall", "Warpgroup Arrive Stalls", "lat.warpgroup_skew"),
        ("MemoryCacheAccessPattern", "L2 Local Store Access Pattern", "mem.spill"),
        ("MemoryCacheAccessPattern", "L1TEX Global Load Access Pattern", "mem.uncoalesced"),
        ("HighPipeUtilization", "Very High Utilization", "exec.pipe_bound:fma"),
        ("LaunchConfiguration", "Block Size", "launch.block_partial_warp"),
    ],
)
def test_titles_of_all_ages(rule_id: str, title: str, name: str) -> None:
    """Breaks when a title of an older or newer release is not recognised."""
    assert agreement([rule(rule_id, title, kind="warning")], name).agrees == (f"{rule_id}: {title}",)
    assert agreement([rule(rule_id, title, kind="ok")], name).agrees == ()


def test_advice_of_captures() -> None:
    """Breaks when real rules are not matched: a bank conflict, and a kernel that ends in one block."""
    conflict = agreement(build.parse(build.capture("smem_conflict")).launches[0].rules, "mem.smem_conflict")
    assert "SharedMemoryConflicts: Shared Load Bank Conflicts" in conflict.agrees
    assert (conflict.disagrees, round(conflict.bound or 0, 1)) == ((), 96.9)
    rules = build.parse(build.capture("tail_wave")).launches[0].rules
    assert "SOLBottleneck: Small Grid" in agreement(rules, "launch.tail").agrees
    assert agreement(rules, "mem.dram_bw").disagrees == ("SOLBottleneck: Small Grid",)
