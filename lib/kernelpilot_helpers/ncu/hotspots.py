"""Where in the code a class shows: the instructions that make most of its metric, merged by source line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from kernelpilot_helpers.ncu import dataflow, lines, pc_metrics, sass
from kernelpilot_helpers.ncu.already import already, opcode
from kernelpilot_helpers.ncu.pc_metrics import Counts, Where
from kernelpilot_helpers.ncu.report import Code, Launch, Report

TOP = 5
TARGET = 0.30
"""Share of the metric that makes a line the one to edit."""
AROUND = 3
"""Instructions shown before and after."""
_EXCESS_GLOBAL = "derived__memory_l2_theoretical_sectors_global_excessive"
_EXCESS_SHARED = "derived__memory_l1_wavefronts_shared_excessive"
_SECTORS = "memory_l2_theoretical_sectors_global"
_WAVEFRONTS = "memory_l1_wavefronts_shared"
_LANES = "thread_inst_executed_true"
Role = Literal["", "wait", "unknown"]
Step = tuple[str, str]
"""(metric, metric that is taken off it)."""
_RANKED: Mapping[str, tuple[Step, ...]] = {
    # the first that counted anything; (metric, "") is the metric itself
    "mem.uncoalesced": (
        (_EXCESS_GLOBAL, ""), (_SECTORS, f"{_SECTORS}_ideal"), ("derived__memory_l2_sectors_global_excessive", ""),
        ("memory_l2_sectors_global", "memory_l2_sectors_global_ideal"), (_SECTORS, ""),
    ),
    "mem.smem_conflict": (
        (_EXCESS_SHARED, ""), (_WAVEFRONTS, f"{_WAVEFRONTS}_ideal"),
        ("derived__memory_l1_sectors_shared_excessive", ""),
        ("memory_l1_sectors_shared", "memory_l1_sectors_shared_ideal"),
    ),
    "mem.spill": (("memory_l2_theoretical_sectors_local", ""), ("memory_l2_sectors_local", "")),
    "mem.dram_bw": ((_SECTORS, ""), ("memory_l2_sectors_global", "")),
    "mem.l2_bw": ((_SECTORS, ""), ("memory_l2_sectors_global", "")),
    "mem.l1_lsu": (("memory_l1_tag_requests_global", ""), (_WAVEFRONTS, "")),
    "exec.tensor_bound": (("inst_executed", ""),),
    "exec.pipe_bound": (("inst_executed", ""),),
    "exec.divergence": (("smsp__branch_targets_threads_divergent", ""),),
}  # fmt: skip
_RANKED = {**_RANKED, "mem.partial_store": _RANKED["mem.uncoalesced"]}
_REASON = {
    "lat.barrier": ("barrier",),
    "lat.membar": ("membar",),
    "lat.icache": ("no_instructions", "no_instruction", "no_inst"),
    "lat.imc": ("imc_miss",),
    "lat.warpgroup_skew": ("warpgroup_arrive", "gmma"),
}
"""Classes of one stall reason: its samples rank."""
_SAMPLES = ("smsp__pcsamp_sample_count", "group:smsp__pcsamp_warp_stall_reasons", "inst_executed")
_TOOLKIT = re.compile(r"(?:^|/)(?:targets/[\w-]+|cuda(?:-[\d.]+)?|nvidia/\w+)/include/")
_IDLE_OPCODES = frozenset(("SYNCS", "NANOSLEEP", "USETMAXREG", "WARPSYNC", "BAR", "UCGABAR_WAIT"))
_IDLE_REASONS = frozenset(("barrier", "sleeping", "sleep"))
_MAYBE_IDLE = frozenset(("long_scoreboard", "short_scoreboard", "branch_resolving"))
"""Reasons under which a wait for a transaction barrier is sampled."""
_ROLES = frozenset(("tma", "setmaxnreg", "mbarrier"))


class Hotspot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One source line, or one instruction where there are no lines, with its share of the ranking metric."""

    file: str
    line: int | None
    source: str
    """Text of the line; empty where the report does not hold it."""
    function: str
    pc: str
    """Offset of the line's hottest instruction in its function, hexadecimal; empty for a page of source lines."""
    sass: str
    """That instruction; empty where neither a source page nor a disassembler gave text."""
    share: float
    """Of the launch's total of ``metric``, 0 to 1."""
    metric: str
    reason: str
    """Stall reason of most samples at the line; empty where there are none."""
    reason_share: float
    """Of the line's stall samples."""
    stalled: str
    """The instruction where that reason shows most, as ``0x3c0 FADD R6, ...``: a stall stands at the consumer."""
    producer: str
    """The earlier instruction that ``stalled`` waits for, as ``0x1c0 LDG.E R6, ...``; empty where it is not shown."""
    window: tuple[str, ...]
    """Three instructions before and after."""
    target: bool
    """At least 30 % of the metric, and no wait by design: the line to edit."""
    instructions: int
    """How many of the line's instructions counted."""
    role: Role = ""
    """``wait``: a warp of a specialised kernel that idles here by design. ``unknown``: it may, as the text of the
    instruction is not at hand. Neither is a target."""
    callers: tuple[str, ...] = ()
    """``file:line`` of the call sites that the code was inlined at, innermost first."""
    ptx: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Context:
    counts: Counts
    listing: sass.Listing
    table: lines.Table
    code: Code
    words: frozenset[str]
    samples: Mapping[str, Mapping[Where, float]]
    """By stall reason."""


