"""Clocks, temperature and power of the GPU over one stretch of a job: read, never changed."""

from __future__ import annotations

import statistics
from typing import Any


class Looks:
    """Collects samples of one stretch; without sensors it collects nothing."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._mhz: list[int] = []
        self._samples: list[dict[str, Any]] = []

    def mhz(self) -> int:
        """The SM clock now; 0 where it cannot be read."""
        if self._nvml is None:
            return 0
        now = int(self._nvml.sm_mhz())
        self._mhz.append(now)
        return now

    def sample(self) -> None:
        """Keep everything the sensors say now."""
        if self._nvml is not None:
            self._samples.append(self._nvml.sample())

    def energy_mj(self) -> int | None:
        """The energy counter in millijoules; None where there is none."""
        value = self._nvml.sample().get("energy_mj") if self._nvml is not None else None
        return int(value) if value else None

    def entry(self, phase: str, pair: int | None = None) -> dict[str, Any] | None:
        """``raw.GpuLook`` of the stretch; None where nothing was read."""
        if not self._samples:
            return None
        clocks = sorted([*self._mhz, *(int(s["sm_mhz"]) for s in self._samples)])
        temperatures = [int(s["temp_c"]) for s in self._samples]
        powers = [float(s["power_w"]) for s in self._samples]
        return {
            "phase": phase, "pair": pair,
            "sm_mhz": (clocks[0], int(statistics.median(clocks)), clocks[-1]),
            "mem_mhz": int(self._samples[-1]["mem_mhz"]),
            "temp_c": (min(temperatures), max(temperatures)),
            "power_w": (min(powers), max(powers)),
            "reasons": tuple(sorted({str(r) for s in self._samples for r in s["reasons"]})),
        }  # fmt: skip
