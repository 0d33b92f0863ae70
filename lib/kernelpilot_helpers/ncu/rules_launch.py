"""Rules about the launch: block shape, grid size, tail, uneven work, too many launches."""

from __future__ import annotations

import math
from dataclasses import replace

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No, Rule, Unknown


def many_small(facts: Facts, launches: int) -> Answer:
    """Many launches of a kernel whose time is that of a launch. ``launches``: of the group.

    Short alone is no reason: one short kernel is judged like any other. A file holds only the launches that were
    profiled: a few of a kernel that reaches every SM and still keeps nothing busy are taken for many, with care.
    """
    name = "launch.many_small"
    duration = facts.get("duration")
    if duration is None or duration >= limits.FLOOR_NS or facts.highest >= limits.BUSY:
        return No(name=name, why=f"{launches} launches of it in the file, each with work of its own")
    if launches < limits.MANY and not _empty(facts):
        return No(name=name, why=f"{launches} launches of it in the file")
    facts.readings.keep("launches", "launches of this kernel in the file", float(launches), "")
    return Hit(
        name=name,
        why=f"{launches} launches of {duration / 1e3:.1f} us each: their time is that of launching, not of blocks"
        if launches > 1
        else f"{duration / 1e3:.1f} us in which no unit is {limits.EMPTY:.0f} % busy: its time is that of a launch",
        bound=1.0 - facts.highest / 100,
        clear=duration < limits.FLOOR_NS and launches >= 2 * limits.MANY,
        supports=("duration", "launches") if launches >= limits.MANY else ("duration",),
        sure=True,
    )


def _empty(facts: Facts) -> bool:
    """Whether a launch has a block for every SM and next to nothing to do."""
    grid, sms = facts.grid_blocks(), facts.get("sms")
    return grid is not None and sms is not None and grid >= sms and facts.highest < limits.EMPTY


def range_gap(facts: Facts) -> Answer:
    """A range or graph in which the SMs are idle: between its kernels the GPU waits for the next launch."""
    name = "launch.many_small"
    busy, cycles = facts.get("sm_cycles_max"), facts.get("cycles")
    idle = None if busy is None or not cycles else max(0.0, 1.0 - busy / cycles)
    if idle is None:
        return Unknown(name=name, missing=("sm_cycles_max", "cycles"))
    facts.readings.keep("idle_share", "1 - sm__cycles_active.max / gpc__cycles_elapsed.max", idle, "")
    if idle < limits.IDLE_RANGE:
        return No(name=name, why=f"an SM is busy {1 - idle:.0%} of the time")
    return Hit(
        name=name,
        why=f"even the busiest SM has no work {idle:.0%} of the time: the kernels of this workload start too far apart",
        bound=idle,
        clear=False,  # the profiler's own time between launches is part of it
        supports=("idle_share", "sm_sol"),
        weak=idle < 2 * limits.IDLE_RANGE,
    )


def partial_warp(facts: Facts) -> Answer:
    """A block that leaves lanes of its last warp empty; not where a unit is near its limit all the same."""
    name = "launch.block_partial_warp"
    threads = facts.block_threads()
    if threads is None or threads <= 0:
        return Unknown(name=name, missing=("block",))
    idle = 1.0 - threads / (math.ceil(threads / 32) * 32)
    if idle < limits.LANE_WASTE or facts.highest >= limits.NEAR:
        return No(name=name, why=f"blocks of {threads:.0f} threads fill their warps")
    facts.lanes()
    why = f"blocks of {threads:.0f} threads leave {idle:.0%} of the lanes empty"
    return Hit(name=name, why=why, bound=idle, clear=idle >= 0.5, supports=("block", "lanes", "occupancy_theoretical"),
               sure=True)  # fmt: skip


