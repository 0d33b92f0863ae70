"""Clocks, temperature, power and processes of a GPU, read through NVML and never set."""

from __future__ import annotations

import ctypes
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
SM, MEMORY, TEMPERATURE = 1, 2, 0
REASONS = {
    0x4: "power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost", 0x20: "sw_thermal", 0x40: "hw_thermal",
    0x80: "hw_power_brake", 0x100: "display_clock",
}  # fmt: skip
"""Bits of nvmlClocksEventReasons (nvml.h); idle (1) and application settings (2) are no reasons to worry."""
PROCESSES = 256


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint),
    ]  # fmt: skip


class Nvml:
    """One GPU's sensors."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle

    def _number(self, name: str, *before: int, kind: Any = ctypes.c_uint) -> int:
        value = kind()
        code = getattr(self._library, name)(self._handle, *before, ctypes.byref(value))
        return 0 if code else int(value.value)

    def sm_mhz(self) -> int:
        """The multiprocessors' clock now; 0 where the driver does not say."""
        return self._number("nvmlDeviceGetClockInfo", SM)

    def sample(self) -> dict[str, Any]:
        """sm_mhz, mem_mhz, temp_c, power_w, reasons (names) and energy_mj since the driver was loaded."""
        bits = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
        return {
            "sm_mhz": self.sm_mhz(),
            "mem_mhz": self._number("nvmlDeviceGetClockInfo", MEMORY),
            "temp_c": self._number("nvmlDeviceGetTemperature", TEMPERATURE),
            "power_w": self._number("nvmlDeviceGetPowerUsage") / 1000,
            "reasons": [name for bit, name in REASONS.items() if bits & bit],
            "energy_mj": self._number("nvmlDeviceGetTotalEnergyConsumption", kind=ctypes.c_ulonglong),
        }

    def processes(self) -> list[tuple[int, int]]:
        """(pid, MiB) of every process with a context on this GPU; pid 0 where a container hides it."""
        found = (_Process * PROCESSES)()
        count = ctypes.c_uint(PROCESSES)
        code = self._library.nvmlDeviceGetComputeRunningProcesses_v3(self._handle, ctypes.byref(count), found)
        return [] if code else [(p.pid, p.memory >> 20) for p in found[: count.value]]

    def driver(self) -> str:
        """The driver's version, such as 580.159.04; empty where unknown."""
        text = ctypes.create_string_buffer(96)
        return "" if self._library.nvmlSystemGetDriverVersion(text, 96) else text.value.decode()

    def close(self) -> None:
        """Let go of the library."""
        self._library.nvmlShutdown()


def open_nvml(uuid: str) -> Nvml | None:
    """The sensors of the GPU with this UUID, or None where NVML cannot be used."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    handle = ctypes.c_void_p()
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)):
        return None
    return Nvml(library, handle)
