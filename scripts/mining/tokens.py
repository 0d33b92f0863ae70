"""Mechanism tokens: whole parts of identifiers, never substrings, so that softmax holds no TMA.

A line is cut into parts at case changes, underscores, dots and blanks; a phrase of the table matches consecutive parts.
``SM90_TMA_LOAD``, ``tmaLoad`` and ``tma.load`` are the same three parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")
PIECE = re.compile(r"[a-z0-9]+|[^a-z0-9_.\s:-]+")
LONGEST = 600
"""Characters of a line that are looked at: tables and binary blobs are no mechanism."""

MECHANISMS: dict[str, str] = {
    "2cta": "2cta, cta group 2, two cta, 2sm, cta pair, cg2, use 2cta, cta group::2, 2ctas, two ctas",
    "allreduce": "allreduce, all reduce, lamport, reduce scatter, reducescatter, allgather, all gather, multimem",
    "atomics": (
        "atomic add, atomicadd, atomic max, atomic cas, atomiccas, atomic min, atom add, red add, red global, "
        "red async, atomicmax, atomicmin, atomicexch, atomic ref, red release, atom"
    ),
    "autotune": "autotune, autotuner, autotuning, autotuned, auto tune, tactic, tactics",
    "bank-conflict": "bank conflict, bank conflicts, bankconflict, conflict free",
    "block-reduce": "block reduce, blockreduce, block reduction, cta reduce",
    "blockscale": (
        "blockscale, block scale, blockscaled, block scaled, blockwise, groupwise, scale vec, sf vec, "
        "block scaling, scale factor, scale factors, sfa, sfb, group scale"
    ),
    "clc": "clc, cluster launch control, clusterlaunchcontrol, try cancel",
    "cluster": (
        "cluster shape, cluster dims, cluster size, cluster rank, clusterdim, cluster arrive, cluster wait, "
        "cluster sync, cluster dim, this cluster, cluster layout, block rank in cluster, cluster m, cluster n, "
        "clusters"
    ),
    "cp.async": (
        "cp async, cpasync, memcpy async, pipeline commit, async copy, cp async wait group, load async, "
        "pred load 128b, cp async fence"
    ),
    "cuda-graph": "cuda graph, cudagraph, cudagraphs, cuda graphs, graph capture, graph replay",
    "dequant-lut": "dequant, dequantize, lut, lop3, prmt, lookup table, dequantization",
    "double-buffer": "double buffer, double buffering, doublebuffer, double buffered, ping pong buffer, multi buffer",
    "dsmem": "dsmem, shared cluster, map shared rank, mapa, distributed shared, shared::cluster, distributed smem",
    "epilogue-fusion": "epilogue, epilog, evt, fused epilogue, epi",
    "fast-divmod": "fast divmod, fastdivmod, fast div, uint fastdiv, fastdiv, divmod, int fastdiv",
    "fast-math": (
        "exp2, exp2f, ex2, use fast math, rsqrt approx, rcp approx, tanh approx, fdividef, expf, fast math, "
        "fastmath, exp2 approx, ffast math, ex2 approx, rsqrtf, approx ftz"
    ),
    "fp4": "fp4, nvfp4, mxfp4, e2m1, e2m1x2, float4 e2m1fn, e2m1fn, nvf4, mxf4, mxf4nvf4, float4 e2m1fn x2",
    "fp8": (
        "fp8, e4m3, e5m2, float8, e4m3fn, e4m3x2, e5m2x2, fp8e4m3, float8e4m3, fp8x4, fp8x2, fp8e4nv, f8f6f4, "
        "e4m3fnuz, f8, f8e4m3fn"
    ),
    "grouped": (
        "grouped gemm, groupgemm, group gemm, m grouped, k grouped, grouped mm, ptr array, groupedgemm, "
        "grouped layout, num groups, masked gemm, grouped contiguous"
    ),
    "int4": "w4a16, w4a8, awq, gptq, marlin, int4b, uint4b, s4, u4, uint4b8, int4fp8, machete",
    "int8": "int8, s8, u8, w8a8, imma, dp4a, i8",
    "l2-prefetch": "prefetch, l2 prefetch, prefetch l2, prefetch tensormap, prefetch tma descriptor",
    "launch_bounds": (
        "launch bounds, launchbounds, maxnreg, min blocks per sm, maxntid, min blocks per multiprocessor"
    ),
    "ldg-cache": (
        "ldg, ld global nc, l1 no allocate, evict first, evict last, cache hint, l2 cache hint, ldcs, stcs, "
        "ldcg, cache modifier, eviction policy, ld nc, no allocate, createpolicy, stwt, ldlu, evict normal"
    ),
    "ldmatrix": "ldmatrix, ldsm, ldmatrix x4, ld matrix",
    "mbarrier": (
        "mbarrier, cluster transaction barrier, transaction barrier, mbar, clusterbarrier, cluster barrier, "
        "expect tx, arrive and expect tx, transaction bytes, full barrier, empty barrier"
    ),
    "mma-sync": "mma sync, mma m16n8k16, mma m16n8k8, m16n8k16, m16n8k32, m16n8k8, wmma mma, mma m16n8k32",
    "multicast": "multicast, tma multicast, mcast",
    "mxfp8": "mxfp8, ue8m0, e8m0, mxf8, mxf8f6f4, e8m0fnu",
    "num_stages": (
        "num stages, stages, stage count, k stages, nstages, stagecount, num pipeline stages, kstages, stage count auto"
    ),
    "num_warps": "num warps, warps per block, nwarps, num consumer warps, warps per cta, num threads, knwarps",
    "nvrtc-jit": "nvrtc, jit compile, nvcc flags, cubin, nvjitlink",
    "occupancy": (
        "occupancy, blocks per sm, max active blocks, sm count, multiprocessor count, multiprocessorcount, "
        "multi processor count, num sms, ctas per sm, resident blocks, sm margin, num sm"
    ),
    "packed-math": (
        "half2, bfloat162, hfma2, hadd2, hmul2, fma f32x2, f32x2, fma rn f32x2, bf162, float22bfloat162, "
        "ffma2, float2bfloat162, floats2bfloat162, cvt rn satfinite, add f32x2, mul f32x2, fmul2, fadd2"
    ),
    "paged": (
        "paged, page table, pagetable, block table, block tables, page size, page indices, kv indptr, page idx, "
        "paged kv, blocktable"
    ),
    "pdl": (
        "pdl, griddepcontrol, programmatic dependent launch, programmatic stream serialization, "
        "cuda grid dependency synchronize, grid dependency synchronize, trigger programmatic launch completion, "
        "launch dependents, launch with pdl, griddepcontrol wait, grid dependency control, gdc wait, gdc launch, "
        "programmatic launch, use pdl, enable pdl, launch pdl, grid dependent"
    ),
    "persistent": "persistent, ispersistent, persistent kernel",
    "pingpong": "pingpong, ping pong",
    "pipeline": (
        "pipeline, pipelined, pipelining, software pipeline, pipeline state, num stages pipelined, "
        "producer acquire, consumer wait, consumer release, producer commit, pipeliner, pipelines"
    ),
    "ptx-asm": "asm volatile, inline asm, inline ptx, inline asm elementwise, ptx, asm",
    "radix": "radix, radix topk, radix sort, radix select, radixsort, radix bits",
    "registers": (
        "register pressure, maxrregcount, num regs, register usage, warpgroup reg alloc, reg alloc, reg dealloc, "
        "spill, spills, register spill, spilling, max registers, regs per thread, register allocation"
    ),
    "reuse-broadcast": "broadcast, data reuse, gqa packing, pack gqa, packgqa, shfl sync broadcast",
    "sass-sched": (
        "sched barrier, sched group barrier, iglp opt, nanosleep, interleave, interleaved, warp scheduler, "
        "instruction scheduling, sched, warpgroup fence operand"
    ),
    "scan": (
        "inclusive scan, exclusive scan, cumsum, prefix sum, decoupled lookback, lookback, inclusive sum, "
        "exclusive sum, scan, associative scan, prefixsum, block scan, warp scan"
    ),
    "setmaxnreg": (
        "setmaxnreg, warpgroup reg alloc, warpgroup reg dealloc, setmaxregister, setmaxnreg inc, setmaxnreg dec, "
        "set max nreg, setmaxregister increase, setmaxregister decrease"
    ),
    "shuffle": (
        "shfl, shfl sync, shuffle, warp reduce, shfl xor sync, warpreduce, shfl down sync, shfl up sync, "
        "shfl bfly, shuffle sync bfly, redux sync, warp reduce sum, shfl xor, warp reduce max, warp shuffle, "
        "allreduce warp, quad reduce"
    ),
    "smem": (
        "smem, shared memory, extern shared, sharedmem, shared storage, sharedstorage, alloc shared, shared, "
        "smem layout, shmem, allocate smem"
    ),
    "sort": "sort, argsort, merge sort, bitonic, sorted, sorting, block sort",
    "split-k": "split k, splitk, slice k, slicek, parallel k, k splits, split k slices, ksplit, reduction mode",
    "split-kv": (
        "split kv, splitkv, num splits, flash decoding, flashdecoding, kv splits, num kv splits, nsplits, "
        "kv split, max num splits, partition size, combine kernel, lse accum, kv chunk size"
    ),
    "stmatrix": "stmatrix, stsm, st matrix",
    "stream-k": "stream k, streamk",
    "swap-ab": "swap ab, swapab, swap a b, swapped ab, transpose ab, swap a and b, swap operands",
    "swizzle": "swizzle, swizzled, swizzling, swizzle 128b, swizzle 64b, swizzle mode",
    "tcgen05": "tcgen05, umma, utcmma, tcgen5, tc gen5 mma, tcgen5mma, tc gen5, utccp, tcgen05 mma",
    "tile-scheduler": (
        "tile scheduler, tilescheduler, rasterization, raster order, rasterorder, group size m, group m, "
        "supergroup, work tile, tile order, threadblock swizzle, tilesched, get next work, work tile info"
    ),
    "tma": (
        "tma, tensor map, tensormap, cp async bulk, bulk copy, cp async bulk tensor, cutensormap, cu tensor map, "
        "bulk tensor, tma load, tma store, utma, tensormaps, tensor descriptor, tma desc, "
        "make tensor descriptor, cp reduce async bulk"
    ),
    "tmem": "tmem, tensor memory, tensormemory, tcgen05 ld, tcgen05 alloc, tmem alloc",
    "unroll": "unroll, unrolled, static range, pragma unroll, range constexpr, unrolling, loop unroll factor",
    "vectorized": (
        "float4, int4, uint4, vec t, vec size, vectorized, vectorize, vectorization, aligned vector, "
        "aligned array, alignedvector, ld global v4, v4 f32, v4 b32, v8 f32, v8 b32, float2, uint2, int2, 128b, "
        "256b, vec cast, longlong4, uint128, vectorised, copy vec, vec load, vec width, alignedarray, v4 u32, "
        "v2 f32, vec"
    ),
    "warp-specialization": (
        "warp specialized, warpspecialized, warp specialize, warp specialization, warpspecialization, "
        "producer warp, consumer warp, warp role, warp group role, load warp, mma warp, producer warpgroup, "
        "consumer warpgroup, warp group idx, warpspecialize, epilogue warp, softmax warp, warp idx, producer, "
        "ws, async task"
    ),
    "wgmma": (
        "wgmma, gmma, warpgroup mma, warp group mma, warp group dot, warpgroup arrive, warpgroup wait, "
        "warpgroup commit batch, wgmma wait group, warpgroup commit"
    ),
}
LAUNCH = frozenset(
    {
        "num_warps",
        "num_stages",
        "autotune",
        "split-k",
        "split-kv",
        "swap-ab",
        "pdl",
        "stream-k",
        "tma",
        "2cta",
        "cluster",
        "persistent",
        "clc",
    }
)
"""Mechanisms that host code chooses: they count outside kernel spans too, in a file that holds kernels."""


def parts(text: str) -> list[str]:
    """Lower-case parts in order; punctuation that ends an identifier stays, so that no phrase reaches across it."""
    return PIECE.findall(CAMEL.sub("_", text[:LONGEST]).lower())


class Phrases:
    """A table of names, each with phrases of consecutive parts, looked up in one pass."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self.names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.longest: dict[str, int] = {}
        for name, listed in table.items():
            for key in {tuple(parts(phrase)) for phrase in listed.split(",")}:
                self.names[key] = (*self.names.get(key, ()), name)
                self.longest[key[0]] = max(self.longest.get(key[0], 0), len(key))

    def find(self, pieces: list[str]) -> set[str]:
        """Names of which some phrase stands among the parts."""
        found: set[str] = set()
        for at, piece in enumerate(pieces):
            for length in range(1, self.longest.get(piece, 0) + 1):
                found.update(self.names.get(tuple(pieces[at : at + length]), ()))
        return found


TABLE = Phrases(MECHANISMS)


def mechanisms(text: str) -> set[str]:
    """Mechanisms that one line or title names."""
    return TABLE.find(parts(text))


def count(lines: Iterable[str]) -> dict[str, int]:
    """Mechanism -> lines that name it; most lines first, then by name."""
    totals: dict[str, int] = {}
    for line in lines:
        for name in mechanisms(line):
            totals[name] = totals.get(name, 0) + 1
    return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))
