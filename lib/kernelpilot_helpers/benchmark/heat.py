"""Pairs in which the GPU was slowed down for heat: both arms of them are left out, or nothing is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kernelpilot_helpers.attempt.raw import Raw

HEAT = ("hw_thermal", "hw_slowdown")
"""Reasons that are the machine's. A power cap is the kernel's own and drops nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cooled:
    """Jobs without their hot pairs. ``doubt`` says why too few pairs are left; then nothing was left out."""

    raws: tuple[Raw, ...]
    left_out: tuple[int, ...] = ()
    """The hot pairs, and for each the nearest one of the other start order, so that the order stays balanced."""
    notes: tuple[str, ...] = ()
    doubt: str = ""


def _hot(raws: Sequence[Raw]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for look in (look for raw in raws for look in raw.gpu):
        if look.pair is not None and (seen := set(HEAT) & set(look.reasons)):
            found.setdefault(look.pair, set()).update(seen)
    return found


def _balanced(hot: frozenset[int], first: dict[int, str]) -> frozenset[int]:
    """The hot pairs and as many of the other order: equally many of either start order remain."""
    out = {pair for pair in hot if pair in first}
    labels = sorted(set(first.values()))
    for label, other in ((a, b) for a in labels for b in labels if a != b):
        while sum(first[p] == label for p in out) > sum(first[p] == other for p in out):
            spare = [p for p in first if first[p] == other and p not in out]
            if not spare:
                return frozenset(out)
            hottest = [p for p in out if first[p] == label]
            out.add(min(spare, key=lambda p: (min(abs(p - h) for h in hottest), p)))
    return frozenset(out)


def cool(raws: Sequence[Raw]) -> Cooled:
    """Leave out the pairs that ran while the GPU was slowed down for heat; most of the pairs must stay."""
    hot = _hot(raws)
    notes = tuple(
        f"gpu.{reason}: seen in {raw.job_id}, {look.phase}" + ("" if look.pair is None else f", pair {look.pair}")
        for raw in raws
        for look in raw.gpu
        for reason in look.reasons
        if reason in HEAT
    )
    if not hot:
        return Cooled(raws=tuple(raws), notes=notes)
    first = {s.pair: s.first_arm for raw in raws for s in raw.samples}
    out = _balanced(frozenset(hot), first)
    if 2 * len(out) > len(first):
        said = ", ".join(sorted({reason for seen in hot.values() for reason in seen}))
        doubt = f"suspect.heat: the GPU was slowed down for heat ({said}) in {len(hot)} of {len(first)} pairs"
        return Cooled(raws=tuple(raws), notes=notes, doubt=doubt)
    kept = tuple(
        msgspec.structs.replace(raw, samples=tuple(s for s in raw.samples if s.pair not in out)) for raw in raws
    )
    told = f"gpu.left_out: both arms of pairs {', '.join(map(str, sorted(out)))}, equally many of either start order"
    return Cooled(raws=kept, left_out=tuple(sorted(out)), notes=(*notes, told))
