"""NVIDIA's rule results beside our class: which name the same bottleneck, which another one, and what they promise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kernelpilot_helpers.ncu.report import Rule

GLOBAL = "global"
_ADVISES = ("optimization", "warning")
"""Types that ask for a change; 2020 to 2022 have only warnings."""
_MEMORY = (
    "mem.dram_bw", "mem.uncoalesced", "mem.l2_bw", "mem.l1_lsu", "mem.spill", "mem.smem_conflict", "mem.atomics",
    "mem.partial_store", "mem.remote", "none.at_limit",
)  # fmt: skip
_COMPUTE = ("exec.tensor_bound", "exec.tensor_missing", "exec.pipe_bound", "exec.divergence", "none.at_limit")
_SMALL = ("launch.grid_small", "launch.many_small", "launch.block_partial_warp", "launch.tail")
_LATENCY = (
    "lat.", "mem.bytes_in_flight", "mem.uncoalesced", "mem.smem_conflict", "mem.spill", "mem.atomics",
    "mem.partial_store", "exec.divergence", "exec.imbalance", "launch.",
)  # fmt: skip
_SCOREBOARD = (
    "mem.bytes_in_flight", "mem.dram_bw", "mem.l2_bw", "mem.uncoalesced", "mem.spill", "mem.remote", "lat.occupancy",
)  # fmt: skip

BOTTLENECKS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("SOLBottleneck", "High Throughput"): (*_MEMORY, *_COMPUTE),
    ("SOLBottleneck", "High Memory Throughput"): _MEMORY,
    ("SOLBottleneck", "High Compute Throughput"): _COMPUTE,
    ("SOLBottleneck", "Latency Issue"): _LATENCY,
    ("SOLBottleneck", "Small Grid"): _SMALL,
}
"""(rule id, title) of the one rule that names what the whole kernel is bound by; class ids or beginnings of them."""
TOPICS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("LaunchConfiguration", "Small Grid"): _SMALL,
    ("LaunchConfiguration", "Block Size"): ("launch.block_partial_warp",),
    ("LaunchConfiguration", "Tail Effect"): ("launch.tail",),
    ("CPIStall", "Long Scoreboard"): _SCOREBOARD,
    ("CPIStall", "Lg Throttle"): ("mem.l1_lsu", "mem.uncoalesced", "mem.atomics", "mem.spill"),
    ("CPIStall", "Mio Throttle"): ("mem.smem_conflict", "exec.pipe_bound", "mem.l1_lsu"),
    ("CPIStall", "Short Scoreboard"): ("mem.smem_conflict", "exec.pipe_bound", "lat.dependency"),
    ("CPIStall", "Math Pipe Throttle"): ("exec.pipe_bound", "exec.tensor_bound"),
    ("CPIStall", "Wait"): ("lat.dependency",),
    ("CPIStall", "Barrier"): ("lat.barrier",),
    ("CPIStall", "Membar"): ("lat.membar",),
    ("CPIStall", "Warpgroup Arrive"): ("lat.warpgroup_skew", "exec.tensor_bound"),
    ("CPIStall", "Gmma"): ("lat.warpgroup_skew", "exec.tensor_bound"),
    ("CPIStall", "No Instruction"): ("lat.icache",),
    ("CPIStall", "Imc Miss"): ("lat.imc",),
    ("CPIStall", "Drain"): ("mem.partial_store", "mem.atomics"),
    ("SharedMemoryConflicts", ""): ("mem.smem_conflict",),
    ("UncoalescedSharedAccess", ""): ("mem.smem_conflict",),
    ("UncoalescedGlobalAccess", ""): ("mem.uncoalesced", "mem.partial_store"),
    ("MemoryCacheAccessPattern", "L1TEX Local"): ("mem.spill",),
    ("MemoryCacheAccessPattern", "L2 Local"): ("mem.spill",),
    ("MemoryCacheAccessPattern", ""): ("mem.uncoalesced", "mem.partial_store"),
    ("TheoreticalOccupancy", ""): ("lat.occupancy",),
    ("AchievedOccupancy", ""): ("lat.occupancy", "exec.imbalance", "launch.tail"),
    ("Occupancy", ""): ("lat.occupancy",),
    ("HighPipeUtilization", "Very High Utilization"): ("exec.pipe_bound", "exec.tensor_bound", "none.at_limit"),
    ("HighPipeUtilization", "High Utilization"): ("exec.pipe_bound", "exec.tensor_bound"),
    ("HighPipeUtilization", "Low Utilization"): ("lat.", "launch.grid_small", "launch.tail"),
    ("SlowPipeLimiter", ""): ("exec.pipe_bound",),
    ("ThreadDivergence", ""): ("exec.divergence",),
    ("WorkloadImbalance", "SM"): ("exec.imbalance", "launch.tail"),
    ("FPInstructions", ""): ("exec.pipe_bound",),
    ("MemoryApertureUsage", ""): ("mem.remote",),
}
"""(rule id, beginning of its title; the longest counts) of a rule on one topic. It can agree, never disagree.

