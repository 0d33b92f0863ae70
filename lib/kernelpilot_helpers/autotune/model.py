"""The performance map: every tuned version beside the baseline, case by case, from runs of one machine."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.ledger.model import Interval

FORMAT = "kernelpilot.performance-map"
VERSION = 1
MAP_PATH = "artifacts/performance-map.json"


class MapCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shape of W as the map knows it."""

    case_id: str
    regime: str
    axes: dict[str, int]
    """Axes that are not computed from others."""
    flags: dict[str, Any] = {}
    """Every flag of the contract; an optional tensor that is not named is False, a dtype has its long name."""
    required: bool
    held_out: bool
    """Measured to validate the dispatcher; never used to choose."""
    calls: int = 1
    """Weight under objective total_time."""


class MapVariant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tuned version and the run that timed it against the baseline."""

    version: str
    variant: str
    tree: str
    run: str
    pairs: int = 0
    """Cross-over pairs behind each of its cells."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A version that its tune run did not find correct, or whose clock lied: it may not be chosen."""

    version: str
    tree: str
    run: str
    why: str
    """``code: text``."""


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One version on one case. Ratios are baseline time over version time: above 1 is faster."""

    case_id: str
    version: str
    vs_baseline: Interval
    baseline_us: float
    version_us: float


class PerformanceMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``artifacts/performance-map.json``."""

    format: Literal["kernelpilot.performance-map"] = "kernelpilot.performance-map"
    version: int = VERSION
    epoch: int
    at: str
    device: Literal["cpu", "gpu"] = "cpu"
    """Whose non-inferiority margin holds."""
    objective: Literal["geomean", "total_time"] = "geomean"
    alpha: float = 0.05
    """Two-sided error of every interval here."""
    environment: dict[str, Any]
    """The booking that every run of the map shares."""
    baseline_tree: str
    cases: tuple[MapCase, ...]
    variants: tuple[MapVariant, ...]
    cells: tuple[Cell, ...]
    left_out: tuple[LeftOut, ...] = ()


OWNER = records.Owner(
    format=FORMAT, version=VERSION, type=PerformanceMap, fix=f"git checkout -- {MAP_PATH}, or kernelpilot tune"
)
