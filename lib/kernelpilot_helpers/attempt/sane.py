"""Numbers of a raw record that no measurement can give: the record is refused before any arithmetic on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kernelpilot_helpers.attempt.raw import Raw, Samples, Stats

NS_MAX = 10**13
"""Nearly three hours: longer than any block may last."""
HUGE = 1e308
"""What the runtime writes for a figure that is not finite."""
SIZES = ("rms", "max", "bias_se", "base_rms", "base_max", "row_ratio", "col_ratio", "tile_ratio")
SIGNED = ("bias", "base_bias")


def problems(raws: Sequence[Raw]) -> list[str]:
    """What is impossible in these records; empty when they may be judged."""
    return [f"{raw.job_id}: {what}" for raw in raws for what in _raw(raw)][:8]


def _raw(raw: Raw) -> Iterator[str]:
    for item in raw.samples:
        if what := _samples(item):
            yield f"samples of {item.case_id}, arm {item.arm}, pair {item.pair}: {what}"
    for check in raw.checks:
        if check.stats is not None and (what := _stats(check.stats)):
            yield f"check of {check.output} in {check.case_id}: {what}"
    for mutant in raw.mutants:
        for name, stats in mutant.outputs.items():
            if what := _stats(stats):
                yield f"mutant {mutant.name}, output {name}: {what}"


def _samples(item: Samples) -> str:
    if not 1 <= item.calls <= 10**6 or not 0 <= item.pair <= 10**4:
        return f"{item.calls} calls in pair {item.pair}"
    for name in ("ns", "wall_ns", "cpu_ns"):
        low = 0 if name == "cpu_ns" else 1
        if odd := [v for v in getattr(item, name) if not low <= v <= NS_MAX]:
            return f"{name} holds {str(odd[0])[:40]}"
    return ""


def _stats(stats: Stats) -> str:
    for name in (*SIZES, *SIGNED):
        value = getattr(stats, name)
        if not math.isfinite(value) or abs(value) > HUGE * 1.5 or (name in SIZES and value < 0):
            return f"{name} is {value!r}"
    return f"n is {stats.n}" if stats.n < 0 else ""
