"""What a launch's memory traffic is made of: shares that are waste, by kind."""

from __future__ import annotations

from kernelpilot_helpers.ncu import said
from kernelpilot_helpers.ncu.metrics import Readings


def conflicts(readings: Readings) -> float | None:
    """Share of shared-memory wavefronts beyond the ideal, or of conflicts where the ideal was not captured."""
    whole, ideal = readings.get("shared_wavefronts"), readings.get("shared_wavefronts_ideal")
    if whole is not None and ideal is not None:
        name = "1 - memory_l1_wavefronts_shared_ideal / memory_l1_wavefronts_shared"
        return readings.share("conflict_share", whole - ideal, whole, name) if whole else 0.0
    whole, part = readings.get("shared_wavefronts_lsu"), readings.get("shared_conflicts")
    if whole is not None and part is not None:
        # The counter also counts replays that are no conflicts; the ideal above does not.
        name = "l1tex__data_bank_conflicts / wavefronts of shared memory"
        return 0.0 if whole == 0 else readings.share("conflict_share", part, whole, name)
    return said.keep(readings, "conflict_share", said.shared_excess(readings.launch))


def excess(readings: Readings) -> float | None:
    """Share of the sectors of global accesses beyond the ideal; 0 where there are no such accesses."""
    whole, ideal = readings.get("global_sectors"), readings.get("global_sectors_ideal")
    if whole is None or ideal is None:
        return said.keep(readings, "excess_share", said.global_excess(readings.launch))
    name = "1 - ideal / actual sectors of global accesses (memory_l2_theoretical_sectors_global)"
    return 0.0 if whole == 0 else readings.share("excess_share", whole - ideal, whole, name)


def store_bytes(readings: Readings) -> float | None:
    """Bytes that a store fills of each sector; where nearly all sectors are stores, the excess says it too."""
    told = readings.get("bytes_per_sector_store")
    part = stores(readings)
    if told is not None or part is None or part < 0.8:
        return told
    share = excess(readings)
    if share is None:
        return None
    readings.asked.pop("bytes_per_sector_store", None)
    return readings.keep("bytes_per_sector_store", "32 x ideal / actual sectors, nearly all of stores",
                         32.0 * (1.0 - share), "")  # fmt: skip


def stores(readings: Readings) -> float | None:
    """Share of stores in the sectors of global accesses."""
    part, loads = readings.get("global_store_sectors"), readings.get("global_load_sectors")
    if part is None or loads is None:
        return None
    name = "global store sectors / global sectors of l1tex__t_sectors_pipe_lsu"
    return 0.0 if part == 0 else readings.share("store_share", part, part + loads, name)


def local(readings: Readings) -> float | None:
    """Local-memory sectors as share of what passes L1, bulk copies included where L2 shows them."""
    part = readings.total("local_load_sectors", "local_store_sectors")
    others = readings.total("global_load_sectors", "global_store_sectors")
    if part is None or others is None:
        return None
    whole = max(part + others, readings.get("l2_sectors") or 0.0)
    name = "local sectors / (local + global sectors of l1tex__t_sectors_pipe_lsu)"
    return 0.0 if part == 0 else readings.share("local_share", part, whole, name)


def spill_instructions(readings: Readings) -> float | None:
    """Spill loads and stores as share of the executed instructions."""
    part, whole = readings.get("spill_requests"), readings.get("instructions")
    name = "derived__local_spilling_requests / smsp__inst_executed.sum"
    return 0.0 if part == 0 else readings.share("spill_instruction_share", part, whole, name)


def atomics(readings: Readings) -> float | None:
    """Sectors of global atomics and reductions as share of what L2 is asked for."""
    used = readings.total("atomic_sectors", "reduction_sectors")
    if used is None or used == 0:
        return used
    return readings.share("atomic_share", used, readings.get("l2_sectors"), "atomics / L2 sectors asked by L1")


def atomic_requests(readings: Readings) -> float | None:
    """Requests of global atomics and reductions as share of all global requests: one to a hot address is one sector."""
    used = readings.total("atomic_requests", "reduction_requests")
    others = readings.total("global_load_requests", "global_store_requests")
    for role in ("atomic_requests", "reduction_requests", "global_load_requests", "global_store_requests"):
        readings.asked.pop(role, None)
    if used is None or others is None or used == 0:
        return used if others is not None else None
    return readings.share("atomic_share", used, used + others, "atomics / requests of global memory in L1")


def remote(readings: Readings) -> tuple[float, float] | None:
    """(share of L2 misses, share of L2 sectors) that go to host or peer memory; None where apertures are missing."""
    part = readings.total("sysmem_misses", "peer_misses")
    misses, whole = readings.get("l2_misses"), readings.get("l2_sectors")
    if part is None or misses is None or whole is None:
        return None
    if part == 0 or misses == 0 or whole == 0:
        return 0.0, 0.0
    name = "L2 misses to host and peer memory / all L2 misses"
    readings.share("remote_share", part, misses, name)
    return min(1.0, part / misses), part / whole


def stream(readings: Readings) -> float | None:
    """DRAM bytes over the bytes of the sectors that SMs ask for; reads alone where they say more: 1 is no reuse.

    What a kernel writes last is still in L2 when it ends: writes may fall short, reads may not.
    """
    loads, stores = readings.get("global_load_sectors"), readings.get("global_store_sectors")
    read, written = readings.get("dram_read"), readings.get("dram_write")
    if loads is None or stores is None or read is None or written is None or loads + stores == 0:
        return None
    of_reads = read / (32 * loads) if loads else 1.0
    of_writes = min(1.0, written / (32 * stores) + 0.2) if stores else 1.0
    share = loads / (loads + stores)
    by_reads = share > 0.25 and abs(of_reads - 1) > abs(of_writes - 1)
    value = of_reads if by_reads else of_writes
    return readings.keep("stream", "DRAM bytes / bytes of the sectors that SMs ask for", value, "")


def dram(readings: Readings) -> float | None:
    """Bytes read from and written to DRAM."""
    read, written = readings.get("dram_read"), readings.get("dram_write")
    if read is not None and written is not None:
        name = "dram__bytes_read.sum + dram__bytes_write.sum"
        return readings.keep("dram_bytes", name, read + written, "byte")
    rate, duration = readings.get("dram_rate"), readings.get("duration")
    if rate is None or duration is None:
        return None
    return readings.keep("dram_bytes", "dram__bytes.sum.per_second x duration", rate * duration / 1e9, "byte")
