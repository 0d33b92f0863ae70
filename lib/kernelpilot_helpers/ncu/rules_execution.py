"""Rules about execution: tensor cores, pipes, divergence, latency and its reasons."""

from __future__ import annotations

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.rules_memory import bytes_in_flight
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No, Unknown, room

PIPES_NEEDED = frozenset(("alu", "fma", "lsu"))
"""Without these the busiest pipe may be one that was not captured."""
# reason -> class, share wanted, words
STALLS = {
    "barrier": ("lat.barrier", 0.30, "at block barriers"),
    "membar": ("lat.membar", 0.15, "for memory fences"),
    "gmma": ("lat.warpgroup_skew", 0.20, "for warpgroup matrix operands"),
    "no_instruction": ("lat.icache", 0.20, "for instructions to be fetched"),
    "imc_miss": ("lat.imc", 0.15, "for constants"),
    "wait": ("lat.dependency", 0.30, "for the fixed latency of their own last instruction"),
    "short_scoreboard": ("lat.dependency", 0.30, "for shared memory or special functions"),
    "mio_throttle": ("mem.l1_lsu", 0.30, "for the shared-memory instruction queue"),
    "lg_throttle": ("mem.l1_lsu", 0.30, "for the global-memory instruction queue"),
    "tex_throttle": ("mem.l1_lsu", 0.30, "for the texture queue"),
    "drain": ("mem.partial_store", 0.30, "for stores to drain"),
}


def tensor_bound(facts: Facts) -> Answer:
    """Tensor cores are the busiest unit. A low issue rate and low occupancy are the design of such kernels."""
    name = "exec.tensor_bound"
    tensor = facts.get("tensor")
    if tensor is None:
        if facts.regime == "latency" or facts.tier == "dram":
            return No(name=name, why="not the limiting unit")
        return Unknown(name=name, missing=("tensor",))
    others = max(v for v in (facts.get("dram_sol"), facts.get("l2_sol"), 0.0) if v is not None)
    if tensor < limits.BUSY or tensor < others or tensor < (facts.sm or 0.0) - limits.SAME_TIER:
        return No(name=name, why=f"tensor pipe {tensor:.0f} %")
    return Hit(
        name=name,
        why=f"tensor cores busy {tensor:.0f} % of the time",
        bound=room(tensor),
        clear=tensor >= limits.NEAR,
        supports=("tensor", "sm_sol"),
    )


def divergence(facts: Facts) -> Answer:
    """Instructions that run with few lanes. One-thread tensor instructions are not divergence."""
    name = "exec.divergence"
    lanes = facts.lanes()
    if lanes is None:
        return Unknown(name=name, missing=("lanes",))
    if lanes >= limits.LANES:
        return No(name=name, why=f"{lanes:.0f} of 32 lanes work")
    if facts.tensor_kernel is not False:
        return No(name=name, why="one-thread bulk and matrix instructions lower the lane count")
    why = f"an instruction runs with {lanes:.0f} of 32 lanes on average"
    return Hit(name=name, why=why, bound=1 - lanes / 32, clear=lanes <= 16, supports=("lanes", "sm_sol"))


def pipe_bound(facts: Facts) -> Answer:
    """One arithmetic pipe, the load/store pipe, or the issue slots themselves."""
    if facts.regime != "compute":
        return No(name="exec.pipe_bound", why=f"compute {facts.sm or 0.0:.0f} %")
    issue = facts.get("issue")
    if not facts.pipes.keys() >= PIPES_NEEDED or issue is None:
        return Unknown(name="exec.pipe_bound", missing=("pipes", "issue"))
    pipe = max(facts.pipes, key=lambda p: (facts.pipes[p], p))
    busy = facts.pipes[pipe]
    facts.readings.keep("busiest_pipe", f"busiest pipe: {pipe}", busy, "%")
    if issue > busy + limits.MARGIN:
        pipe, busy = "issue", issue
    if busy < (facts.sm or 0.0) - limits.MARGIN:
        return Unknown(name="exec.pipe_bound", missing=("the pipe behind the compute figure",))
    if pipe in ("lsu", "tex"):
        return Hit(name="mem.l1_lsu", why=f"the {pipe} pipe is busy {busy:.0f} % of the time", bound=room(busy),
                   clear=busy >= limits.NEAR, supports=("busiest_pipe", "sm_sol"))  # fmt: skip
    words = "issue slots are" if pipe == "issue" else f"the {pipe} pipe is"
    return Hit(
        name=f"exec.pipe_bound:{pipe}",
        why=f"{words} busy {busy:.0f} % of the time",
        bound=room(busy),
        clear=busy >= limits.NEAR,
        supports=("issue" if pipe == "issue" else "busiest_pipe", "sm_sol"),
    )


