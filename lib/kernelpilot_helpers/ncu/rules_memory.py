"""Rules about memory that does useful work: the bandwidth of a tier, or too few bytes in flight to use it."""

from __future__ import annotations

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.facts import SHARED_WAITING, WAITING, Facts
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No, Unknown, beside, room

_CLASS = {"dram": "mem.dram_bw", "l2": "mem.l2_bw", "l1": "mem.l1_lsu"}
_WORDS = {"dram": "DRAM", "l2": "L2", "l1": "L1 and the load/store unit"}


def bandwidth(facts: Facts) -> Answer:
    """The tier that carries the memory figure: DRAM, L2, or L1 with the load/store unit."""
    busy = facts.memory or 0.0
    if facts.regime != "memory":
        return No(name="mem.dram_bw", why=f"memory {busy:.0f} %, DRAM {facts.get('dram_sol') or 0.0:.0f} %")
    tier = facts.tier
    if tier not in _CLASS:
        return Unknown(name="mem.dram_bw", missing=("dram_sol", "l2_sol", "lsu_wavefronts"))
    value, role = _level(facts, tier, busy)
    waits = facts.top_stall in (WAITING | SHARED_WAITING if tier == "l1" else WAITING)
    stall = facts.stalls.get(facts.top_stall, 0.0) >= limits.STALL
    supports = (role, "limiting_memory", "memory_sol")
    return Hit(
        name=_CLASS[tier],
        why=f"{_WORDS[tier]} at {value:.0f} % of its peak, and no waste was found above it",
        bound=beside(value, *_beside(facts, tier)),
        roof=room(value),
        clear=value >= limits.BUSY + limits.MARGIN,
        supports=(*supports, "top_stall_share") if waits else supports,
        contradicts=("top_stall_share",) if stall and not waits and tier != "l1" else (),
    )


def _beside(facts: Facts, tier: str) -> tuple[float | None, ...]:
    """What stays busy when a tier has less to do; the SMs' figure is L1's own where that is the limit."""
    if tier == "l1":
        return (facts.get("dram_sol"), facts.get("l2_sol"), facts.pipes.get("fma"))
    return (facts.get("sm_sol"),) if tier == "dram" else (facts.get("sm_sol"), facts.get("dram_sol"))


def _level(facts: Facts, tier: str, busy: float) -> tuple[float, str]:
    """A tier's percent of peak, and the role that holds it."""
    if tier == "dram":
        value = facts.get("dram_sol")
        return (value, "dram_sol") if value is not None else (busy, "limiting_memory")
    named = facts.readings.found.get("limiting_memory")
    if named is not None:
        return named.value, "limiting_memory"
    if tier == "l2":
        return facts.get("l2_sol") or busy, "l2_sol"
    return facts.l1 or busy, "l1_sol" if facts.get("l1_sol") else "lsu_wavefronts"


def bytes_in_flight(facts: Facts, stall: float) -> Answer:
    """Warps wait for global memory that is itself not busy: too few bytes are asked for at once."""
    l2 = facts.get("l2_sol")
    against = ("l2_sol",) if l2 is not None and l2 >= limits.NEAR and facts.tier != "dram" else ()
    dram = facts.get("dram_sol")
    name = "mem.bytes_in_flight"
    busy = facts.memory or 0.0
    if dram is not None and busy >= limits.BUSY - limits.MARGIN and facts.tier == "l2" and 2 * dram < busy:
        return Hit(
            name="mem.l2_bw",
            why=f"{stall:.0%} of the stalls wait for L2, which is {busy:.0f} % busy",
            bound=beside(busy, dram, facts.get("sm_sol")),
            clear=False,
            supports=("limiting_memory", "l2_sol", "top_stall_share"),
        )
    if dram is None:
        return Unknown(name=name, missing=("dram_sol",))
    why = f"{stall:.0%} of the stalls wait for global memory while DRAM is only {dram:.0f} % busy"
    return Hit(name=name, why=why, bound=min(stall, room(facts.highest)), clear=stall >= 0.5,
               supports=("top_stall_share", "dram_sol"), contradicts=against)  # fmt: skip
