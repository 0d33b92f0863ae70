"""``kernelpilot doctor``: is everything in place for the loop to run here? Reads and asks; writes nothing itself."""

from __future__ import annotations

from kernelpilot_install.doctor.check import Check, Here, Spot, Status
from kernelpilot_install.doctor.examine import examine

__all__ = ["Check", "Here", "Spot", "Status", "examine"]
