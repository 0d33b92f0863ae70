"""Rules about memory: waste first, then plain bandwidth of a tier."""

from __future__ import annotations

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.facts import SHARED_WAITING, WAITING, Facts
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No, Unknown, room


def smem_conflict(facts: Facts) -> Answer:
    """Bank conflicts, where shared memory is what the kernel waits for."""
    name = "mem.smem_conflict"
    share = facts.conflict_share()
    if share is None:
        if facts.regime == "memory" and facts.tier == "dram":
            return No(name=name, why="DRAM is the limit")
        return Unknown(name=name, missing=("shared_wavefronts", "shared_conflicts"))
    if share < limits.CONFLICT:
        return No(name=name, why=f"{share:.0%} of the shared-memory wavefronts are conflicts")
    waits = facts.top_stall in SHARED_WAITING
    if facts.regime == "memory":
        if facts.tier == "dram":
            return No(name=name, why="DRAM is the limit")
    elif not waits:
        return No(name=name, why=f"conflicts {share:.0%}, but warps wait for {facts.top_stall or 'something unknown'}")
    l1 = facts.l1 or facts.highest
    return Hit(
        name=name,
        why=f"{share:.0%} of the shared-memory wavefronts are bank conflicts",
        bound=share * min(1.0, l1 / 100),
        clear=share >= limits.CONFLICT + 0.10,
        supports=("conflict_share", "l1_sol") + (("top_stall_share",) if waits else ()),
    )


def spill(facts: Facts) -> Answer:
    """Register spills that make up memory traffic; indexed local arrays are not spills."""
    name = "mem.spill"
    spills, share = facts.get("spill_requests"), facts.local_share()
    if spills == 0:
        return No(name=name, why="no spilled register" if not share else "local traffic is arrays, not spills")
    if share is None:
        return Unknown(name=name, missing=("spill_requests", "local_load_sectors", "global_load_sectors"))
    if share < limits.LOCAL_SHARE:
        return No(name=name, why=f"local memory is {share:.0%} of what passes L1")
    return Hit(
        name=name,
        why=f"local memory is {share:.0%} of what passes L1" + ("" if spills else "; spill counts are missing"),
        bound=share * max(room(0) if facts.regime == "memory" else 0.0, facts.highest / 100),
        clear=share >= 0.5 or share >= limits.LOCAL_SHARE + 0.10,
        supports=("local_share", "spill_requests"),
        weak=spills is None,
    )


def uncoalesced(facts: Facts) -> Answer:
    """Global accesses that fetch sectors they do not use."""
    name = "mem.uncoalesced"
    if facts.regime == "latency" and facts.top_stall and facts.top_stall not in WAITING:
        return No(name=name, why=f"warps wait for {facts.top_stall}, not for global memory")
    excess, load = facts.excess_share(), facts.get("bytes_per_sector_load")
    if excess is None and load is None:
        return Unknown(name=name, missing=("global_sectors", "bytes_per_sector_load"))
    narrow = load is not None and 0 < load < limits.BYTES_PER_SECTOR
    if (excess is None or excess < limits.EXCESS_SECTORS) and not narrow:
        said = f"{excess:.0%} excess sectors" if excess is not None else f"{load:.0f} bytes used of each sector"
        return No(name=name, why=said)
    share = excess if excess is not None else 1.0 - (load or 32.0) / 32.0
    return Hit(
        name=name,
        why=f"{share:.0%} of the sectors of global accesses carry nothing that is used",
        bound=share * max(0.3, facts.highest / 100),
        clear=share >= limits.EXCESS_SECTORS + 0.10,
        supports=("excess_share",) + (("bytes_per_sector_load",) if narrow else ("memory_sol",)),
    )


