"""Rules about execution: tensor cores, arithmetic pipes, divergence."""

from __future__ import annotations

import re

from kernelpilot_helpers.ncu import constituents, design, limits, said
from kernelpilot_helpers.ncu.facts import WAITING, Facts
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No, Unknown, beside, room

PIPES_NEEDED = frozenset(("alu", "fma", "lsu"))
"""Without these the busiest pipe may be one that was not captured."""
_PIPE = re.compile(r"sm__(?:pipe|inst_executed_pipe)_(\w+?)(?:_cycles_active|_pred_on_any)?\.")
_ISSUE = re.compile(r"sm__(issue_active|inst_executed|inst_issued|instruction_throughput)\b")
_LOADS = ("lsu", "tex", "mio")
ASIDE = ("barrier", "membar", "sleeping")
"""Waits that an idle lane does not make longer."""
_SLOW = ("xu", "fp64", "fp16", "adu", "cbu", "idc")
"""Pipes that cannot take an instruction every cycle: one of them is full while most issue slots are empty."""


def tensor_bound(facts: Facts) -> Answer:
    """Tensor cores are the busiest unit. A low issue rate and low occupancy are the design of such kernels."""
    name = "exec.tensor_bound"
    tensor = facts.get("tensor")
    if tensor is None and design.predates_tensor_cores(facts.readings.launch):
        facts.readings.asked.pop("tensor", None)
        return No(name=name, why="this GPU has no tensor cores")
    if tensor is None:
        # It is a part of the compute figure, which it cannot exceed.
        if (
            (facts.sm or 0.0) < limits.BUSY
            or facts.told_pipe is not None
            or said.no_busy_pipe(facts.readings.launch)
            or not _may_use_tensor(facts)
        ):
            return No(name=name, why="not the limiting unit")
        return Unknown(name=name, missing=("tensor",))
    others = max(v for v in (facts.get("dram_sol"), _l2(facts), 0.0) if v is not None)
    if tensor < limits.BUSY and not _explained(facts, tensor):
        return Unknown(name=name, missing=("tensor",))
    if tensor < limits.BUSY or tensor < others or tensor < (facts.sm or 0.0) - limits.SAME_TIER:
        return No(name=name, why=f"tensor pipe {tensor:.0f} %")
    limiting_sm(facts)
    return Hit(
        name=name,
        why=f"tensor cores busy {tensor:.0f} % of the time",
        bound=room(tensor),
        clear=tensor >= limits.BUSY + limits.MARGIN,
        supports=("tensor", "sm_sol", "limiting_sm"),
        sure=tensor >= limits.NEAR,
    )


def _explained(facts: Facts, tensor: float) -> bool:
    """Whether a known unit makes the compute figure; else the tensor name at hand may be one of several pipes."""
    if facts.sm is None or facts.sm < limits.BUSY:
        return True
    named = limiting_sm(facts)
    if named is not None:
        return (
            not re.search(r"pipe_(shared|tensor|tc)\w*_cycles", named[0]) or facts.pipes.get("fp64", 0.0) >= limits.BUSY
        )
    known = [tensor, facts.get("issue") or 0.0, *facts.pipes.values()]
    known += [facts.told_pipe[1]] if facts.told_pipe is not None else []
    return max(known) >= facts.sm - limits.MARGIN


def _l2(facts: Facts) -> float | None:
    """L2's own figure runs above its parts on large chips: it counts only where the memory figure agrees."""
    l2 = facts.get("l2_sol")
    return None if l2 is None or facts.memory is None else min(l2, facts.memory) if facts.tier == "l2" else None


def _may_use_tensor(facts: Facts) -> bool:
    named = limiting_sm(facts)
    return named is None or "tensor" in named[0] or "shared" in named[0] or "_tc_" in named[0]


def limiting_sm(facts: Facts) -> tuple[str, float] | None:
    """The part that makes the compute figure, noted as a reading."""
    named = constituents.limiting(facts.readings.launch, "sm")
    if named is not None:
        facts.readings.keep("limiting_sm", named[0], named[1], "%")
    return named


