"""Rules for a GPU where no unit is busy: too few warps, or what the warps wait for."""

from __future__ import annotations

import re

from kernelpilot_helpers.ncu import design, limits, said
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.rules_memory import bytes_in_flight
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No, Unknown, room

# reason -> class, share wanted, words
STALLS = {
    "barrier": ("lat.barrier", 0.30, "at block barriers"),
    "membar": ("lat.membar", 0.15, "for memory fences"),
    "gmma": ("lat.warpgroup_skew", 0.20, "for warpgroup matrix operands"),
    "no_instruction": ("lat.icache", 0.20, "for instructions to be fetched"),
    "imc_miss": ("lat.imc", 0.15, "for constants"),
    "wait": ("lat.dependency", 0.30, "for the fixed latency of their own last instruction"),
    "short_scoreboard": ("lat.dependency", 0.30, "for shared memory or special functions"),
    "branch_resolving": ("lat.dependency", 0.30, "for branches to be resolved"),
    "dispatch_stall": ("lat.dependency", 0.30, "for the dispatcher, which register or pipe conflicts hold up"),
    "mio_throttle": ("mem.l1_lsu", 0.30, "for the shared-memory instruction queue"),
    "lg_throttle": ("mem.l1_lsu", 0.30, "for the global-memory instruction queue"),
    "tex_throttle": ("mem.l1_lsu", 0.30, "for the texture queue"),
}
_SPECIAL = ("xu", "fp64", "adu")


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
    if special is None and _plain(facts):
        special = False
    if special is None or not limiter or issue is None:
        return Unknown(name=name, missing=("tensor", "tma", "limit_registers", "limit_shared", "issue"))
    if issue >= limits.ISSUE:
        return No(name=name, why=f"issue slots busy {issue:.0f} %")
    top = facts.stalls.get(facts.top_stall, 0.0)
    if facts.top_stall in ("barrier", "membar", "no_instruction") and top >= 0.5:
        return No(name=name, why=f"{theory:.0f} % of the warps fit, but {top:.0%} of the stalls are {facts.top_stall}")
    return Hit(
        name=name,
        why=f"{theory:.1f} % of the warps fit, limited by {limiter}; issue slots are busy {issue:.1f} %",
        bound=min(room(facts.highest), room(issue)),
        clear=theory <= limits.THEORETICAL - limits.MARGIN,
        supports=("occupancy_theoretical", "issue") + (("top_stall_share",) if top >= limits.STALL else ()),
    )


def _plain(facts: Facts) -> bool:
    """Whether a page without tensor and copy pipes shows that warps have no roles: blocks too small to have several."""
    launch, threads = facts.readings.launch, facts.block_threads()
    return threads is not None and threads < 128 and said.no_busy_pipe(launch) and not design.kind(launch.kernel)


def stalled(facts: Facts) -> Answer:
    """What warps wait for, where no unit is busy. Weighed with care where warps have different roles."""
    name = "lat.dependency"
    if facts.regime != "latency":
        return No(name=name, why="stalls do not limit a kernel whose unit is busy")
    if specialised(facts):
        return _roles(facts)
    if not facts.stalls:
        return Unknown(name=name, missing=("stalls",))
    return _reason(facts)


def specialised(facts: Facts) -> bool:
    """Whether warps have different roles: bulk copies, warpgroup or one-thread matrix instructions, moved registers."""
    launch = facts.readings.launch
    if (facts.get("tma") or 0.0) > 0.0 or facts.stalls.get("gmma", 0.0) > 0.0:
        return True
    wanted = (*design.BULK, *design.WARPGROUP, *design.TCGEN, *design.SETMAXREG)
    named = design.kind(launch.kernel) in ("gemm", "conv", "attention", "gemv") or bool(
        re.search(r"sm_?(90|100|120)|wgmma|tma|warp_?special", launch.kernel, re.IGNORECASE)
    )
    return bool(design.opcodes(launch, wanted)) or (facts.tensor_kernel is None and named)


def _reason(facts: Facts) -> Answer:
    """The class of the largest true stall reason."""
    name = "lat.dependency"
    top, share = facts.top_stall, facts.stalls[facts.top_stall]
    if share < limits.STALL / 2:
        return Unknown(name=name, missing=("a stall reason above 15 %",))
    if top == "long_scoreboard" or (top == "drain" and facts.stall("long_scoreboard", "drain") >= limits.STALL):
        return bytes_in_flight(facts, facts.stall("long_scoreboard", "drain"))
    pipe = max((p for p in facts.pipes if p not in ("lsu", "tex")), key=lambda p: (facts.pipes[p], p), default="")
    slow = pipe in _SPECIAL and facts.pipes[pipe] >= limits.PIPE_LOW
    if top == "math_pipe_throttle" or (slow and top in ("short_scoreboard", "mio_throttle")):
        facts.readings.keep("busiest_pipe", f"busiest pipe: {pipe or 'math'}", facts.pipes.get(pipe, 0.0), "%")
        return Hit(
            name=f"exec.pipe_bound:{pipe or 'math'}",
            why=f"{share:.0%} of the stalls wait for the {pipe or 'math'} pipe",
            bound=room(facts.highest),
            clear=share >= 0.5,
            supports=("top_stall_share", "busiest_pipe"),
        )
    if top not in STALLS:
        return Unknown(name=name, missing=(f"what {top} waits for (source view)",))
    found, wanted, words = STALLS[top]
    if share < min(wanted, limits.STALL / 2):
        return Unknown(name=found, missing=("a clear stall reason",))
    facts.get("issue")
    starved = (facts.get("issue") or 0.0) < limits.BUSY
    return Hit(name=found, why=f"{share:.0%} of the stalls wait {words}", bound=min(share, room(facts.highest)),
               clear=share >= 0.5, supports=("top_stall_share", "issue") if starved and share >= limits.STALL
               else ("top_stall_share",))  # fmt: skip


def _roles(facts: Facts) -> Answer:
    """Producer warps idle by design: ranked are only matrix-operand stalls and units that are busier than the rest."""
    name = "lat.warpgroup_skew"
    tensor, dram = facts.get("tensor"), facts.get("dram_sol")
    if tensor is not None and tensor >= limits.TENSOR_NEAR and tensor >= (dram or 0.0):
        why = f"tensor cores busy {tensor:.0f} % of the time, in a kernel that is built around them"
        return Hit(name="exec.tensor_bound", why=why, bound=1.0 - tensor / 100, clear=False,
                   supports=("tensor", "sm_sol"))  # fmt: skip
    share = facts.stalls.get("gmma", 0.0)
    if share >= 0.20:
        facts.readings.keep("top_stall_share", "share of true stalls: gmma", share, "")
        why = f"{share:.0%} of the stalls wait for matrix operands"
        return Hit(name=name, why=why, bound=min(share, room(facts.highest)), clear=share >= 0.5,
                   supports=("top_stall_share", "tensor"))  # fmt: skip
    waits = facts.stalls.get("long_scoreboard", 0.0)
    if dram is not None and dram > (tensor or 0.0) and dram >= limits.BUSY / 2 and waits >= limits.STALL:
        return bytes_in_flight(facts, waits)
    return Unknown(name=name, missing=("stalls by role (source view)",))
