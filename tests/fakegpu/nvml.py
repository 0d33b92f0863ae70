"""The stand-in for runtime/nvml.py: a GPU at rest at one clock, with the processes that a test names."""

from __future__ import annotations

import os
from typing import Any


class Nvml:
    """Constant sensors."""

    def sm_mhz(self) -> int:
        """One clock for ever."""
        return 1980

    def sample(self) -> dict[str, Any]:
        """One moment."""
        return {
            "sm_mhz": 1980, "mem_mhz": 3201, "temp_c": 40, "power_w": 100.0, "reasons": [], "energy_mj": 1,
        }  # fmt: skip

    def processes(self) -> list[tuple[int, int]]:
        """Those of the variable CUDA_FAKE_PROCESSES, one pid each."""
        return [(int(pid), 100) for pid in os.environ.get("CUDA_FAKE_PROCESSES", "").split()]

    def driver(self) -> str:
        """A version."""
        return "580.0"

    def close(self) -> None:
        """Nothing is held."""


def open_nvml(uuid: str) -> Nvml | None:
    """The stand-in's sensors."""
    return Nvml()