def tensor_missing(facts: Facts) -> Answer:
    """A matrix product on the FMA pipe of a GPU with tensor cores. A matrix-vector product has no use for them."""
    name = "exec.tensor_missing"
    launch = facts.readings.launch
    kind = design.kind(launch.kernel)
    if kind not in ("gemm", "conv", "attention"):
        return No(name=name, why="nothing says that this is a matrix product")
    if facts.regime == "memory" and facts.tier != "l1":
        return No(name=name, why=f"memory is the limit ({facts.tier})")
    tensor, fma = facts.get("tensor"), facts.pipes.get("fma")
    if facts.told_pipe is not None and facts.told_pipe[0] == "fma":
        # The busiest of all pipes; a product on tensor cores has nothing to multiply on this one.
        tensor, fma = tensor or 0.0, facts.told_pipe[1]
        facts.readings.asked.pop("tensor", None)
    used = design.opcodes(launch, design.MMA)
    if used or (tensor is not None and tensor >= limits.TENSOR_USED):
        return No(name=name, why="it uses tensor cores")
    if not design.has_tensor_cores(launch):
        return No(name=name, why="this GPU has no tensor cores, or its kind is not known")
    if tensor is None or fma is None:
        return Unknown(name=name, missing=("tensor", "pipes"))
    if fma < limits.BUSY - limits.MARGIN or fma < max(facts.pipes.values(), default=0.0):
        return No(name=name, why=f"the FMA pipe is busy {fma:.0f} %")
    facts.readings.keep("busiest_pipe", "busiest pipe: fma", fma, "%")
    return Hit(name=name, why=f"a matrix product on the FMA pipe ({fma:.0f} %), tensor cores idle ({tensor:.0f} %)",
               bound=beside(fma, facts.get("dram_sol")), clear=fma >= limits.BUSY + limits.MARGIN,
               supports=("busiest_pipe", "tensor"))  # fmt: skip


def divergence(facts: Facts) -> Answer:
    """Instructions that run with few lanes (rule: 24 of 32). One-thread tensor instructions are not divergence."""
    name = "exec.divergence"
    lanes, on = facts.lanes(), facts.get("lanes_on")
    facts.readings.asked.pop("lanes_on", None)
    if lanes is None:
        return Unknown(name=name, missing=("lanes",))
    role = "lanes"
    if lanes >= limits.LANES and on is not None and on < limits.LANES / 2:
        lanes, role = on, "lanes_on"
    if lanes >= limits.LANES:
        return No(name=name, why=f"{lanes:.0f} of 32 lanes work")
    special, issue = facts.tensor_kernel, facts.get("issue") or 0.0
    if special is None and issue < 2 * limits.PIPE_LOW:
        return Unknown(name=name, missing=("tensor", "tma"))
    if special:
        return No(name=name, why="one-thread bulk and matrix instructions lower the lane count")
    if facts.regime == "latency" and issue < limits.PIPE_LOW and facts.stall(*WAITING, *ASIDE) >= 0.5:
        return No(name=name, why=f"{lanes:.0f} of 32 lanes work, but warps wait for {facts.top_stall}")
    why = f"an instruction runs with {lanes:.0f} of 32 lanes on average"
    second = "sm_sol" if facts.regime == "compute" else "issue" if issue >= limits.PIPE_LOW else ""
    return Hit(name=name, why=why, bound=1 - lanes / 32, clear=lanes <= 16,
               supports=(role, second) if second else (role,))  # fmt: skip


def pipe_bound(facts: Facts) -> Answer:
    """One arithmetic pipe, the load/store pipe, or the issue slots themselves."""
    base = "exec.pipe_bound"
    if facts.regime != "compute" and not facts.balanced:
        return No(name=base, why=f"compute {facts.sm or 0.0:.0f} %")
    found = _busiest(facts)
    if found is None:
        return Unknown(name=base, missing=("pipes", "issue"))
    pipe, busy = found
    if max(busy, (facts.get("issue") or 0.0) * (pipe == "fma")) < (facts.sm or 0.0) - limits.MARGIN:
        return Unknown(name=base, missing=("the pipe behind the compute figure",))
    clear = busy >= limits.BUSY + limits.MARGIN
    if pipe in _LOADS:
        return Hit(
            name="mem.l1_lsu",
            why=f"the {pipe} pipe is busy {busy:.0f} % of the time",
            bound=beside(busy, facts.get("dram_sol"), facts.get("l2_sol"), facts.pipes.get("fma")),
            clear=clear,
            supports=("busiest_pipe", "sm_sol"),
        )
    issue = facts.get("issue")
    words = "issue slots are" if pipe == "issue" else f"the {pipe} pipe is"
    slow = pipe in _SLOW and issue is not None and issue < 40.0
    return Hit(
        name=f"{base}:{pipe}",
        why=f"{words} busy {busy:.0f} % of the time"
        + (f" though only {issue:.0f} % of the issue slots are used" if slow else ""),
        bound=beside(busy, *_others(facts, pipe)),
        roof=room(busy),
        clear=clear,
        supports=("issue" if pipe == "issue" else "busiest_pipe", "sm_sol"),
        contradicts=("tensor",) if pipe in ("shared", "tensor") else (),
    )


