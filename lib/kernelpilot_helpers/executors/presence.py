"""Is there an NVIDIA GPU here at all? Asked of the system alone, before any Python with torch is looked for."""

from __future__ import annotations

import ctypes
from pathlib import Path

DEVICES = Path("/dev")
DRIVER = "libcuda.so.1"


def gpu_here() -> bool:
    """Whether this machine has an NVIDIA GPU: a device node, or a driver that counts one (WSL and Jetson have no node).

    Says nothing of whether torch can use it, nor of ``CUDA_VISIBLE_DEVICES``.
    """
    return any(DEVICES.glob("nvidia[0-9]*")) or _counted() > 0


def _counted() -> int:
    """GPUs that the driver counts; 0 without a driver. Makes no context."""
    try:
        driver = ctypes.CDLL(DRIVER)
        number = ctypes.c_int(0)
        if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(number)) != 0:
            return 0
    except (OSError, AttributeError):
        return 0
    return number.value
