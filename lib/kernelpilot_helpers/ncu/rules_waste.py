"""Rules about memory traffic that does no work: conflicts, spills, unused sectors, atomics, far memory."""

from __future__ import annotations

from kernelpilot_helpers.ncu import limits, said, traffic
from kernelpilot_helpers.ncu.facts import SHARED_WAITING, WAITING, Facts
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No, Unknown


def smem_conflict(facts: Facts) -> Answer:
    """Bank conflicts, where shared memory is what the kernel waits for (rule: 10 % of the wavefronts)."""
    name = "mem.smem_conflict"
    if facts.regime == "memory" and facts.tier in ("dram", "remote"):
        return No(name=name, why="DRAM is the limit")
    share = facts.conflict_share()
    if share is None:
        return Unknown(name=name, missing=("shared_wavefronts", "shared_conflicts"))
    if share < limits.CONFLICT:
        return No(name=name, why=f"{share:.0%} of the shared-memory wavefronts are conflicts")
    waits = facts.top_stall in SHARED_WAITING or facts.stall("short_scoreboard", "mio_throttle") >= limits.STALL
    if facts.regime != "memory" and not waits:
        if not facts.stalls:
            return Unknown(name=name, missing=("stalls",))
        return No(name=name, why=f"conflicts {share:.0%}, but warps wait for {facts.top_stall}")
    if facts.regime == "memory" and facts.tier == "l2":
        return No(name=name, why="L2 is the limit")
    supports = ["conflict_share", "l1_sol", "lsu_wavefronts", "limiting_memory"] + ["top_stall_share"] * waits
    return Hit(
        name=name,
        why=f"{share:.0%} of the shared-memory wavefronts are bank conflicts",
        bound=share,
        clear=share >= limits.CONFLICT + 0.10,
        supports=tuple(supports),
    )


def spill(facts: Facts) -> Answer:
    """Register spills that make up memory traffic; indexed local arrays are not spills."""
    name = "mem.spill"
    spills, share = facts.get("spill_requests"), facts.local_share()
    if spills == 0:
        return No(name=name, why="no spilled register" if not share else "local traffic is arrays, not spills")
    if share is None:
        return _spill_without_traffic(facts, spills)
    if share < limits.LOCAL_SHARE:
        return No(name=name, why=f"local memory is {share:.0%} of what passes L1")
    part = facts.get("spill_share")
    if part is not None and part < 50.0:
        return No(name=name, why=f"only {part:.0f} % of the local requests are spills, the rest are arrays")
    if spills is None and facts.regime == "compute" and not facts.balanced:
        return No(name=name, why=f"local memory is {share:.0%} of what passes L1, but compute is the limit")
    at_limit = spills is None and (facts.get("registers") or 0.0) >= 168
    return Hit(
        name=name,
        why=f"local memory is {share:.0%} of what passes L1"
        + ("" if spills else "; this ncu does not tell spills from indexed arrays"),
        bound=share,
        clear=share >= limits.LOCAL_SHARE + 0.10,
        supports=("local_share", "spill_requests", "local_loads"),
        contradicts=() if spills or at_limit else ("registers",),
    )


def _spill_without_traffic(facts: Facts, spills: float | None) -> Answer:
    """From the number of spill instructions alone, as a details page has it."""
    name = "mem.spill"
    share = traffic.spill_instructions(facts.readings)
    if spills is None or share is None:
        told = said.local_pattern(facts.readings.launch)
        if told is False:
            return No(name=name, why="NVIDIA's rules on the memory tables found no local traffic")
        if facts.get("local_loads") == 0 and facts.get("local_stores") == 0:
            return No(name=name, why="no local load or store was executed")
        return Unknown(name=name, missing=("spill_requests", "local_load_sectors", "global_load_sectors"))
    if share < limits.SPILL_INSTRUCTIONS:
        return No(name=name, why=f"{share:.0%} of the instructions are spills")
    return Hit(name=name, why=f"{share:.0%} of the instructions load or store spilled registers",
               bound=min(1.0, 2 * share), clear=share >= 0.2,
               supports=("spill_instruction_share", "memory_sol"))  # fmt: skip


