"""Edit families: for each class one change, the metric that must move, and what must not get worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One kind of edit."""

    id: str
    what: str
    role: str
    """Role whose number must move."""
    toward: str
    guard: str
    refute: str = "the duration does not fall by more than the benchmark's noise"


FAMILIES: Mapping[str, Family] = {
    "launch.block_partial_warp": Family(
        id="block-size", what="Make the block a multiple of 32 threads and map the work onto whole warps.",
        role="lanes", toward="32", guard="registers per thread",
    ),
    "launch.grid_small": Family(
        id="split-work", what="Make more independent blocks from the same work until every SM has one: split the "
        "reduction axis (split-K, stream-K), or take a smaller tile along the longest output axis.",
        role="waves", toward="1 or more", guard="bytes moved (a split adds partial results)",
    ),
    "launch.grid_small/floor": Family(
        id="fewer-launches", what="Give this work to a neighbouring kernel, or launch it by a CUDA graph or with "
        "programmatic dependent launch: its time is that of a launch, not of its blocks.",
        role="duration", toward="0 (no launch of its own)", guard="duration of the kernel that takes the work over",
    ),
    "launch.tail": Family(
        id="even-waves", what="Choose tile or grid so that the last wave is full, or let a persistent grid of one "
        "block an SM slot take tiles in turn.",
        role="waves", toward="a whole number", guard="registers per thread and achieved occupancy",
    ),
    "exec.imbalance": Family(
        id="even-work", what="Hand the work out in finer pieces: split the heaviest blocks, or let blocks draw the "
        "next piece from an atomic counter, heaviest first.",
        role="imbalance", toward="1", guard="bytes moved and instructions executed",
    ),
    "exec.divergence": Family(
        id="uniform-warps", what="Map the branch to whole warps: sort or group the work so that the 32 lanes of a "
        "warp take the same path, or use predicated arithmetic for the short side.",
        role="lanes", toward="32", guard="bytes used per sector (the new order must stay coalesced)",
    ),
    "mem.spill": Family(
        id="fewer-live-registers", what="Let fewer values live at once: shorten the unrolled body or the per-thread "
        "tile, or allow more registers per thread in `__launch_bounds__`, so that nothing is spilled.",
        role="spill_requests", toward="0", guard="duration (fewer blocks may fit an SM)",
    ),
    "mem.smem_conflict": Family(
        id="shared-layout", what="Change the shared-memory layout so that the 32 lanes hit 32 banks: pad the row "
        "pitch by one element, or XOR-swizzle the column by the row.",
        role="conflict_share", toward="0", guard="shared memory per block",
    ),
    "mem.uncoalesced": Family(
        id="coalesce", what="Reorder the index so that neighbouring lanes touch neighbouring addresses (structure of "
        "arrays, or a transpose through shared memory), and load 16 bytes per lane where alignment allows.",
        role="excess_share", toward="0", guard="shared-memory bank conflicts",
    ),
    "mem.uncoalesced/narrow": Family(
        id="coalesce", what="Reorder the index so that neighbouring lanes touch neighbouring addresses, or gather "
        "whole 32-byte sectors into shared memory first.",
        role="bytes_per_sector_load", toward="32", guard="shared-memory bank conflicts",
    ),
    "mem.partial_store": Family(
        id="pack-stores", what="Pack results in registers and store whole 32-byte sectors.",
        role="bytes_per_sector_store", toward="32", guard="registers per thread",
    ),
    "mem.atomics": Family(
        id="reduce-first", what="Reduce inside the warp, then inside the block, and issue one atomic a block.",
        role="atomic_share", toward="0", guard="time in block barriers",
    ),
    "mem.dram_bw": Family(
        id="fewer-bytes", what="Move fewer bytes through DRAM: fuse with the kernel that produces or consumes the "
        "data, keep what is read twice on chip, or store it in a narrower type that the contract allows.",
        role="dram_bytes", toward="the least bytes that the contract's shapes need",
        guard="correctness and DRAM % of peak",
        refute="the bytes moved stay the same: then the kernel is done unless the contract changes",
    ),
    "mem.dram_bw/minimum": Family(
        id="steady-dram", what="Keep DRAM busy from the first to the last microsecond: 16-byte loads or bulk copies, "
        "all issued before the first use, with a grid that ends evenly.",
        role="dram_sol", toward="85 %", guard="bytes moved",
    ),
    "mem.l2_bw": Family(
        id="reuse-above-l2", what="Reuse more above L2: larger tiles in shared memory, a block order that keeps "
        "neighbours together, or cluster multicast of operands that several blocks read.",
        role="l2_sol", toward="below 60 %", guard="achieved occupancy and shared memory per block",
    ),
    "mem.l1_lsu": Family(
        id="fewer-l1-accesses", what="Issue fewer load/store instructions per result: a register tile so that each "
        "loaded value is used several times, and wider loads.",
        role="lsu_wavefronts", toward="below 60 %", guard="registers per thread (no spills)",
    ),
    "mem.bytes_in_flight": Family(
        id="bytes-in-flight", what="Have each thread issue several independent 16-byte loads before it uses the "
        "first, or prefetch the next tile by asynchronous copies while this one is used.",
        role="dram_sol", toward="60 % or more", guard="registers per thread (no spills) and bytes moved",
    ),
    "lat.occupancy": Family(
        id="resource-cut", what="Cut the limiting resource so that several blocks fit an SM, and launch that many "
        "blocks: then waits of one block hide behind the work of another.",
        role="occupancy_theoretical", toward="the next step of the limiter",
        guard="bytes moved (smaller tiles reuse less)",
        refute="occupancy rises and the duration stays: latency was not the limit",
    ),
    "lat.dependency": Family(
        id="independent-work", what="Give each thread two or four independent accumulators or rows, so that an "
        "instruction does not wait for the one before it.",
        role="issue", toward="60 % or more", guard="registers per thread (no spills)",
    ),
    "lat.barrier": Family(
        id="fewer-barriers", what="Replace the block-wide step by a warp-wide one (shuffles), or do two pieces of work "
        "per barrier.",
        role="top_stall_share", toward="below 30 %", guard="instructions executed",
    ),
    "lat.membar": Family(
        id="narrow-fence", what="Narrow the fence's scope to the block, or move it out of the loop.",
        role="top_stall_share", toward="below 15 %", guard="correctness (the racing test)",
    ),
    "lat.warpgroup_skew": Family(
        id="more-stages", what="Add a pipeline stage between the copy and the matrix instructions (cut tile N if "
        "shared memory is full), so that operands are there when they are asked for.",
        role="tensor", toward="60 % or more", guard="shared memory per block",
    ),
    "lat.icache": Family(
        id="smaller-body", what="Unroll less, so that the hot loop fits the instruction cache.",
        role="top_stall_share", toward="below 20 %", guard="instructions executed",
    ),
    "lat.imc": Family(
        id="constants-close", what="Read the constants once into registers or shared memory before the loop.",
        role="top_stall_share", toward="below 15 %", guard="registers per thread",
    ),
    "exec.tensor_bound": Family(
        id="overlap-epilogue", what="Overlap what is not matrix work with matrix work: let two consumer warpgroups "
        "alternate, so that the softmax or epilogue of one runs under the matrix instructions of the other.",
        role="tensor", toward="80 % or more", guard="registers per thread (no spills) and shared memory per block",
    ),
    "exec.pipe_bound": Family(
        id="cheaper-mix", what="Execute fewer instructions per result on that pipe: packed or fused forms, address "
        "arithmetic out of the loop, a cheaper approximation where the tolerance allows.",
        role="instructions", toward="fewer", guard="correctness and the other pipes",
    ),
}  # fmt: skip


def find(name: str, *, detail: str = "") -> Family:
    """The family of a class; ``detail`` picks its variant. Pipes share one family."""
    base = name.split(":", 1)[0]
    return FAMILIES.get(f"{base}/{detail}") or FAMILIES[base]