def grid_small(facts: Facts) -> Answer:
    """Fewer blocks than SMs, or a short launch that ends before the GPU is full (rule: waves below 1, both sides < 60).

    A grid of one block an SM is a persistent kernel and is not called small: its tiles count, not its blocks.
    """
    name = "launch.grid_small"
    if facts.highest >= limits.BUSY:
        return No(name=name, why=f"a unit is {facts.highest:.0f} % busy")
    grid, sms, waves = facts.grid_blocks(), facts.get("sms"), facts.waves()
    if waves is None and (grid is None or not sms):
        return Unknown(name=name, missing=("grid", "sms", "waves"))
    idle = 0.0 if grid is None or not sms else max(0.0, (sms - grid) / sms)
    if idle >= limits.GRID_BOUND:
        return Hit(
            name=name,
            why=f"{grid:.0f} blocks for {sms:.0f} SMs: {idle:.0%} of the GPU has no block",
            bound=idle,
            clear=idle >= 0.5,
            supports=("grid", "sms", "waves"),
            sure=True,
        )
    duration = facts.get("duration")
    if waves is not None and waves < limits.WAVES_SHORT and duration is not None and duration < limits.SHORT_NS:
        if (sms and grid == sms) or facts.tensor_kernel:
            return No(name=name, why=f"{waves:.2g} waves, one block an SM by design")
        return Hit(
            name=name,
            why=f"{duration / 1e3:.1f} us and {waves:.2f} waves: it ends before the GPU is full",
            bound=min(1.0 - waves, 1.0 - facts.highest / 100),
            clear=waves <= 0.5,
            supports=("waves", "duration"),
            sure=True,
        )
    said = f"{waves:.2g} waves" if waves is not None else f"{grid:.0f} blocks"
    return No(name=name, why=f"{said} for {sms:.0f} SMs" if sms else said)


def _busy_apart_from_sms(facts: Facts) -> str | None:
    """Why uneven SMs cost nothing: a unit is near its limit, or one that all SMs share is busy."""
    if facts.highest >= limits.NEAR:
        return f"a unit is {facts.highest:.0f} % busy"
    if facts.regime == "memory" and facts.tier not in ("l1", "unknown"):
        return f"{facts.tier} is {facts.memory or 0.0:.0f} % busy, and all SMs share it"
    return None


def _may_be_rounded(facts: Facts, waves: float) -> bool:
    """A whole number of waves as a page prints it, with two digits, may hide the one block that is too many."""
    return "waves_exact" not in facts.readings.found and waves >= 1 and abs(waves - round(waves)) < 1e-9


def severe(rule: Rule) -> Rule:
    """The rule where SMs are idle for a third of the time: then it is named before waste that all of them share."""

    def first(facts: Facts) -> Answer | None:
        ratio = facts.busiest_sm_at_most()
        if ratio is not None and 1.0 - 1.0 / max(1.0, ratio) < limits.SEVERE:
            return None
        answer = rule(facts)
        return answer if isinstance(answer, Hit | Unknown) else None

    return first


def _waits_outweigh(facts: Facts) -> No | Unknown | None:
    """Mildly uneven SMs are not the first thing to change where most stalls have one cause, which costs far more."""
    name = "launch.tail"
    share = facts.stalls.get(facts.top_stall, 0.0)
    ratio = facts.busiest_sm_at_most()
    if ratio is None:
        return None
    idle = 1.0 - 1.0 / max(1.0, ratio)
    if facts.regime != "latency" or idle >= limits.SEVERE or 1.0 - facts.highest / 100 < 2 * idle:
        return None
    if not facts.stalls and not facts.readings.launch.rules:
        return Unknown(name=name, missing=("stalls",))
    if share < 0.5:
        return None
    why = f"SMs are idle {idle:.0%} of the time at most, and {share:.0%} of the stalls are {facts.top_stall}"
    return No(name=name, why=why)


def _by_last_wave(facts: Facts, waves: float, full: int) -> float:
    """Busiest SM over the average one if all blocks are equal: in the last wave only some SMs have a block."""
    grid, sms = facts.grid_blocks(), facts.get("sms")
    if not grid or not sms:
        return math.inf
    left = (waves - full) * grid / waves
    return (full + 1) / (full + min(1.0, left / sms))


