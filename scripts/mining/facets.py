"""Architecture, dtype and family of a change, each with what says so; nothing said is unknown, never a default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mining import tokens

ARCH = re.compile(
    r"(?<![a-z0-9])(?:sm|compute|arch::sm|cuda_arch_?|smx?)_?(70|75|80|86|89|90|100|101|103|110|120|121)[af]?(?![0-9])"
)
CUDA_ARCH = re.compile(r"__cuda_arch__?\s*(?:>=|==|<)\s*(\d{3,4})")
ARCH_NAMES = {
    "sm70": "volta",
    "sm75": "turing",
    "sm80": "ampere a100",
    "sm89": "ada l40 l40s 4090",
    "sm90": "hopper h100 h200 h20 h800",
    "sm100": "blackwell b200 gb200",
    "sm103": "b300 gb300",
    "sm110": "thor",
    "sm120": "5090",
    "sm121": "gb10 spark",
}
ARCH_WORDS = {name: arch for arch, names in ARCH_NAMES.items() for name in names.split()}
DTYPES: dict[str, str] = {
    "fp8": "fp8, float8, e4m3, e5m2, e4m3fn, e4m3x2, fp8e4nv, mxfp8, float8e4m3, fp8x4, fp8x2",
    "mxfp8": "mxfp8, mxf8, mxf8f6f4",
    "fp4": "fp4, nvfp4, mxfp4, e2m1, e2m1fn, e2m1x2, mxf4, nvf4",
    "nvfp4": "nvfp4, nvf4",
    "mxfp4": "mxfp4, mxf4",
    "int8": "int8, s8, w8a8, i8",
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
        "attention, attn, fmha, flash, fa2, fa3, fa4, mha, gqa, sdpa, flashattention, xqa, mqa, flashattn, "
        "prefill, decode"
    ),
    "mla": "mla, flashmla, flash mla, dsa, latent",
    "moe": "moe, fused moe, expert, experts, topk gating, moe align, router, fusedmoe, routing",
    "norm": "norm, rmsnorm, layernorm, layer norm, rms norm, groupnorm, qknorm, group norm, add rmsnorm",
    "quant": (
        "quant, quantize, quantization, dequant, dequantize, fp8 quant, nvfp4, mxfp8, mxfp4, blockscaled, w4a16, "
        "w8a8, awq, gptq, marlin, fp4, fp8, int8, quantized"
    ),
    "sampling": "sampling, sampler, topk, top k, top p, topp, argmax, rejection, logits",
    "scan-sort-reduce": (
        "scan, sort, radix, reduce, reduction, cumsum, histogram, segmented, select if, partition, unique, "
        "merge sort, prefix sum, segmented reduce, for each, transform, device transform, lookback"
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


DTYPE_PHRASES = tokens.Phrases(DTYPES)
FAMILY_PHRASES = tokens.Phrases(FAMILIES)
LINES_FOR_ARCH = 2
LINES_FOR_DTYPE = 2
"""One line may be a comparison with another architecture or a comment; two are code."""

Evidence = dict[str, dict[str, int]]


def archs_in(text: str) -> set[str]:
    """Architectures that a path, a title or a line names."""
    low = text.lower()
    found = {f"sm{number}" for number in ARCH.findall(low)}
    for number in CUDA_ARCH.findall(low):
        found.add(f"sm{int(number) // 10}")
    return found


def archs_named(text: str) -> set[str]:
    """The same, plus the names people give them: for titles and paths, not for code."""
    return archs_in(text) | {ARCH_WORDS[part] for part in tokens.parts(text) if part in ARCH_WORDS}


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
        return tuple(sorted(out, key=lambda value: (len(value), value) if kind == "arch" else (0, value)))


def tally(
    *, paths: Iterable[str], symbols: Iterable[str], lines: Iterable[str], named: Mapping[str, Iterable[str]]
) -> Tally:
    """All evidence of a change. ``named`` is what the title says by kind: arch, dtype, family.

    Families come from paths, symbols and title only: lines mention too much.
    """
    out = Tally()
    for where, texts in (("paths", paths), ("symbols", symbols)):
        for text in texts:
            pieces = tokens.parts(text)
            out.add("arch", archs_named(text), where)
            out.add("dtype", DTYPE_PHRASES.find(pieces), where)
            out.add("family", FAMILY_PHRASES.find(pieces), where)
    for kind, values in named.items():
        out.add(kind, values, "title")
    for line in lines:
        out.add("arch", archs_in(line), "lines")
        out.add("dtype", DTYPE_PHRASES.find(tokens.parts(line)), "lines")
    return out
