"""Which part of a roll-up throughput makes its number: the report names the parts in ``breakdown:<throughput>``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kernelpilot_helpers.ncu.report import Launch

Throughput = Literal["sm", "memory", "dram", "l1", "l2"]
MAX_PARTS = 500
_NEAR = 0.95
"""Of the throughput: parts are measured in other passes."""
_PREFIX = "breakdown:"
_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_MEMORY = f"gpu__compute_memory_throughput{_ELAPSED}"
_METRIC: Mapping[Throughput, tuple[str, ...]] = {
    "sm": (f"sm__throughput{_ELAPSED}",),
    "memory": (_MEMORY,),
    "dram": (f"gpu__dram_throughput{_ELAPSED}", f"dram__throughput{_ELAPSED}"),
    "l1": (f"l1tex__throughput{_ELAPSED}", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
    "l2": (f"lts__throughput{_ELAPSED}",),
}
_UNITS: Mapping[Throughput, tuple[str, ...]] = {
    "dram": ("dram__", "fbpa__"), "l1": ("l1tex__",), "l2": ("lts__", "ltc__"),
}  # fmt: skip
"""Of a tier without a breakdown of its own: its parts among those of the memory roll-up."""


def parts(launch: Launch, throughput: Throughput) -> dict[str, float]:
    """Percent of peak of each part that the report holds, by metric; empty where it names none (2019, other sets)."""
    for metric in _METRIC[throughput]:
        if found := _values(launch, metric):
            return found
    wanted = _UNITS.get(throughput)
    if wanted is None:
        return {}
    return {name: value for name, value in _values(launch, _MEMORY).items() if name.startswith(wanted)}


def limiting(launch: Launch, throughput: Throughput) -> tuple[str, float] | None:
    """(metric, percent of peak) of the largest part; None where the report does not say.

    A throughput is the largest of its parts, so this part is the one to relieve. Of equal parts the first by name.
    Where the largest part that is listed does not make the throughput's own number, the part that does is not there.
    """
    found = parts(launch, throughput)
    return largest(found, total(launch, throughput)) if found else None


def total(launch: Launch, throughput: Throughput) -> float | None:
    """The throughput's own percent of peak, from the first of its metrics that the file has."""
    held = [launch.metrics[one].number for one in _METRIC[throughput] if one in launch.metrics]
    return held[0] if held else None


def largest(found: Mapping[str, float], total: float | None) -> tuple[str, float] | None:
    """The largest of some parts, the first by name of equal ones; None where it does not make the total."""
    name = min(found, key=lambda one: (-found[one], one))
    return None if total is not None and found[name] < _NEAR * total else (name, found[name])


def _values(launch: Launch, metric: str) -> dict[str, float]:
    listed = launch.metrics.get(_PREFIX + metric)
    if listed is None:
        return {}
    values: dict[str, float] = {}
    for name in listed.text.split(",")[:MAX_PARTS]:
        held = launch.metrics.get(name.strip())
        if held is not None and held.number is not None:
            values[name.strip()] = float(held.number)
    return values
