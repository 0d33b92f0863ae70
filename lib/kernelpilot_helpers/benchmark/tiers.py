"""How much each tier measures, by device. To be moved to ``policy``: it spells promised numbers."""

from __future__ import annotations

from dataclasses import replace

from kernelpilot_helpers.policy import ACCEPT, CLAIM, SCREEN, TIERS, DevicePolicy, Tier

GPU_TIERS = {
    t.name: t
    for t in (
        replace(SCREEN, looks=(2,), blocks=8),
        replace(ACCEPT, looks=(6, 10, 20), blocks=12),
        replace(CLAIM, looks=(10,), alpha=0.01, blocks=16),
    )
}
"""Fewer blocks than on a CPU: replays of one pair stray by 0.2 %, pairs of one kernel by as much, so pairs decide."""
CLAIM_TIER = CLAIM.name


def tier_of(device: DevicePolicy, name: str) -> Tier:
    """The tier of that name on that device. Raises KeyError for a name that no tier has."""
    return (GPU_TIERS if device.kind == "gpu" else TIERS)[name]
