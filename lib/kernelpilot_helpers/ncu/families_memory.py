"""Edit families of the launch and of memory."""

from __future__ import annotations

from collections.abc import Mapping

from kernelpilot_helpers.ncu.family import Family

MEMORY: Mapping[str, Family] = {
    "launch.block_partial_warp": Family(
        id="block-size",
        what="Make the block a multiple of 32 threads (128 or 256 is a good start) and map the work onto whole warps.",
        role="lanes",
        toward="32",
        guard="registers per thread",
        words="block size warps",
    ),
    "launch.grid_small": Family(
        id="split-work",
        what="Make more independent blocks from the same work until every SM has one: split the reduction axis "
        "(split-K, stream-K), or take a smaller tile along the longest output axis.",
        role="waves",
        toward="1 or more",
        guard="bytes moved (a split adds partial results)",
        risk=2,
        words="split-k small grid",
    ),
    "launch.grid_small/gemm": Family(
        id="split-work",
        what="There are fewer output tiles than SMs: split K over several blocks (split-K or stream-K with a "
        "reduction of the partial tiles), or take a smaller tile N; for M of at most 32 swap A and B so that "
        "the long side fills the tile.",
        role="waves",
        toward="1 or more",
        guard="bytes moved (partial tiles) and the error of the changed sum order",
        risk=2,
        words="split-k stream-k small m decode gemm",
    ),
    "launch.grid_small/attention": Family(
        id="split-work",
        what="Split the keys and values of a sequence over several blocks and combine their partial results with "
        "their running maxima (flash decoding), so that every SM has work.",
        role="waves",
        toward="1 or more",
        guard="the error of the combined softmax",
        risk=2,
        words="flash decoding split-kv attention",
    ),
    "launch.grid_small/reduction": Family(
        id="split-work",
        what="Let several blocks share a row: each reduces a slice, and a second small pass or the last block to "
        "finish combines the slices.",
        role="waves",
        toward="1 or more",
        guard="the error of the changed sum order",
        risk=2,
        words="split reduction two pass",
    ),
    "launch.grid_small/floor": Family(
        id="fewer-launches",
        what="Give this work to a neighbouring kernel, or launch it by a CUDA graph or with programmatic dependent"
        " launch: its time is that of a launch, not of its blocks.",
        role="duration",
        toward="0 (no launch of its own)",
        guard="duration of the kernel that takes the work over",
        words="kernel fusion cuda graph programmatic dependent launch",
    ),
    "launch.many_small": Family(
        id="fewer-launches",
        what="Launch less often: fuse this kernel with its neighbours, record the sequence in a CUDA graph, or "
        "chain the launches by programmatic dependent launch so that each starts while the one before it "
        "ends.",
        role="duration",
        toward="one launch in the time of several",
        guard="duration of the fused kernel",
        words="kernel fusion cuda graph programmatic dependent launch",
    ),
    "launch.tail": Family(
        id="even-waves",
        what="Choose tile or grid so that the last wave is full, or let a persistent grid of one block an SM slot "
        "take tiles in turn.",
        role="imbalance",
        toward="1",
        guard="registers per thread and achieved occupancy",
        words="persistent kernel wave quantization",
    ),
    "launch.tail/gemm": Family(
        id="even-waves",
        what="Share the last tiles among all SMs: a persistent stream-K schedule, or a tile shape whose count is a"
        " multiple of the SMs.",
        role="imbalance",
        toward="1",
        guard="bytes moved (partial tiles)",
        risk=2,
        words="stream-k wave quantization gemm",
    ),
    "exec.imbalance": Family(
        id="even-work",
        what="Hand the work out in finer pieces: split the heaviest blocks, or let blocks draw the next piece from"
        " an atomic counter, heaviest first.",
        role="imbalance",
        toward="1",
        guard="bytes moved and instructions executed",
        words="load imbalance dynamic scheduling",
    ),
    "exec.imbalance/attention": Family(
        id="even-work",
        what="Order the work by its length: schedule the longest rows of the causal or ragged mask first, pair a "
        "long with a short one, or draw tiles from a counter on a persistent grid.",
        role="imbalance",
        toward="1",
        guard="bytes moved",
        words="causal attention scheduling longest first",
    ),
    "mem.spill": Family(
        id="fewer-live-registers",
        what="Let fewer values live at once: shorten the unrolled body or the per-thread tile, or allow more "
        "registers per thread in `__launch_bounds__`, so that nothing is spilled.",
        role="spill_requests",
        toward="0",
        guard="duration (fewer blocks may fit an SM)",
        words="register spill",
    ),
    "mem.spill/specialised": Family(
        id="fewer-live-registers",
        what="Give the consumers the producers' registers (setmaxnreg down in the producer warp, up in the "
        "consumers), or cut the accumulator tile that one warpgroup holds.",
        role="spill_requests",
        toward="0",
        guard="tensor pipe and shared memory per block",
        words="setmaxnreg register spill warp specialization",
    ),
    "mem.smem_conflict": Family(
        id="shared-layout",
        what="Change the shared-memory layout so that the 32 lanes hit 32 banks: pad the row pitch by one element,"
        " or XOR-swizzle the column by the row.",
        role="conflict_share",
        toward="0",
        guard="shared memory per block",
        words="bank conflicts swizzle padding",
    ),
    "mem.smem_conflict/gemm": Family(
        id="shared-layout",
        what="Write and read the tile through one XOR swizzle (the layout that ldmatrix, WGMMA or TMA expect) "
        "instead of row-major rows.",
        role="conflict_share",
        toward="0",
        guard="shared memory per block",
        words="swizzle ldmatrix bank conflicts gemm",
    ),
    "mem.uncoalesced": Family(
        id="coalesce",
        what="Reorder the index so that neighbouring lanes touch neighbouring addresses (structure of arrays, or a"
        " transpose through shared memory), and load 16 bytes per lane where alignment allows.",
        role="excess_share",
        toward="0",
        guard="shared-memory bank conflicts",
        words="coalescing vectorized load",
    ),
    "mem.uncoalesced/narrow": Family(
        id="coalesce",
        what="Reorder the index so that neighbouring lanes touch neighbouring addresses, or gather whole 32-byte "
        "sectors into shared memory first.",
        role="bytes_per_sector_load",
        toward="32",
        guard="shared-memory bank conflicts",
        words="coalescing vectorized load",
    ),
    "mem.partial_store": Family(
        id="pack-stores",
        what="Pack neighbouring results in registers, so that a lane stores 4 to 16 bytes and a warp whole 32-byte "
        "sectors; where each lane owns a far row, exchange through shared memory first.",
        role="bytes_per_sector_store",
        toward="32",
        guard="registers per thread",
        words="vectorized store packing",
    ),
    "mem.atomics": Family(
        id="reduce-first",
        what="Reduce inside the warp (shuffles, redux), then inside the block, and issue one atomic a block; counters "
        "and histograms get a private copy a block in shared memory, added up at its end.",
        role="atomic_share",
        toward="0",
        guard="time in block barriers",
        risk=2,
        words="atomic reduction warp shuffle",
    ),
    "mem.remote": Family(
        id="place-near",
        what="Put the data that this kernel reads into this GPU's own memory before it starts (prefetch of managed"
        " memory, a copy on another stream, or pinned reads staged through device memory).",
        role="remote_share",
        toward="0",
        guard="time of the copy",
        words="prefetch managed memory peer access",
    ),
    "mem.dram_bw": Family(
        id="fewer-bytes",
        what="Move fewer bytes through DRAM: fuse with the kernel that produces or consumes the data, keep what is"
        " read twice on chip, or store it in a narrower type that the contract allows.",
        role="dram_bytes",
        toward="the least bytes that the contract's shapes need",
        guard="correctness and DRAM % of peak",
        refute="the bytes moved stay the same: then the kernel is done unless the contract changes",
        risk=2,
        words="kernel fusion memory bandwidth",
    ),
    "mem.dram_bw/minimum": Family(
        id="steady-dram",
        what="Keep DRAM busy from the first to the last microsecond: 16-byte loads or bulk copies, all issued "
        "before the first use, with a grid that ends evenly.",
        role="dram_sol",
        toward="85 %",
        guard="bytes moved",
        words="memory bandwidth vectorized load prefetch",
    ),
    "mem.l2_bw": Family(
        id="reuse-above-l2",
        what="Reuse more above L2: larger tiles in shared memory, or a block order that keeps neighbours together.",
        role="l2_sol",
        toward="below 60 %",
        guard="achieved occupancy and shared memory per block",
        words="l2 reuse tile rasterization",
    ),
    "mem.l2_bw/gemm": Family(
        id="reuse-above-l2",
        what="Let a cluster of blocks share its operands: cluster of 2 along the side whose operand repeats, with "
        "TMA multicast, or a rasterised tile order that keeps one panel in L2.",
        role="l2_sol",
        toward="below 60 %",
        guard="tensor pipe and shared memory per block",
        words="tma multicast cluster gemm rasterization",
    ),
    "mem.l1_lsu": Family(
        id="fewer-l1-accesses",
        what="Issue fewer load/store instructions per result: a register tile so that each loaded value is used "
        "several times, and wider loads.",
        role="lsu_wavefronts",
        toward="below 60 %",
        guard="registers per thread (no spills)",
        words="register tiling vectorized load shared memory",
    ),
    "mem.bytes_in_flight": Family(
        id="bytes-in-flight",
        what="Have each thread issue several independent 16-byte loads before it uses the first, or prefetch the "
        "next tile by asynchronous copies while this one is used.",
        role="dram_sol",
        toward="60 % or more",
        guard="registers per thread (no spills) and bytes moved",
        words="prefetch memory level parallelism vectorized load",
    ),
    "mem.bytes_in_flight/async": Family(
        id="bytes-in-flight",
        what="The copies are asynchronous already: keep one more stage in flight (cut the tile where shared memory"
        " is full), so that more bytes are asked for before the first is used.",
        role="dram_sol",
        toward="60 % or more",
        guard="shared memory per block and blocks per SM",
        words="cp.async pipeline stages prefetch",
    ),
    "mem.bytes_in_flight/short": Family(
        id="bytes-in-flight",
        what="Below 10 us every dependent trip to DRAM counts: load all that is needed at once at the start, drop "
        "loads whose address depends on another load, and start under the kernel before it by programmatic "
        "dependent launch.",
        role="top_stall_share",
        toward="less",
        guard="registers per thread (no spills)",
        words="programmatic dependent launch latency decode",
    ),
    "mem.bytes_in_flight/gather": Family(
        id="bytes-in-flight",
        what="Let each warp fetch several rows at once: read the next indices early, and issue 16-byte loads of "
        "all rows before the first is stored.",
        role="dram_sol",
        toward="60 % or more",
        guard="registers per thread (no spills)",
        words="gather embedding vectorized load",
    ),
}