def partial_store(facts: Facts) -> Answer:
    """Stores that fill less than half a sector."""
    name = "mem.partial_store"
    store, excess = facts.get("bytes_per_sector_store"), facts.excess_share()
    if store is None and excess is not None and excess < 0.05:
        return No(name=name, why=f"{excess:.0%} excess sectors, stores included")
    if store is None:
        return Unknown(name=name, missing=("bytes_per_sector_store",))
    if store == 0 or store >= limits.BYTES_PER_SECTOR:
        return No(name=name, why=f"stores fill {store:.0f} of 32 bytes" if store else "no stores to global memory")
    why = f"stores fill {store:.0f} of the 32 bytes of a sector"
    return Hit(name=name, why=why, bound=(1 - store / 32) * facts.highest / 100, clear=store <= 8,
               supports=("bytes_per_sector_store", "memory_sol"))  # fmt: skip


def atomics(facts: Facts) -> Answer:
    """Atomics and reductions as a large part of what passes L1, with warps waiting for memory."""
    name = "mem.atomics"
    share = facts.atomic_share()
    if facts.regime == "memory" and facts.tier == "dram":
        return No(name=name, why="DRAM is the limit, and atomics end in L2")
    if share is None:
        return Unknown(name=name, missing=("atomic_sectors", "reduction_sectors", "l2_sectors"))
    if share < limits.ATOMIC_SHARE:
        return No(name=name, why=f"atomics are {share:.0%} of the L2 sectors")
    if facts.top_stall not in WAITING:
        return No(name=name, why=f"atomics {share:.0%}, but warps wait for {facts.top_stall or 'something unknown'}")
    return Hit(name=name, why=f"atomics are {share:.0%} of the L2 sectors", bound=share, clear=share >= 0.5,
               supports=("atomic_share", "top_stall_share"))  # fmt: skip


def bandwidth(facts: Facts) -> Answer:
    """The tier that carries the memory figure: DRAM, L2, or L1 with the load/store unit."""
    busy = facts.memory or 0.0
    if facts.regime != "memory":
        return No(name="mem.dram_bw", why=f"memory {busy:.0f} %, DRAM {facts.get('dram_sol') or 0.0:.0f} %")
    tier = facts.tier
    if tier == "unknown":
        return Unknown(name="mem.dram_bw", missing=("dram_sol", "l2_sol", "lsu_wavefronts"))
    name = {"dram": "mem.dram_bw", "l2": "mem.l2_bw", "l1": "mem.l1_lsu"}[tier]
    value = {"dram": facts.get("dram_sol"), "l2": facts.get("l2_sol"), "l1": facts.l1}[tier] or busy
    words = {"dram": "DRAM", "l2": "L2", "l1": "L1 and the load/store unit"}[tier]
    role = {"dram": "dram_sol", "l2": "l2_sol", "l1": "l1_sol" if facts.get("l1_sol") else "lsu_wavefronts"}[tier]
    stall = facts.stalls.get(facts.top_stall, 0.0) >= limits.STALL
    waits = facts.top_stall in (WAITING | SHARED_WAITING if tier == "l1" else WAITING)
    return Hit(
        name=name,
        why=f"{words} at {value:.0f} % of its peak, and no waste was found above it",
        bound=room(value),
        clear=value >= limits.NEAR,
        supports=(role, "memory_sol") if not waits else (role, "top_stall_share"),
        contradicts=("top_stall_share",) if stall and not waits and tier != "l1" else (),
    )


def bytes_in_flight(facts: Facts, stall: float) -> Answer:
    """Warps wait for global memory that is itself not busy: too few bytes are asked for at once."""
    l2 = facts.get("l2_sol")
    against = ("l2_sol",) if l2 is not None and l2 >= limits.BUSY else ()
    dram = facts.get("dram_sol")
    name = "mem.bytes_in_flight"
    if dram is None:
        return Unknown(name=name, missing=("dram_sol",))
    why = f"{stall:.0%} of the stalls wait for global memory while DRAM is only {dram:.0f} % busy"
    return Hit(name=name, why=why, bound=min(stall, room(facts.highest)), clear=stall >= 0.5 and l2 is not None,
               supports=("top_stall_share", "dram_sol"), contradicts=against)  # fmt: skip
