"""Stage 3, first half: what each version does on each case of W. Pure."""

from kernelpilot_helpers.autotune.build import Tuned, build, cases_of, coverage, selected
from kernelpilot_helpers.autotune.model import (
    FORMAT,
    MAP_PATH,
    OWNER,
    VERSION,
    Cell,
    LeftOut,
    MapCase,
    MapVariant,
    PerformanceMap,
)

__all__ = [
    "FORMAT",
    "MAP_PATH",
    "OWNER",
    "VERSION",
    "Cell",
    "LeftOut",
    "MapCase",
    "MapVariant",
    "PerformanceMap",
    "Tuned",
    "build",
    "cases_of",
    "coverage",
    "selected",
]
