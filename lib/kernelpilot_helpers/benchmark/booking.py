"""What must be equal for two measurements to be held against each other: machine, boot, Python, device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BOOKING_KEYS = ("boot_id", "framework", "framework_version", "python", "cpu", "machine", "gpu_uuid", "driver")


def booking(env: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a raw's ``env`` that says where it was measured; keys that the runtime did not know are absent."""
    return {key: env[key] for key in BOOKING_KEYS if env.get(key) is not None}


def moved(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys in which two bookings differ; what one of them does not know is no difference."""
    return tuple(key for key in BOOKING_KEYS if key in before and key in now and before[key] != now[key])
