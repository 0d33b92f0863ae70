"""The facts of a group as its digest tells them: speed of light, occupancy, stalls, what NVIDIA's rules said."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Light(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One speed of light, percent of peak, and the part of it that is busiest."""

    value: float
    limiting: str = ""
    """Metric of the busiest constituent; empty where the file does not break the figure down."""
    share: float | None = None
    """Percent of the constituent's own peak."""


class Occupancy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Warps in flight, percent of the most that an SM holds, and what allows no more blocks."""

    theoretical: float | None
    achieved: float | None
    limiter: str
    """``registers``, ``shared memory``, ``warps``, ``blocks``, joined where they tie; empty where not known."""
    blocks_per_sm: float | None
    limits: Mapping[str, float]
    """Blocks an SM could hold by each resource alone."""


class Said(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of NVIDIA's own rules, in its words."""

    rule: str
    type: str
    title: str
    text: str
    speedup: float | None
    """Estimated, percent."""
    scope: str
    """``global``: of the whole kernel; ``local``: of the part that the rule looks at."""


class Advice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What NVIDIA's rules said, and how that stands to the class."""

    agrees: tuple[str, ...]
    disagrees: tuple[str, ...]
    bound: float | None
    """Largest estimated share, of a global rule that agrees."""
    rules: tuple[Said, ...]
    """Those that ask for a change."""


class Other(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Groups that are not told one by one: together they hold the last few percent of the time."""

    groups: int
    launches: int
    time_share: float | None


class Reader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the reader passed over."""

    unknown_fields: Mapping[str, tuple[int, ...]]
    """Field numbers by message; skipped, never guessed at."""
    ignored_lines: int
    notes: tuple[str, ...]