def find(report: Report, launch: Launch, *, class_name: str, disassembler: Path | None = None) -> tuple[Hotspot, ...]:
    """At most five hotspots of a class, the largest share first and waits by design last; empty without counts.

    ``disassembler`` (see ``sass.tool``) gives the text of instructions where no source page does; it takes a second.
    """
    names = {n for steps in _RANKED.values() for step in steps for n in step if n}
    counts = pc_metrics.counts(report, launch, (*names, *_SAMPLES, _LANES))
    ranked, metric = _ranking(counts, class_name.partition(":")[0])
    whole = sum(ranked.values())
    if whole <= 0:
        return ()
    code = report.code.get(launch.code, Code())
    listing = sass.listing(report, launch, symbol=counts.symbol, disassembler=disassembler)
    context = _Context(
        counts=counts,
        listing=listing,
        table=lines.table(code) if not counts.whole_lines and not counts.places else lines.Table(),
        code=code,
        words=already(launch, listing),
        samples=_samples(counts),
    )
    merged: dict[tuple[str, str | int], list[Where]] = {}
    for where in ranked:
        merged.setdefault(_key(context, where), []).append(where)
    order = sorted(merged.values(), key=lambda held: (-sum(ranked[w] for w in held), held[0]))
    found = [_hotspot(context, held, ranked, whole, metric) for held in order[:TOP]]
    return tuple(sorted(found, key=lambda h: (h.role == "wait", -h.share)))


def _ranking(counts: Counts, name: str) -> tuple[dict[Where, float], str]:
    for metric, less in _RANKED.get(name, ()):
        found = counts.metrics.get(metric, {})
        if less and less not in counts.metrics:
            continue
        off = counts.metrics.get(less, {})
        ranked = {w: v - off.get(w, 0.0) for w, v in found.items() if v - off.get(w, 0.0) > 0}
        if ranked:
            return ranked, f"{metric} - {less}" if less else metric
    if name == "exec.divergence" and _LANES in counts.metrics and "inst_executed" in counts.metrics:
        lanes = counts.metrics[_LANES]
        idle = {w: 32 * v - lanes.get(w, 0.0) for w, v in counts.metrics["inst_executed"].items()}
        if any(v > 0 for v in idle.values()):
            return {w: v for w, v in idle.items() if v > 0}, f"32 x inst_executed - {_LANES}"
    return _by_samples(counts, name)


def _by_samples(counts: Counts, name: str) -> tuple[dict[Where, float], str]:
    for suffix in ("_not_issued", ""):
        reasons = counts.reasons(suffix)
        asked = [n for r, n in reasons.items() if r in _REASON.get(name, ())]
        for metrics, label in (
            (asked, asked[0] if asked else ""),
            (list(reasons.values()), f"stall samples{suffix.replace('_', ' ')}"),
        ):
            ranked = {w: v for w, v in counts.total(metrics).items() if v > 0}
            if ranked:
                return ranked, label
    for metric in _SAMPLES:
        ranked = {w: v for w, v in counts.metrics.get(metric, {}).items() if v > 0}
        if ranked:
            return ranked, metric
    return {}, ""


def _samples(counts: Counts) -> Mapping[str, Mapping[Where, float]]:
    for suffix in ("_not_issued", ""):
        found = {reason: counts.metrics[name] for reason, name in counts.reasons(suffix).items()}
        if any(v > 0 for held in found.values() for v in held.values()):
            return found
    return {}


def _key(context: _Context, where: Where) -> tuple[str, str | int]:
    place = _place(context, where)
    return (place.file, place.line) if place is not None else (where[0], hex(where[1]))