def uncoalesced(facts: Facts) -> Answer:
    """Global accesses that fetch sectors they do not use (guide: 1.5 times the ideal, or 16 of 32 bytes)."""
    name = "mem.uncoalesced"
    waits = facts.stall(*WAITING) >= limits.STALL or facts.top_stall in WAITING
    if facts.regime == "latency" and facts.stalls and not waits:
        return No(name=name, why=f"warps wait for {facts.top_stall}, not for global memory")
    excess, load = facts.excess_share(), facts.get("bytes_per_sector_load")
    if excess is None and load is None:
        return Unknown(name=name, missing=("global_sectors", "bytes_per_sector_load"))
    written = traffic.stores(facts.readings)
    narrow = load is not None and 0 < load < limits.BYTES_PER_SECTOR and (written is None or written < 0.8)
    if (excess is None or excess < limits.EXCESS_SECTORS) and not narrow:
        told = f"{excess:.0%} excess sectors" if excess is not None else f"{load:.0f} bytes used of each sector"
        return No(name=name, why=told)
    share = excess if excess is not None and excess >= limits.EXCESS_SECTORS else 1.0 - (load or 32.0) / 32.0
    if excess is not None and excess < limits.CONFLICT:
        # Narrow because each lane reads little of a sector that no other lane wants: few bytes, not a bad order.
        return No(name=name, why=f"{excess:.0%} excess sectors; {load:.0f} bytes used of each sector")
    if _writes_only(facts, written):
        return No(name=name, why="the unused bytes are those of stores")
    if not narrow and _may_be_stores(facts, written):
        return Unknown(name=name, missing=("bytes_per_sector_store", "bytes_per_sector_load"))
    second = ("bytes_per_sector_load",) if narrow else ("memory_sol",) if facts.regime == "memory" else ()
    return Hit(
        name=name,
        why=f"{share:.0%} of the sectors of global accesses carry nothing that is used",
        bound=share,
        clear=share >= limits.EXCESS_SECTORS + 0.10,
        supports=("excess_share", *second, *(("top_stall_share",) if waits else ())),
    )


def _writes_only(facts: Facts, written: float | None) -> bool:
    """Loads are whole and stores are not: that is partial_store's case."""
    launch = facts.readings.launch
    if traffic.store_bytes(facts.readings) is None:
        used = said.bytes_used(launch, "global stores")
        return used is not None and used < limits.BYTES_PER_SECTOR and said.bytes_used(launch, "global loads") is None
    load, store = facts.get("bytes_per_sector_load"), traffic.store_bytes(facts.readings)
    whole = (written or 0.0) >= 0.8 if load is None else load == 0 or load >= 24.0
    part = written if written is not None else 1.0 if load == 0 else 0.0
    return whole and store is not None and 0 < store < limits.BYTES_PER_SECTOR and part >= limits.STORE_SHARE


def _may_be_stores(facts: Facts, written: float | None) -> bool:
    """Whether the unused bytes may all be those of stores, of which nothing else is known."""
    store = traffic.store_bytes(facts.readings)
    if written is not None and (written < 0.5 or store is not None):
        return False
    if store is not None and (store == 0 or store >= limits.BYTES_PER_SECTOR):
        return False
    load = facts.get("bytes_per_sector_load")
    whole = load is None or load == 0 or (load >= 24.0 and written is not None)
    return whole and said.bytes_used(facts.readings.launch, "global loads") is None


def partial_store(facts: Facts) -> Answer:
    """Stores that fill less than half a sector, where stores are a good part of the traffic."""
    name = "mem.partial_store"
    store, excess = traffic.store_bytes(facts.readings), facts.excess_share()
    if store is None:
        if excess is not None and excess < limits.CONFLICT:
            return No(name=name, why="no sign of narrow stores")
        used = said.keep(facts.readings, "bytes_per_sector_store_told",
                         said.bytes_used(facts.readings.launch, "global stores"))  # fmt: skip
        if used is not None and used < limits.BYTES_PER_SECTOR and (excess or 0.0) >= limits.EXCESS_SECTORS:
            return Hit(name=name, why=f"stores fill {used:.0f} of the 32 bytes of a sector",
                       bound=excess or 0.0, clear=used <= 8,
                       supports=("bytes_per_sector_store_told", "excess_share"))  # fmt: skip
        return Unknown(name=name, missing=("bytes_per_sector_store",))
    if store == 0 or store >= limits.BYTES_PER_SECTOR:
        return No(name=name, why=f"stores fill {store:.0f} of 32 bytes" if store else "no stores to global memory")
    written = traffic.stores(facts.readings)
    if written is None:
        return Unknown(name=name, missing=("global_store_sectors", "global_load_sectors"))
    if written < limits.STORE_SHARE:
        return No(name=name, why=f"stores fill {store:.0f} of 32 bytes but are only {written:.0%} of the sectors")
    # Warps do not wait for stores: that memory is the busier side, and mostly with them, says as much.
    stored = written >= 0.5 and (facts.memory or 0.0) >= max(facts.sm or 0.0, limits.PIPE_LOW)
    waits = stored or facts.stall(*WAITING) >= limits.STALL
    if facts.regime == "latency" and facts.stalls and not waits:
        return No(name=name, why=f"stores fill {store:.0f} of 32 bytes, but warps wait for {facts.top_stall}")
    why = f"stores fill {store:.0f} of the 32 bytes of a sector and are {written:.0%} of the sectors"
    return Hit(name=name, why=why, bound=1 - store / 32, clear=store <= 8,
               supports=("bytes_per_sector_store", "store_share"))  # fmt: skip