def occupancy(facts: Facts) -> Answer:
    """Too few warps to hide latency, by a resource; never said of specialised one-block-an-SM kernels."""
    name = "lat.occupancy"
    if facts.regime != "latency":
        return No(name=name, why=f"a unit is {facts.highest:.0f} % busy")
    theory, real = facts.get("occupancy_theoretical"), facts.get("occupancy")
    if theory is None or real is None:
        return Unknown(name=name, missing=("occupancy_theoretical", "occupancy"))
    if theory >= limits.THEORETICAL or real >= limits.ACHIEVED:
        return No(name=name, why=f"occupancy {real:.0f} % of {theory:.0f} %")
    special = facts.tensor_kernel
    if special:
        return No(name=name, why="few warps are the design of a tensor or bulk-copy kernel")
    limiter, issue = facts.occupancy_limiter(), facts.get("issue")
    if special is None or not limiter or issue is None:
        return Unknown(name=name, missing=("tensor", "tma", "limit_registers", "limit_shared", "issue"))
    if issue >= limits.ISSUE:
        return No(name=name, why=f"issue slots busy {issue:.0f} %")
    top = facts.stalls.get(facts.top_stall, 0.0)
    return Hit(
        name=name,
        why=f"{theory:.1f} % of the warps fit, limited by {limiter}; issue slots are busy {issue:.1f} %",
        bound=min(room(facts.highest), room(issue)),
        clear=theory <= limits.THEORETICAL - limits.MARGIN,
        supports=("occupancy_theoretical", "issue") + (("top_stall_share",) if top >= limits.STALL else ()),
    )


def stalled(facts: Facts) -> Answer:
    """What warps wait for, where no unit is busy. Weighed with care where warps have different roles."""
    name = "lat.dependency"
    if facts.regime != "latency":
        return No(name=name, why="stalls do not limit a kernel whose unit is busy")
    if not facts.stalls:
        return Unknown(name=name, missing=("stalls",))
    if facts.tensor_kernel is not False:
        return _roles(facts)
    return _reason(facts)


def _reason(facts: Facts) -> Answer:
    """The class of the largest true stall reason."""
    name = "lat.dependency"
    top, share = facts.top_stall, facts.stalls[facts.top_stall]
    if share < limits.STALL / 2:
        return Unknown(name=name, missing=("a stall reason above 15 %",))
    if top == "long_scoreboard":
        return bytes_in_flight(facts, share)
    if top == "math_pipe_throttle":
        pipe = max(facts.pipes, key=lambda p: (facts.pipes[p], p), default="math")
        return Hit(name=f"exec.pipe_bound:{pipe}", why=f"{share:.0%} of the stalls wait for the {pipe} pipe",
                   bound=room(facts.highest), clear=False, supports=("top_stall_share",))  # fmt: skip
    if top not in STALLS:
        return Unknown(name=name, missing=(f"what {top} waits for (source view)",))
    found, wanted, words = STALLS[top]
    if share < min(wanted, limits.STALL):
        return Unknown(name=found, missing=("a clear stall reason",))
    return Hit(name=found, why=f"{share:.0%} of the stalls wait {words}", bound=min(share, room(facts.highest)),
               clear=share >= 0.5, supports=("top_stall_share", "issue"))  # fmt: skip


def _roles(facts: Facts) -> Answer:
    """Producer warps idle by design: only a matrix-operand stall says something without the source view."""
    name = "lat.warpgroup_skew"
    share = facts.stalls.get("gmma", 0.0)
    if facts.tensor_kernel is None or share < 0.20:
        return Unknown(name=name, missing=("stalls by role (source view)",))
    facts.readings.keep("top_stall_share", "share of true stalls: gmma", share, "")
    why = f"{share:.0%} of the stalls wait for matrix operands"
    return Hit(name=name, why=why, bound=min(share, room(facts.highest)), clear=share >= 0.5,
               supports=("top_stall_share", "tensor"))  # fmt: skip