The first class is the one whose gain the rule estimates; for the others it is a symptom.
"""
_STALLS: Mapping[str, str] = {
    "CPIStallLongScoreboard": "Long Scoreboard", "CPIStallLgThrottle": "Lg Throttle",
    "CPIStallMioThrottle": "Mio Throttle", "CPIStallShortScoreboard": "Short Scoreboard",
    "CPIStallMathPipeThrottle": "Math Pipe Throttle", "CPIStallWait": "Wait", "CPIStallBarrier": "Barrier",
    "CPIStallMembar": "Membar", "CPIStallNoInstruction": "No Instruction", "CPIStallIMCMiss": "Imc Miss",
    "CPIStallDrain": "Drain",
}  # fmt: skip
"""Before 2021 each stall reason was a rule of its own; in between the title was the counter's word."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How NVIDIA's rules stand to one class; rules on other topics appear in neither list."""

    agrees: tuple[str, ...] = ()
    """``rule id: title``."""
    disagrees: tuple[str, ...] = ()
    bound: float | None = None
    """Upper bound: largest estimate, percent, of a global rule that agrees and has this class as its first."""


def agreement(rules: Iterable[Rule], class_name: str) -> Agreement:
    """Which rules name ``class_name`` (``exec.pipe_bound:xu`` counts as ``exec.pipe_bound``).

    Only the rule that names what the whole kernel is bound by can disagree: it says which kind of limit the kernel has,
    and any class of that kind agrees with it. A local estimate is that of one part and bounds nothing.
    """
    base = class_name.split(":", 1)[0]
    agrees: list[str] = []
    disagrees: list[str] = []
    bounds: list[float] = []
    for rule in rules:
        named = bottleneck(rule)
        classes = named or topic(rule)
        label = f"{rule.id}: {rule.title}"
        if _among(base, classes):
            agrees.append(label)
            if rule.scope == GLOBAL and rule.speedup is not None and classes[0] == base:
                bounds.append(rule.speedup)
        elif named and base.split(".")[0] != "none":
            disagrees.append(label)
    return Agreement(
        agrees=tuple(dict.fromkeys(agrees)),
        disagrees=tuple(dict.fromkeys(disagrees)),
        bound=max(bounds, default=None),
    )


def bottleneck(rule: Rule) -> tuple[str, ...]:
    """Classes that fit what the rule says the whole kernel is bound by; empty for a rule on one topic.

    >>> bottleneck(Rule(id="SOLBottleneck", section="", type="warning", title="Small Grid", text=""))[0]
    'launch.grid_small'
    """
    return BOTTLENECKS.get((rule.id, rule.title), ())


def topic(rule: Rule) -> tuple[str, ...]:
    """Classes that a rule on one topic speaks for; empty where it asks for no change or has no class here."""
    if rule.type not in _ADVISES:
        return ()
    rule_id, title = rule.id, rule.title
    if rule_id in _STALLS:
        rule_id, title = "CPIStall", _STALLS[rule_id]
    elif rule_id == "CPIStall":
        title = title.replace("_", " ").title()
    fits = [key for key in TOPICS if key[0] == rule_id and title.startswith(key[1])]
    return TOPICS[max(fits, key=lambda key: len(key[1]))] if fits else ()


def _among(name: str, classes: Sequence[str]) -> bool:
    return any(name == one or (one.endswith(".") and name.startswith(one)) for one in classes)