def atomics(facts: Facts) -> Answer:
    """Atomics and reductions as a large part of what passes L1, or their unit in L2 as the busiest one."""
    name = "mem.atomics"
    unit = facts.get("atomic_unit")
    facts.readings.asked.pop("atomic_unit", None)
    if facts.regime == "memory" and facts.tier == "atomics":
        share = facts.atomic_share()
        busy = facts.memory or 0.0
        return Hit(
            name=name,
            why=f"the unit that executes atomics in L2 is busy {unit or busy:.0f} %",
            bound=busy / 100,
            clear=busy >= limits.BUSY + limits.MARGIN,
            supports=("limiting_memory", "atomic_share" if share else "memory_sol"),
            sure=True,
        )
    if facts.regime == "memory" and facts.tier == "dram":
        return No(name=name, why="DRAM is the limit, and atomics end in L2")
    waits = facts.stall(*WAITING, "membar") >= limits.STALL / 2 or facts.top_stall in WAITING
    share = facts.atomic_share()
    if share is not None and share < limits.ATOMIC_SHARE and facts.regime == "latency":
        share = traffic.atomic_requests(facts.readings) or share
    if share is None:
        if not waits and sum(facts.stalls.values()) > 1.0 - limits.STALL:
            return No(name=name, why=f"warps wait for {facts.top_stall}, not for memory")
        return _atomics_unseen(facts)
    if share < limits.ATOMIC_SHARE:
        return No(name=name, why=f"atomics are {share:.0%} of what global memory is asked for")
    partly = not waits and sum(facts.stalls.values()) < 1.0 - limits.STALL
    if partly and facts.regime == "latency" and (unit or 0.0) < limits.STALL * 100:
        return Unknown(name=name, missing=("stalls",))
    if facts.stalls and not waits and (unit or 0.0) < limits.STALL * 100:
        return No(name=name, why=f"atomics {share:.0%}, but warps wait for {facts.top_stall}")
    return Hit(name=name, why=f"atomics are {share:.0%} of what global memory is asked for", bound=share,
               clear=share >= 0.5,
               supports=("atomic_share", "top_stall_share", "atomic_unit"))  # fmt: skip


def _atomics_unseen(facts: Facts) -> Answer:
    """Where atomics were not counted, as on a details page: L2 executes them, so a busier unit speaks against them."""
    name = "mem.atomics"
    loads = facts.stalls.get("long_scoreboard", 0.0) >= 0.6
    if facts.regime == "memory" and facts.tier == "l1":
        return No(name=name, why="L1 is busier than L2, where atomics are executed")
    if loads and facts.tier == "dram" and (facts.memory or 0.0) >= limits.PIPE_LOW:
        return No(name=name, why="warps wait for loads, and DRAM is busier than L2, where atomics are executed")
    missing = ("atomic_sectors", "reduction_sectors", "l2_sectors")
    return Unknown(name=name, missing=missing, unlikely=loads)


def remote(facts: Facts) -> Answer:
    """Data that lies in host memory or on another GPU (rule: 40 % of what L2 misses)."""
    name = "mem.remote"
    if facts.regime == "memory" and facts.tier == "remote":
        return Hit(name=name, why="the way to host memory is the busiest part of memory", bound=1.0, clear=True,
                   supports=("limiting_memory", "memory_sol"), sure=True)  # fmt: skip
    shares = traffic.remote(facts.readings)
    if shares is None:
        return No(name=name, why="apertures were not captured, and no part of the memory figure is that of host memory")
    of_misses, of_all = shares
    if of_misses < limits.REMOTE_SHARE or of_all < limits.REMOTE_TRAFFIC:
        return No(name=name, why=f"{of_misses:.0%} of what L2 misses is host or peer memory")
    if facts.stalls and facts.stall(*WAITING, "membar") < limits.STALL and facts.regime == "latency":
        return No(name=name, why=f"warps wait for {facts.top_stall}")
    return Hit(name=name, why=f"{of_misses:.0%} of what L2 misses is in host or peer memory", bound=of_misses,
               clear=of_misses >= limits.REMOTE_SHARE + 0.1, supports=("remote_share", "top_stall_share"))  # fmt: skip
