"""Exactly one next step: an edit with the metric that must move, a capture that will decide, or a stop."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from kernelpilot_helpers.ncu import families, limits
from kernelpilot_helpers.ncu.decide import Decision
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.metrics import ROLES
from kernelpilot_helpers.ncu.model import INSUFFICIENT, NextStep, Refusal

SECTIONS = {
    "SpeedOfLight": "sm_sol memory_sol dram_sol l2_sol l1_sol lsu_wavefronts duration cycles clock",
    "ComputeWorkloadAnalysis": "pipes tensor tma issue busiest_pipe",
    "MemoryWorkloadAnalysis_Tables": "shared_wavefronts shared_conflicts local_load_sectors atomic_sectors "
    "reduction_sectors l2_sectors global_load_sectors",
    "SourceCounters": "global_sectors spill_requests lanes",
    "WarpStateStats": "stalls lanes",
    "Occupancy": "occupancy occupancy_theoretical limit_registers limit_shared",
    "LaunchStats": "waves grid block sms",
    "WorkloadDistribution": "sm_cycles_max sm_cycles_avg",
    "MemoryWorkloadAnalysis": "bytes_per_sector_load bytes_per_sector_store",
}
ALWAYS = ("SpeedOfLight", "LaunchStats", "Occupancy")
ROOF_CLASSES = ("exec.tensor_bound", "exec.pipe_bound")


def sections(roles: Iterable[str]) -> tuple[str, ...]:
    """The ncu sections that hold these roles, with those that every digest wants."""
    wanted = set(roles)
    named = [s for s, held in SECTIONS.items() if s in ALWAYS or wanted & set(held.split())]
    if not set(named) - set(ALWAYS):
        named += ["WarpStateStats", "MemoryWorkloadAnalysis_Tables", "SourceCounters"]
    return tuple(named)


def function(kernel: str) -> str:
    """The bare function name that ncu's ``-k`` takes; empty when the name does not show one.

    >>> function("void at::f<8, a::b<int>>(int, T2)"), function("copy(const float *)"), function("a b")
    ('f', 'copy', '')
    """
    head = re.split(r"[<(]", kernel.replace("<unnamed>", "").replace("(anonymous namespace)", ""), maxsplit=1)[0]
    found = re.fullmatch(r"(?:void )?(?:\w*::)*(\w+)", head.strip())
    return found[1] if found else ""


def profile(kernel: str, what: str) -> str:
    """Command that captures one launch of a kernel and exports its raw page."""
    name = function(kernel)
    chosen = f" -k {shlex.quote(name)}" if name else ""
    return (
        f"ncu {what} --import-source yes{chosen} -c 1 -o next PROGRAM "
        "&& ncu --import next.ncu-rep --page raw --csv > next.raw.csv"
    )


def step(facts: Facts, decision: Decision, *, min_bytes: int | None) -> NextStep:
    """The step for one group."""
    name = decision.hit.name
    if name == INSUFFICIENT or decision.undecided or decision.hit.weak:
        return _capture(facts, decision)
    moved = dram_bytes(facts)
    least = min_bytes is not None and moved is not None and moved <= limits.NEAR_MINIMUM * min_bytes
    busy = facts.readings.found.get(decision.hit.supports[0])
    at_roof = busy is not None and busy.unit == "%" and busy.value >= limits.ROOF
    if at_roof and (name.startswith(ROOF_CLASSES) or (name == "mem.dram_bw" and least)):
        return _stop(decision)
    detail = "minimum" if least else ""
    duration = facts.get("duration")
    if name == "launch.grid_small" and duration is not None and duration < limits.FLOOR_NS:
        detail = "floor"
    if name == "mem.uncoalesced" and "excess_share" not in facts.readings.found:
        detail = "narrow"
    return _edit(facts, decision, families.find(name, detail=detail))


def dram_bytes(facts: Facts) -> float | None:
    """Bytes read from and written to DRAM."""
    parts = facts.get("dram_read"), facts.get("dram_write")
    if parts[0] is None or parts[1] is None:
        return None
    return facts.readings.keep(
        "dram_bytes", "dram__bytes_read.sum + dram__bytes_write.sum", parts[0] + parts[1], "byte"
    )


def _edit(facts: Facts, decision: Decision, family: families.Family) -> NextStep:
    if family.role in ROLES:
        facts.get(family.role)
    reading = facts.readings.found.get(family.role)
    start = "a value that this file does not hold" if reading is None else f"{reading.value:g} {reading.unit}".strip()
    metric = family.role if reading is None else f"{family.role} ({reading.metric})"
    what = family.what
    if decision.hit.name == "lat.occupancy":
        what = f"{what} The limiter is {facts.occupancy_limiter()}."
    return NextStep(
        kind="edit",
        family=family.id,
        what=what,
        why=f"{decision.hit.why}; at most {decision.hit.bound:.0%} of this kernel's time can be won here",
        command=profile(facts.readings.launch.kernel, "--set full"),
        expect=f"{metric} from {start} toward {family.toward}",
        guard=family.guard,
        refute=family.refute,
    )


def _stop(decision: Decision) -> NextStep:
    return NextStep(
        kind="stop",
        family="at-roof",
        what="Stop tuning this kernel as it is; only fewer operations or bytes (another algorithm, another type that "
        "the contract allows) can make it faster.",
        why=f"{decision.hit.why}; the roof leaves at most {decision.hit.bound:.0%}",
        command="kernelpilot gate",
        expect="no metric moves: the kernel is within 15 % of the roof that limits it",
        guard="the contract's every case, not only the one profiled",
        refute="a variant of the same algorithm that is faster by more than the bound",
    )


def _capture(facts: Facts, decision: Decision) -> NextStep:
    missing = [role for role, v in (("sm_sol", facts.sm), ("memory_sol", facts.memory)) if v is None]
    wanted = sections([*missing, *decision.undecided])
    asked = " ".join(f"--section {s}" for s in wanted)
    lacking = ", ".join([*missing, *decision.undecided]) or "source counters that show where the time goes"
    return NextStep(
        kind="capture",
        family="more-sections",
        what=f"Profile the same launch again with the sections {', '.join(wanted)}.",
        why=f"{decision.hit.why}; missing: {lacking}",
        command=profile(facts.readings.launch.kernel, asked),
        expect=f"the new file decides {', '.join(_open(decision)) or 'the class'}",
        guard="the same program, case, GPU and clocks as this file",
    )


def _open(decision: Decision) -> list[str]:
    return list(dict.fromkeys(r.name for r in decision.rejected if r.unknown))


def for_refusal(refused: Refusal) -> NextStep:
    """The step when a file was refused: export or capture the right one."""
    return NextStep(
        kind="capture",
        family="export",
        what="Export the raw page as CSV and digest that.",
        why=f"{refused.code}: {refused.what}",
        command=refused.fix,
        expect="a digest with a class",
        guard="the same report",
    )
