"""Which records belong to which topic page: names of the vocabulary here, pages below routing/topics there."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from knowledge_build.tree import SELECTED, Row

AGAIN = 0.9
"""Worth of one more record of a repository that the list has already: no repository fills a page."""
TIER = {"A": 1.0, "B": 0.9, "C": 0.75, "D": 0.6, "E": 0.55}
WEIGHT = {"title": 3.0, "paths": 2.0, "symbols": 2.0, "lines": 1.0}
"""What a naming in a title word, a path, a symbol or an added line counts, times the root of how many do."""
READ = 1.6
"""How much more a record that we read is worth than the same one unread."""


class Topic(msgspec.Struct, frozen=True):
    """A record belongs when it has one of the families and one of the types (any, where none is named), or names one of
    the mechanisms in added lines."""

    title: str
    families: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    mechanisms: tuple[str, ...] = ()


_NUMERIC = ("quant", "gemm", "grouped-gemm", "moe")
TOPICS = {
    "activation-fusion": Topic("Activations fused with their neighbours", ("activation",)),
    "attention": Topic("Attention", ("attention",)),
    "communication-overlap": Topic("Communication, and work that hides it", ("comm",)),
    "decode-attention": Topic("Attention of one new token", mechanisms=("split-kv",)),
    "kv-cache": Topic("KV cache", ("kv-cache",), mechanisms=("paged",)),
    "launch-and-graphs": Topic("Launches and graphs", mechanisms=("pdl", "cuda-graph")),
    "linear-attention-ssm": Topic("Linear attention and state space models", ("ssm-linear-attn",)),
    "matmul-gemm": Topic("Matrix multiplication", ("gemm",)),
    "mla-decode": Topic("Multi-head latent attention", ("mla",)),
    "moe-routing": Topic("Mixture of experts", ("moe", "grouped-gemm")),
    "normalization": Topic("Normalization", ("norm",)),
    "quantization-fp4": Topic("FP4", _NUMERIC, ("fp4", "nvfp4", "mxfp4")),
    "quantization-fp8": Topic("FP8", _NUMERIC, ("fp8", "mxfp8")),
    "quantization-int-weight-only": Topic("Integer weights", _NUMERIC, ("int4", "int8"), ("dequant-lut",)),
    "reduction-scan": Topic("Reductions, scans, sorts", ("scan-sort-reduce",)),
    "rope-elementwise": Topic("Rotary embedding and elementwise work", ("rope", "embedding-lora")),
    "sampling-topk": Topic("Sampling and top-k", ("sampling",)),
}
ELSEWHERE = ("compiler", "conv")
"""Families without a topic page: their records stand in the list of their repository, or under another family."""


def belongs(row: Row, topic: Topic) -> bool:
    """True where the record is about the topic."""
    family = not topic.families or bool(set(topic.families) & set(row.families))
    dtype = not topic.dtypes or bool(set(topic.dtypes) & set(row.dtypes))
    named = bool(set(topic.mechanisms) & row.diff_terms.keys())
    return named or (bool(topic.families) and family and dtype)


def about(row: Row, topic: Topic) -> float:
    """How much of the record is about the topic, 0 to 1: its share of what paths, symbols, title and lines say."""
    share = max((_share(row, "family", name) for name in topic.families), default=0.0)
    if topic.dtypes:
        share *= max(_share(row, "dtype", name) for name in topic.dtypes)
    lines = sum(row.diff_terms.get(name, 0) for name in topic.mechanisms)
    return max(share, min(1.0, 2 * lines / max(1, sum(row.diff_terms.values()))))


def _share(row: Row, kind: str, name: str) -> float:
    """What speaks for a name against what speaks for the best of its kind."""
    said = {key: _weight(parts) for key, parts in row.evidence.items() if key.startswith(f"{kind}:")}
    best = max(said.values(), default=0.0)
    known = row.families if kind == "family" else row.dtypes
    return said.get(f"{kind}:{name}", 0.0) / best if best else float(name in known)


def _weight(parts: Mapping[str, int]) -> float:
    return sum(WEIGHT.get(part, 0.0) * math.sqrt(count) for part, count in parts.items())


def worth(row: Row) -> float:
    """How strong a record is as evidence; 0 for one that is none."""
    selected = TIER.get(row.tier, 0.0) if row.tier and row.tier in SELECTED else 0.0
    return (max(selected, 0.5) * READ if row.lesson else selected) * (1 + min(max(row.score, 0.0), 20.0) / 40)


def spread(rows: list[Row], most: int, topic: Topic | None = None) -> list[Row]:
    """The worthiest first, each further one of a repository worth a little less; of a topic, what is about it first."""
    value = {row.id: worth(row) * (about(row, topic) if topic else 1.0) for row in rows}
    waiting: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (-value[row.id], row.id)):
        if value[row.id] > 0:
            waiting.setdefault(row.repo, []).append(row)
    factor = dict.fromkeys(waiting, 1.0)
    out: list[Row] = []
    while waiting and len(out) < most:
        repo = min(waiting, key=lambda name: (-value[waiting[name][0].id] * factor[name], name))
        out.append(waiting[repo].pop(0))
        factor[repo] *= AGAIN
        if not waiting[repo]:
            del waiting[repo]
    return out