def by_loads(facts: Facts) -> bool:
    """Whether the compute figure is that of loads and stores: then the waste of memory is asked for first."""
    found = _busiest(facts)
    for role in ("busiest_pipe", "limiting_sm"):
        facts.readings.found.pop(role, None)
    return found is not None and found[0] in _LOADS


def _others(facts: Facts, pipe: str) -> tuple[float | None, ...]:
    """How busy everything but one pipe is; the issue slots are no unit of their own where it takes the most of them."""
    issue = facts.get("issue") if pipe in _SLOW else None
    pipes = (busy for name, busy in facts.pipes.items() if name != pipe and not name.startswith(pipe))
    return (issue, facts.memory, *(() if pipe == "issue" else pipes))


def _busiest(facts: Facts) -> tuple[str, float] | None:
    """(pipe, percent), by the breakdown where the file has one; None when the one may not have been captured."""
    issue = facts.get("issue")
    pipe = max(facts.pipes, key=lambda p: (facts.pipes[p], p), default="")
    busy = facts.pipes.get(pipe, 0.0)
    named = limiting_sm(facts)
    if named is not None and not _ISSUE.match(named[0]):
        pipe, busy = _name(named[0], facts), named[1]
    elif named is None and facts.told_pipe is not None:
        pipe, busy = facts.told_pipe
    elif named is None and _by_elimination(facts):
        pipe, busy = "xu", facts.sm or 0.0
    elif named is None and (not facts.pipes.keys() >= PIPES_NEEDED or issue is None):
        return None
    if issue is not None and issue > busy + limits.MARGIN:
        pipe, busy = "issue", issue
    if pipe == "issue":
        fma = facts.pipes.get("fma")
        if fma is None and facts.told_pipe is None:
            return None
        if fma is not None and fma >= max(limits.BUSY + limits.MARGIN, limits.MOST * busy):
            pipe, busy = "fma", fma
    facts.readings.keep("busiest_pipe", f"busiest pipe: {pipe}", busy, "%")
    return pipe, busy


def _by_elimination(facts: Facts) -> bool:
    """Whether only the special-function pipe is left: NVIDIA's rule, which does not look at it, found no busy pipe,
    few instructions are issued, memory is idle, and warps queue for the units that are shared by an SM's quarters."""
    issue = facts.get("issue")
    return (
        not facts.pipes
        and said.no_busy_pipe(facts.readings.launch)
        and issue is not None
        and issue < limits.BUSY <= (facts.sm or 0.0) - limits.MARGIN
        and facts.memory is not None
        and facts.memory < limits.PIPE_LOW
        and facts.stall("mio_throttle", "short_scoreboard") >= limits.STALL
    )


def _name(metric: str, facts: Facts) -> str:
    """The pipe that a part of the compute figure stands for."""
    hit = _PIPE.match(metric)
    if hit is None:
        return "idc" if metric.startswith("idc") else "mio" if metric.startswith(("sm__mio", "sm__memory")) else "issue"
    name = hit[1]
    if name in ("fmaheavy", "fmalite"):
        return "fma"
    if name == "shared":
        rest = {p: v for p, v in facts.pipes.items() if p in ("fp64", "fp16")}
        return max(rest, key=lambda p: (rest[p], p)) if rest and max(rest.values()) >= limits.PIPE_LOW else "tensor"
    return "tensor" if name.startswith("tensor") or name == "tc" else name
