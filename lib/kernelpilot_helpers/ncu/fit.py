"""How a launch fits the GPU: blocks, waves, occupancy and its limiter, what one resource step would give."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from kernelpilot_helpers.ncu.metrics import Readings

LIMITERS = {
    "registers": "limit_registers",
    "shared memory": "limit_shared",
    "warps": "limit_warps",
    "blocks": "limit_blocks",
    "barriers": "limit_barriers",
}
_OPTIONAL = ("barriers",)
"""Reported since 2025.1 only."""
_STEPS = {
    "registers": ("launch__occupancy_per_register_count", "registers", "registers per thread"),
    "shared memory": ("launch__occupancy_per_shared_mem_size", "shared", "bytes of shared memory per block"),
    "warps": ("launch__occupancy_per_block_size", "block", "threads per block"),
    "blocks": ("launch__occupancy_per_block_size", "block", "threads per block"),
    "barriers": ("launch__occupancy_per_barrier_count", "barriers", "barriers per block"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """The nearest value of the limiting resource at which more warps fit an SM."""

    resource: str
    now: float
    then: float
    warps_now: float
    warps_then: float

    @property
    def text(self) -> str:
        """In words."""
        return (
            f"{self.then:g} instead of {self.now:g} {self.resource} let {self.warps_then:g} instead of "
            f"{self.warps_now:g} warps fit an SM"
        )


def limiter(readings: Readings) -> str:
    """What allows the fewest blocks on an SM, ties together; empty when a limit is missing."""
    known = {name: readings.get(role) for name, role in LIMITERS.items()}
    for name in _OPTIONAL:
        readings.asked.pop(LIMITERS[name], None)
    present = {name: v for name, v in known.items() if v is not None and v > 0}
    if not present.keys() >= LIMITERS.keys() - set(_OPTIONAL):
        return ""
    least = min(present.values())
    return " and ".join(name for name, v in present.items() if v == least)


def blocks_per_sm(readings: Readings) -> float | None:
    """Blocks that fit one SM; None when a limit is missing."""
    known = [readings.get(role) for name, role in LIMITERS.items() if name not in _OPTIONAL]
    barriers = readings.get("limit_barriers")
    readings.asked.pop("limit_barriers", None)
    present = [v for v in (*known, barriers) if v is not None and v > 0]
    return min(present) if len(present) >= len(known) else None


def waves(readings: Readings, grid: float | None) -> float | None:
    """Grid over what the GPU holds at once: exact where the limits are known, else as ncu printed it."""
    fits, sms = blocks_per_sm(readings), readings.get("sms")
    printed = readings.get("waves")
    if grid and fits and sms:
        exact = grid / (fits * sms)
        # Clusters and partitioned GPUs make ncu's own figure differ; then its figure counts.
        if printed is None or abs(exact - printed) <= 0.006 + 0.01 * exact:
            return readings.keep("waves_exact", "grid / (blocks an SM holds x SMs)", exact, "")
    return printed


def step(readings: Readings, limited_by: str) -> Step | None:
    """The what-if table's next step for the first limiting resource; None without the table or a better value."""
    name = limited_by.split(" and ", 1)[0]
    if name not in _STEPS:
        return None
    metric, role, words = _STEPS[name]
    series = readings.launch.series.get(metric)
    now = readings.get(role) if role != "barriers" else None
    if series is None or now is None or not math.isfinite(now):
        return None
    pairs = sorted((float(k), float(v)) for k, v in zip(series.keys, series.values, strict=False)
                   if isinstance(k, (int, float)) and isinstance(v, (int, float)))  # fmt: skip
    at = [v for k, v in pairs if k <= now]
    if not at:
        return None
    rises = name in ("warps", "blocks")
    better = [(k, v) for k, v in pairs if v > at[-1] and (k > now if rises else k < now)]
    if not better:
        return None
    then, warps = min(better) if rises else max(better)
    return Step(resource=words, now=now, then=then, warps_now=at[-1], warps_then=warps)


def product(readings: Readings, text: str, role: str) -> float | None:
    """Threads of a block or blocks of a grid, from the launch's own column or the metric."""
    sizes = re.findall(r"\d+", text)
    if len(sizes) != 3 or max(map(len, sizes)) > 10:
        return readings.get(role)
    value = float(int(sizes[0]) * int(sizes[1]) * int(sizes[2]))
    return readings.keep(role, f"{role.capitalize()} Size column", value, "")
