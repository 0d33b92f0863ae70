"""Numbers of a raw record that no measurement can give: the record is refused before any arithmetic on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kernelpilot_helpers.attempt.raw import FigureTime, GpuLook, Raw, Samples, Stats

NS_MAX = 10**13
"""Nearly three hours: longer than any block may last."""
MHZ_MAX = 10_000
US_MAX = 1e10
HUGE = 1e308
"""What the runtime writes for a figure that is not finite."""
SIZES = ("rms", "max", "bias_se", "base_rms", "base_max", "row_ratio", "col_ratio", "tile_ratio")
SIGNED = ("bias", "base_bias")


def problems(raws: Sequence[Raw]) -> list[str]:
    """What is impossible in these records; empty when they may be judged."""
    return [f"{raw.job_id}: {what}" for raw in raws for what in _raw(raw)][:8]


def _raw(raw: Raw) -> Iterator[str]:
    for item in raw.samples:
        if what := _samples(item) or _device_time(item, on_gpu=bool(raw.env.get("gpu_uuid"))):
            yield f"samples of {item.case_id}, arm {item.arm}, pair {item.pair}: {what}"
    for check in raw.checks:
        if check.stats is not None and (what := _stats(check.stats)):
            yield f"check of {check.output} in {check.case_id}: {what}"
    for mutant in raw.mutants:
        for name, stats in mutant.outputs.items():
            if what := _stats(stats):
                yield f"mutant {mutant.name}, output {name}: {what}"
    yield from _gpu(raw)


def _gpu(raw: Raw) -> Iterator[str]:
    """What only a GPU job holds: kernels, figures, clocks, sanitizer counts, ceilings."""
    for use in raw.inventory:
        if not (0 <= use.ns <= NS_MAX and 1 <= use.count <= 10**6):
            yield f"inventory of {use.case_id}, arm {use.arm}: {use.count} times, {str(use.ns)[:40]} ns"
    for figure in raw.figures:
        if what := _figure(figure):
            yield f"figure {figure.figure} of {figure.case_id}, arm {figure.arm}: {what}"
    for look in raw.gpu:
        if what := _look(look):
            yield f"clocks in {look.phase}: {what}"
    for run in raw.sanitizer:
        if run.errors is not None and not 0 <= run.errors <= 10**12:
            yield f"{run.tool} on {run.case_id} counts {str(run.errors)[:40]} errors"
    yield from _rates(raw)


def _rates(raw: Raw) -> Iterator[str]:
    for name, value in raw.ceilings.items():
        if not 0 < value < US_MAX:
            yield f"ceiling {name} is {value!r}"
    dram = raw.env.get("dram_gbs")
    if dram is not None and not (type(dram) in (int, float) and 0 < dram < 10**6):
        yield f"dram_gbs is {str(dram)[:40]}"


def _device_time(item: Samples, *, on_gpu: bool) -> str:
    """Whose clock the times were read from must be clear: it decides which limits hold."""
    if item.mhz and len(item.mhz) != len(item.ns):
        return f"{len(item.mhz)} clock readings of {len(item.ns)} blocks"
    if odd := [v for v in item.mhz if not 1 <= v <= MHZ_MAX]:
        return f"mhz holds {str(odd[0])[:40]}"
    if item.method and item.cpu_ns:
        return "processor time beside device time"
    return "times of a GPU job without a method" if on_gpu and not item.method else ""


def _figure(figure: FigureTime) -> str:
    if not abs(figure.us) <= US_MAX:  # chained is a difference, and may fall below zero
        return f"{figure.us!r} us"
    return f"{figure.joules!r} J" if figure.joules is not None and not 0 <= figure.joules <= 10**6 else ""


def _look(look: GpuLook) -> str:
    if any(not 0 <= v <= MHZ_MAX for v in look.sm_mhz) or list(look.sm_mhz) != sorted(look.sm_mhz):
        return f"SM clock {look.sm_mhz}"
    if any(not 0 <= v <= 10**5 for v in look.power_w):
        return f"power {look.power_w}"
    return ""


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
