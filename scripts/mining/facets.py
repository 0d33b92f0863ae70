"""Dtype and family of a change, each with what says so; nothing said is unknown, never a default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mining import tokens

DTYPES: dict[str, str] = {
    "fp8": "fp8, float8, e4m3, e5m2, e4m3fn, e4m3x2, fp8e4nv, mxfp8, float8e4m3, fp8x4, fp8x2",
    "mxfp8": "mxfp8, mxf8, mxf8f6f4",
    "fp4": "fp4, nvfp4, mxfp4, e2m1, e2m1fn, e2m1x2, mxf4, nvf4",
    "nvfp4": "nvfp4, nvf4",
    "mxfp4": "mxfp4, mxf4",
    "int8": "int8, s8, i8",
    "int4": "w4a16, w4a8, awq, gptq, marlin, int4b, uint4b, s4, u4",
    "bf16": "bf16, bfloat16, bfloat162, nv bfloat16",
    "fp16": "fp16, float16, half, half2, f16",
    "tf32": "tf32, tfloat32",
    "fp64": "fp64, float64",
}
FAMILIES: dict[str, str] = {
    "gemm": "gemm, matmul, mm, gemv, bmm, linear, scaled mm, mma tensor, einsum",
    "grouped-gemm": "grouped gemm, group gemm, grouped mm, m grouped, k grouped, groupedgemm, ptr array, grouped",
    "attention": (
        "attention, attn, fmha, flash, fa2, fa3, fa4, mha, gqa, sdpa, flashattention, xqa, mqa, flashattn, msa, nsa"
    ),
    "mla": "mla, flashmla, flash mla, dsa, latent",
    "moe": (
        "moe, fused moe, expert, experts, topk gating, moe align, router, fusedmoe, routing, topk softmax, "
        "topk sigmoid, grouped topk"
    ),
    "norm": "norm, rmsnorm, layernorm, layer norm, rms norm, groupnorm, qknorm, group norm, add rmsnorm",
    "quant": (
        "quant, quantize, quantization, dequant, dequantize, fp8 quant, nvfp4, mxfp8, mxfp4, blockscaled, w4a16, "
        "w8a8, awq, gptq, marlin, fp4, fp8, int8, quantized"
    ),
    "sampling": "sampling, sampler, top p, topp, argmax, rejection, logits processor, logit bias, penalties",
    "scan-sort-reduce": (
        "scan, sort, radix, cumsum, histogram, merge sort, prefix sum, segmented reduce, segmented sort, "
        "device transform, lookback"
    ),
    "comm": (
        "allreduce, all reduce, nccl, nvshmem, custom ar, deepep, all2all, alltoall, multimem, comm, "
        "reduce scatter, allgather, all gather, symmetric memory, moe a2a, vmm, ep"
    ),
    "rope": "rope, rotary, mrope",
    "activation": "silu, gelu, swiglu, activation, relu, silu and mul, act and mul, geglu",
    "ssm-linear-attn": (
        "mamba, ssm, ssd, gdn, gated delta, kda, linear attn, linear attention, lightning, delta rule, fla, "
        "selective scan, causal conv1d, rwkv, gated deltanet, mamba2"
    ),
    "kv-cache": (
        "kv cache, kvcache, reshape and cache, append paged, cache kernels, kv buffer, page append, concat mla"
    ),
    "embedding-lora": "lora, embedding, sgmv, bgmv, punica",
    "conv": "conv, conv2d, conv3d, convolution, implicit gemm, fprop, dgrad, wgrad, conv1d, im2col",
}


NAMED_ONLY = {"attention": "prefill, decode"}
"""Words that say a family in a title or a path; a function may decode anything."""
ALONE = {"sampling": "topk, top k", "scan-sort-reduce": "reduce, reduction, reductions"}
"""Words that say a family only in a name that says no other one: a GEMM reduces, a router takes the top k."""
ALGORITHMS = {
    "scan-sort-reduce": "reduce, reduction, transform, partition, unique, for each, segmented, select, select if"
}
"""Words that say a family only in a library of such algorithms."""
LIBRARY = ("cub/", "thrust/", "libcudacxx/", "c/parallel/")
SIDE = frozenset({"quant", "kv-cache"})
"""What nearly every family may do besides."""
DTYPE_PHRASES = tokens.Phrases(DTYPES)
INT4_PHRASES = tokens.Phrases({"int4": "int4"})
"""In a title or a path the number format; in code a vector of four."""
EIGHT_BITS = tokens.Phrases({"int8": "w8a8"})
"""Eight bits of either kind: integers unless something says fp8."""
BYTE = re.compile(r"\bint8_t\s+\w+\s*[=;]")
FAMILY_PHRASES = tokens.Phrases(FAMILIES)
NAMED_PHRASES = tokens.Phrases(NAMED_ONLY)
ALONE_PHRASES = tokens.Phrases(ALONE)
ALGORITHM_PHRASES = tokens.Phrases(ALGORITHMS)
LINES_FOR_DTYPE = 2
"""One line may be a conversion or a comparison; two are code."""

Evidence = dict[str, dict[str, int]]


def dtypes_named(text: str) -> set[str]:
    """Number formats that a title or a path names."""
    pieces = tokens.parts(text)
    return DTYPE_PHRASES.find(pieces) | INT4_PHRASES.find(pieces)


def dtypes_in_line(line: str) -> set[str]:
    """Number formats that a line of code names; a small counter is none."""
    return DTYPE_PHRASES.find(tokens.parts(BYTE.sub(" ", line)))


def families_named(text: str, *, title: bool = False) -> set[str]:
    """Families that a title (no verb ``reduce`` counts there) or a path names."""
    pieces = tokens.parts(text)
    found = FAMILY_PHRASES.find(pieces) | NAMED_PHRASES.find(pieces)
    if title:
        alone = ALONE_PHRASES.find([piece for piece in pieces if piece != "reduce"])
        return found | (alone if not found - SIDE else alone - {"scan-sort-reduce"})
    name = text.rsplit("/", 1)[-1]
    return found | families_of(name)


def families_of(name: str) -> set[str]:
    """Families that the name of a kernel or of a file says."""
    pieces = tokens.parts(name)
    found = FAMILY_PHRASES.find(pieces)
    return found | (set() if found - SIDE else ALONE_PHRASES.find(pieces))


def in_library(path: str) -> bool:
    """Whether the path lies in a library of algorithms."""
    return path.startswith(LIBRARY)


class Tally:
    """Evidence of one change, counted by where it stands."""

    def __init__(self) -> None:
        self.seen: Evidence = {}

    def add(self, kind: str, values: Iterable[str], where: str) -> None:
        """Count each value once for one path, symbol, title or line."""
        for value in values:
            counts = self.seen.setdefault(f"{kind}:{value}", {})
            counts[where] = counts.get(where, 0) + 1

    def values(self, kind: str, lines: int) -> tuple[str, ...]:
        """Values with enough behind them: a path, a symbol or the title, or that many lines."""
        out = []
        for key, counts in self.seen.items():
            head, _, value = key.partition(":")
            enough = any(where != "lines" for where in counts) or counts.get("lines", 0) >= lines
            if head == kind and enough:
                out.append(value)
        return tuple(sorted(out))


def tally(
    *,
    paths: Iterable[str],
    kernels: Iterable[str],
    context: Iterable[str],
    lines: Iterable[str],
    named: Mapping[str, Iterable[str]],
    algorithms: bool = False,
) -> Tally:
    """Dtypes and families of a change. ``named`` is what the title says by kind; ``algorithms``: it says what means
    a family in a library of algorithms.

    Families come from paths, names of functions and title only: lines mention too much.
    """
    out = Tally()
    library = False
    for path in paths:
        inside = in_library(path)
        library = library or inside
        pieces = tokens.parts(path)
        families = families_named(path)
        if inside:
            families = families - {"attention"} | ALGORITHM_PHRASES.find(pieces)
        out.add("family", families, "paths")
        out.add("dtype", dtypes_named(path), "paths")
        out.add("eight", EIGHT_BITS.find(pieces), "paths")
    reduces = _functions(out, kernels, context, library=library)
    for kind, values in named.items():
        out.add(kind, values, "title")
    out.add("family", ALGORITHMS if library and algorithms else (), "title")
    for line in lines:
        out.add("dtype", dtypes_in_line(line), "lines")
    if reduces and not {*out.values("family", 1)} - SIDE:
        out.seen["family:scan-sort-reduce"] = {"symbols": reduces}
    _settle_eight(out)
    return out


def _functions(out: Tally, kernels: Iterable[str], context: Iterable[str], *, library: bool) -> int:
    """Names of functions; returns how many kernels only reduce, which says a family where nothing else says one."""
    reduces = 0
    for name, kernel in (*((name, True) for name in kernels), *((name, False) for name in context)):
        pieces = tokens.parts(name)
        plain = FAMILY_PHRASES.find(pieces) | (ALGORITHM_PHRASES.find(pieces) if library else set())
        alone = families_of(name) - plain if kernel else set()
        reduces += "scan-sort-reduce" in alone
        out.add("family", plain | (alone - {"scan-sort-reduce"}), "symbols")
        out.add("dtype", DTYPE_PHRASES.find(pieces), "symbols")
        out.add("eight", EIGHT_BITS.find(pieces), "symbols")
    return reduces


def _settle_eight(out: Tally) -> None:
    """``w8a8`` says int8 where nothing says fp8."""
    counts = out.seen.pop("eight:int8", {})
    if counts and "fp8" not in out.values("dtype", LINES_FOR_DTYPE):
        for where, count in counts.items():
            known = out.seen.setdefault("dtype:int8", {})
            known[where] = known.get(where, 0) + count
