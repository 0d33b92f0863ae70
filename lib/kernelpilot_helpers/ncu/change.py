"""What a diff is made of: changes of single figures, pairs of kernels, and the verdict."""

from __future__ import annotations

from typing import Literal

import msgspec

from kernelpilot_helpers.ncu.reach import Reach
from kernelpilot_helpers.records import Owner

FORMAT = "kernelpilot.ncu-diff"
VERSION = 1
Verdict = Literal["improved", "regressed", "within_noise", "not_comparable"]


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure in both reports; None is "not in that report"."""

    role: str
    metric: str
    unit: str
    baseline: float | None
    candidate: float | None
    delta: float | None
    """``candidate / baseline - 1``; None where one is missing or the baseline is 0."""
    says: str = ""


class Side(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kernel as one of the two reports has it."""

    kernel: str
    grid: str
    block: str
    launches: int
    time_share: float | None
    name: str = msgspec.field(name="class", default="")
    confidence: str = "none"
    busiest: str = ""
    """The busier speed of light and its number."""


class Noise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of time up to this share say nothing."""

    share: float
    source: Literal["given", "launches", "assumed"]


class Pair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kernel in both reports."""

    baseline: Side
    candidate: Side
    matched: Literal["key", "name", "order"]
    verdict: Verdict
    reasons: tuple[str, ...]
    noise: Noise
    changes: tuple[Change, ...]
    """Duration first, then cycles and clock apart, bytes, instructions, occupancy, resources."""
    stalls: tuple[Change, ...]
    """Warp cycles lost to each reason; a share alone misleads when the whole changes."""
    shifted: bool
    """Whether the class is another one."""
    plateau: bool
    """The same class, and no gain of 1 % or more: more of the same edit will not help."""
    reach: Reach | None = None


class Named(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The two files, by name and hash."""

    name: str
    sha256: str


class Diff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer: did the candidate get faster, by how much, and what moved."""

    format: str = FORMAT
    version: int = VERSION
    tool: str
    verdict: Verdict
    reasons: tuple[str, ...]
    """Why the reports are not comparable; otherwise empty."""
    time: Change
    """All kernels of the reports, each at its median launch."""
    noise: Noise
    plateau: bool
    pairs: tuple[Pair, ...]
    only_baseline: tuple[Side, ...]
    only_candidate: tuple[Side, ...]
    baseline: Named
    candidate: Named
    flags: tuple[str, ...] = ()


OWNER = Owner(
    format=FORMAT, version=VERSION, type=Diff, fix="kernelpilot ncu diff BASE CANDIDATE --out DIR"
)  # fmt: skip