def _place(context: _Context, where: Where) -> lines.Place | None:
    if context.counts.whole_lines:
        return lines.Place(file=where[0], line=where[1])
    found = context.counts.places.get(where) or context.table.at(*where)
    return None if found is None else own(found)


def own(place: lines.Place) -> lines.Place:
    """The innermost line that is no header of the CUDA toolkit: nobody can edit ``__ldcg``, but its call."""
    frames = ((place.file, place.line), *place.callers)
    at = next((n for n, (file, _) in enumerate(frames) if not _TOOLKIT.search(file)), 0)
    file, line = frames[at]
    return lines.Place(file=file, line=line, callers=frames[at + 1 :])


def _hotspot(
    context: _Context, held: Sequence[Where], ranked: Mapping[Where, float], whole: float, metric: str
) -> Hotspot:
    top = max(held, key=lambda w: (ranked[w], -w[1]))
    place = _place(context, top)
    reason, share_of_reason, stalled = _reason(context, held)
    instructions = context.counts.whole_lines
    text = "" if instructions else context.listing.text(*top)
    stopped, producer = _waits(context, stalled, reason)
    role = _role(context, (text, stopped, producer), reason)
    share = sum(ranked[w] for w in held) / whole
    return Hotspot(
        file=place.file if place else "",
        line=place.line if place else None,
        source=_source(context, place),
        function=context.counts.symbol if instructions else top[0],
        pc="" if instructions else hex(top[1]),
        sass=text,
        share=round(share, 4),
        metric=metric,
        reason=reason,
        reason_share=round(share_of_reason, 4),
        stalled=stopped,
        producer=producer,
        window=() if instructions else _window(context, top),
        target=share >= TARGET and not role,
        instructions=len(held),
        role=role,
        callers=tuple(f"{file}:{line}" for file, line in place.callers) if place else (),
        ptx=_ptx(context, top) if share >= TARGET else "",
    )


def _reason(context: _Context, held: Sequence[Where]) -> tuple[str, float, Where | None]:
    """The reason of most samples at these instructions, its share, and the instruction where it shows most."""
    sums = {reason: sum(at.get(w, 0.0) for w in held) for reason, at in context.samples.items()}
    whole = sum(sums.values())
    if whole <= 0:
        return "", 0.0, None
    top = max(sums, key=lambda r: (sums[r], r))
    return top, sums[top] / whole, max(held, key=lambda w: (context.samples[top].get(w, 0.0), -w[1]))


def _window(context: _Context, top: Where) -> tuple[str, ...]:
    texts = list(context.listing.functions.get(top[0], {}).items())
    at = next((n for n, (offset, _) in enumerate(texts) if offset == top[1]), None)
    if at is None:
        return ()
    shown = texts[max(0, at - AROUND) : at + AROUND + 1]
    return tuple(f"{'>' if offset == top[1] else ' '} {offset:#06x} {text}" for offset, text in shown)


def _waits(context: _Context, stalled: Where | None, reason: str) -> tuple[str, str]:
    """The stalled instruction and the one that it waits for; empty where the text or the reason does not show them."""
    if stalled is None or context.counts.whole_lines:
        return "", ""
    texts = list(context.listing.functions.get(stalled[0], {}).items())
    at = next((n for n, (offset, _) in enumerate(texts) if offset == stalled[1]), None)
    if at is None:
        return f"{stalled[1]:#x}", ""
    made = dataflow.producer(texts, at, reason)
    return _shown(texts[at]), "" if made is None else _shown(texts[made])


def _shown(one: tuple[int, str]) -> str:
    return f"{one[0]:#x} {one[1]}"


def _role(context: _Context, shown: Sequence[str], reason: str) -> Role:
    """A wait by design: warps of a kernel with roles that sleep at a barrier until another role has done its part."""
    if not context.words & _ROLES or not reason:
        return ""
    words = {opcode(text.partition(" ")[2] if text.startswith("0x") else text).split(".")[0] for text in shown}
    if words & _IDLE_OPCODES or reason in _IDLE_REASONS:
        return "wait"
    return "unknown" if words == {""} and reason in _MAYBE_IDLE else ""


def _source(context: _Context, place: lines.Place | None) -> str:
    if place is None:
        return ""
    return context.counts.texts.get((place.file, place.line)) or lines.text_line(context.code, place.file, place.line)


def _ptx(context: _Context, top: Where) -> str:
    if context.counts.whole_lines:
        return ""
    place = lines.ptx_table(context.code).at(*top)
    text = lines.ptx_text(context.code) if place is not None else ()
    return text[place.line - 1].strip()[: sass.MAX_TEXT] if place is not None and 0 < place.line <= len(text) else ""
