"""Rules about the launch: block shape, grid size, tail and uneven work."""

from __future__ import annotations

import math

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No, Unknown


def partial_warp(facts: Facts) -> Answer:
    """A block that leaves lanes of its last warp empty; not where a unit is near its limit all the same."""
    name = "launch.block_partial_warp"
    threads = facts.block_threads()
    if threads is None or threads <= 0:
        return Unknown(name=name, missing=("block",))
    idle = 1.0 - threads / (math.ceil(threads / 32) * 32)
    if idle < limits.LANE_WASTE or facts.highest >= limits.NEAR:
        return No(name=name, why=f"blocks of {threads:.0f} threads fill their warps")
    why = f"blocks of {threads:.0f} threads leave {idle:.0%} of the lanes empty"
    return Hit(name=name, why=why, bound=idle, clear=idle >= 0.5, supports=("block", "lanes"))


def grid_small(facts: Facts) -> Answer:
    """Fewer blocks than SMs. A grid of one block an SM is a persistent kernel and is not called small."""
    name = "launch.grid_small"
    if facts.highest >= limits.BUSY:
        return No(name=name, why=f"a unit is {facts.highest:.0f} % busy")
    grid, sms = facts.grid_blocks(), facts.get("sms")
    if grid is None or sms is None or sms <= 0:
        waves = facts.get("waves")
        if waves is not None and waves >= 1:
            return No(name=name, why=f"{waves:g} waves fill the GPU")
        return Unknown(name=name, missing=("grid", "sms"))
    idle = (sms - grid) / sms
    if idle < limits.GRID_BOUND:
        return No(name=name, why=f"{grid:.0f} blocks for {sms:.0f} SMs")
    facts.get("waves")
    return Hit(
        name=name,
        why=f"{grid:.0f} blocks for {sms:.0f} SMs: {idle:.0%} of the GPU has no block",
        bound=idle,
        clear=idle >= 0.5,
        supports=("grid", "sms", "waves"),
    )


def tail(facts: Facts) -> Answer:
    """A last wave that fills the GPU only in part, seen in SMs that end early."""
    name = "launch.tail"
    waves = facts.get("waves")
    if waves is None:
        return Unknown(name=name, missing=("waves",))
    full = math.floor(waves)
    part = waves - full
    bound = (1.0 - part) / (1 + full)
    if full < 1 or part < 0.02 or 1.0 / (1 + full) < limits.TAIL_BOUND:
        return No(name=name, why=f"{waves:g} waves")
    ratio = busiest(facts)
    if ratio is None:
        return Unknown(name=name, missing=("sm_cycles_max", "sm_cycles_avg"))
    if ratio < 1.0 + bound / 4:
        return No(name=name, why=f"{waves:g} waves, but all SMs are busy alike ({ratio:.2f})")
    why = f"{waves:g} waves: in the last one {1.0 - part:.0%} of the slots are empty"
    return Hit(name=name, why=why, bound=bound, clear=bound >= 0.3, supports=("waves", "imbalance"))


def imbalance(facts: Facts) -> Answer:
    """SMs that work much longer than the average one, though every SM has a block."""
    name = "exec.imbalance"
    ratio = busiest(facts)
    if ratio is None or ratio <= 0:
        return Unknown(name=name, missing=("sm_cycles_max", "sm_cycles_avg"))
    longest, cycles = facts.get("sm_cycles_max"), facts.get("cycles")
    active = 1.0 if longest is None or not cycles else min(1.0, longest / cycles)
    bound = (1.0 - 1.0 / ratio) * active
    if ratio <= limits.IMBALANCE or bound < 0.05:
        return No(name=name, why=f"busiest SM over average {ratio:.2f}")
    waves = facts.get("waves")
    why = f"the busiest SM works {ratio:.1f} times as long as the average one"
    return Hit(name=name, why=why, bound=bound, clear=ratio >= 1.5, supports=("imbalance", "sm_sol"),
               contradicts=("waves",) if waves is not None and waves < 0.5 else ())  # fmt: skip


def busiest(facts: Facts) -> float | None:
    """Active cycles of the busiest SM over the average SM."""
    most, mean = facts.get("sm_cycles_max"), facts.get("sm_cycles_avg")
    name = "sm__cycles_active.max / sm__cycles_active.avg"
    return facts.readings.share("imbalance", most, mean, name)
