"""A kernel over time, by PM sampling: ramp-up, steady part, tail, idle gaps, and whether copies and math alternate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from kernelpilot_helpers.ncu.report import Launch, Series

LEAST_SAMPLES = 10
"""Below it a share of the samples says nothing."""
BUSY = 0.5
"""Of the steady level: a sample below it belongs to ramp-up or tail."""
IDLE = 0.05
"""Of the steady level: a sample below it, between busy ones, is a gap."""
NOISE = 0.001
"""Of the largest sample: below it nothing of this kernel runs."""
ALTERNATES = -0.3
"""Correlation of tensor and memory activity below which they take turns."""
LEAST_USED = 5.0
"""Percent of peak: a unit that never passes it takes no turns."""
_ACTIVITY = (
    "sm__cycles_active.avg",
    "tpc__warps_active_realtime.avg.per_cycle_active",
    "sm__inst_executed_realtime.avg.per_cycle_active",
)
"""Best first; names without the sampled unit and its trigger, which stand before them."""
_TENSOR = ("pipe_tensor_cycles_active", "pipe_tc_cycles_active")
_MEMORY = ("dramc__throughput.", "dram__throughput.", "lts__throughput.")


class Phases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares are of the samples between the first and the last in which the kernel runs; they add up to 1."""

    metric: str
    """The series that says when SMs work."""
    samples: int
    interval_ns: float
    ramp_up: float
    steady: float
    """Idle gaps count as steady time."""
    tail: float
    gaps: int
    """Runs of idle samples between busy ones."""
    idle: float
    """Share of the samples that lie in gaps."""
    alternation: float | None = None
    """Correlation of tensor and memory activity, -1 to 1; None where a series is missing or hardly used."""
    alternates: bool = False
    """Copies and math take turns: what one waits for could run under the other."""


def phases(launch: Launch) -> Phases | None:
    """Phases of a launch; None without PM sampling, or with fewer than LEAST_SAMPLES samples of the kernel itself.

    Only series with one common list of time stamps are laid side by side: they come from one pass. Series of different
    pass groups were taken from different runs of the kernel and have no common clock.
    """
    name = _find(launch, _ACTIVITY)
    if name is None:
        return None
    series = launch.series[name]
    span = _running(series)
    if span is None or span[1] - span[0] < LEAST_SAMPLES:
        return None
    values = _numbers(series)[span[0] : span[1]]
    least = BUSY * max(values)
    steady = _median([value for value in values if value >= least])
    busy = [place for place, value in enumerate(values) if value >= BUSY * steady]
    first, last, count = busy[0], busy[-1], len(values)
    idle = [value < IDLE * steady for value in values[first : last + 1]]
    gaps = sum(now and not before for before, now in zip([False, *idle], idle, strict=False))
    correlation = _alternation(launch, series, span)
    return Phases(
        metric=name, samples=count, interval_ns=_interval(series, span),
        ramp_up=first / count, steady=(last + 1 - first) / count, tail=(count - 1 - last) / count,
        gaps=gaps, idle=sum(idle) / count,
        alternation=correlation, alternates=correlation is not None and correlation <= ALTERNATES,
    )  # fmt: skip


def _plain(name: str) -> str:
    """A series' name without ``pmsampling:`` and without the unit and trigger before it."""
    parts = name.removeprefix("pmsampling:").split(".")
    while len(parts) > 1 and "__" not in parts[0]:
        parts = parts[1:]
    return ".".join(parts)


def _find(launch: Launch, wanted: Sequence[str]) -> str | None:
    """The first series over time that is sampled under one of the names; sorted names make the answer stable."""
    plain = {_plain(name): name for name in sorted(launch.series, reverse=True) if _sampled(name)}
    for start in wanted:
        if start in plain and launch.series[plain[start]].kind == 1:
            return plain[start]
    return None


def _sampled(name: str) -> bool:
    return name.startswith("pmsampling:") or "__" not in name.split(".", maxsplit=1)[0]


def _numbers(series: Series) -> list[float]:
    return [float(value) if isinstance(value, int | float) else 0.0 for value in series.values]


def _running(series: Series) -> tuple[int, int] | None:
    """First and one past the last sample in which the kernel runs, without the sampler's first stamp of 0."""
    values = _numbers(series)
    if len(series.keys) != len(values) or not values:
        return None
    floor = NOISE * max(values)
    places = [
        place for place, value in enumerate(values) if value > floor and value > 0 and series.keys[place] not in (0, "")
    ]
    return (places[0], places[-1] + 1) if places else None


def _interval(series: Series, span: tuple[int, int]) -> float:
    """Nanoseconds between two samples."""
    first, last = series.keys[span[0]], series.keys[span[1] - 1]
    whole = last - first if isinstance(first, int) and isinstance(last, int) else 0
    return max(0.0, whole / (span[1] - span[0] - 1))


def _median(values: Sequence[float]) -> float:
    # The standard library's brings decimals and fractions with it: 10 ms of start-up time.
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _alternation(launch: Launch, clock: Series, span: tuple[int, int]) -> float | None:
    """Correlation of tensor with memory activity over the kernel, from series with the stamps of ``clock``."""
    tensor = _beside(launch, _TENSOR, clock)
    memory = _beside(launch, _MEMORY, clock)
    if tensor is None or memory is None:
        return None
    one, other = tensor[span[0] : span[1]], memory[span[0] : span[1]]
    if max(one) < LEAST_USED or max(other) < LEAST_USED:
        return None
    mean, average = math.fsum(one) / len(one), math.fsum(other) / len(other)
    spread = math.sqrt(sum((a - mean) ** 2 for a in one) * sum((b - average) ** 2 for b in other))
    if not spread or not math.isfinite(spread):
        return None
    return sum((a - mean) * (b - average) for a, b in zip(one, other, strict=True)) / spread


def _beside(launch: Launch, wanted: Sequence[str], clock: Series) -> list[float] | None:
    """A series in percent of peak with the same time stamps."""
    for start in wanted:
        for name in sorted(launch.series):
            if _sampled(name) and start in _plain(name) and "pct_of_peak" in name:
                found = launch.series[name]
                if found.kind == 1 and found.keys == clock.keys:
                    return _numbers(found)
    return None