def tail(facts: Facts) -> Answer:
    """A last wave that fills the GPU only in part, seen in SMs that end early."""
    name = "launch.tail"
    if (busy := _busy_apart_from_sms(facts)) is not None:
        return No(name=name, why=busy)
    waves = facts.waves()
    if waves is None:
        return Unknown(name=name, missing=("waves",)) if facts.regime == "latency" else No(name=name, why="no waves")
    full = math.floor(waves + 1e-9)
    part = max(0.0, waves - full)
    bound = (1.0 - part) / (1 + full)
    if _may_be_rounded(facts, waves) and (facts.busiest_sm() or 1.0) > limits.IMBALANCE:
        return Unknown(name=name, missing=("limit_registers", "limit_shared"))
    if full < 1 or part < 1e-6 or 1.0 / (1 + full) < limits.TAIL_BOUND or bound < limits.TAIL_BOUND / 2:
        return No(name=name, why=f"{waves:.4g} waves")
    if (waits := _waits_outweigh(facts)) is not None:
        return waits
    return _tail(facts, waves, bound)


def _tail(facts: Facts, waves: float, bound: float) -> Answer:
    """The last wave against what the SMs show of it."""
    name = "launch.tail"
    ratio = facts.busiest_sm_at_most()
    if ratio is not None and ratio < 1.0 + bound / 4:
        return No(name=name, why=f"{waves:.4g} waves, but all SMs are busy alike ({ratio:.2f})")
    measured = facts.busiest_sm()
    if measured is None:
        if facts.regime != "latency":
            return No(name=name, why="whether SMs end early was not captured, and a unit is busy")
        return Unknown(name=name, missing=("sm_cycles_max", "sm_cycles_avg"))
    full = math.floor(waves + 1e-9)
    most = _by_last_wave(facts, waves, full)
    if measured > limits.IMBALANCE and measured > most * (1 + limits.IMBALANCE_BOUND):
        return No(name=name, why=f"{waves:.4g} waves explain SMs that differ {most:.2f} times, not {measured:.2f}")
    role = "waves_exact" if "waves_exact" in facts.readings.found else "waves"
    why = f"{waves:.4g} waves: in the last one {1.0 - (waves - full):.0%} of the slots are empty"
    return Hit(name=name, why=why, bound=bound, clear=bound >= 0.3, supports=(role, "imbalance"))


def imbalance(facts: Facts) -> Answer:
    """SMs that work much longer than the average one, though every SM has a block."""
    name = "exec.imbalance"
    if (busy := _busy_apart_from_sms(facts)) is not None:
        return No(name=name, why=busy)
    most = facts.busiest_sm_at_most()
    if most is not None and most <= limits.IMBALANCE:
        return No(name=name, why=f"busiest SM over average at most {most:.2f}")
    if (waits := _waits_outweigh(facts)) is not None:
        return replace(waits, name=name)
    ratio = facts.busiest_sm()
    if ratio is None or ratio <= 0:
        if facts.regime != "latency":
            return No(name=name, why="SMs were not compared, and a unit is busy")
        return Unknown(name=name, missing=("sm_cycles_max", "sm_cycles_avg"))
    longest, cycles = facts.get("sm_cycles_max"), facts.get("cycles")
    active = 1.0 if longest is None or not cycles else min(1.0, longest / cycles)
    bound = (1.0 - 1.0 / ratio) * active
    if ratio <= limits.IMBALANCE or bound < limits.IMBALANCE_BOUND:
        return No(name=name, why=f"busiest SM over average {ratio:.2f}")
    waves = facts.waves()
    why = f"the busiest SM works {ratio:.1f} times as long as the average one"
    return Hit(name=name, why=why, bound=bound, clear=ratio >= 1.5, supports=("imbalance", "sm_sol"),
               contradicts=("waves",) if waves is not None and waves < 0.5 else ())  # fmt: skip
