"""What a digest is made of: readings with their provenance, one class a group, exactly one next step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from kernelpilot_helpers.records import Owner

FORMAT = "kernelpilot.ncu-digest"
VERSION = 1
INSUFFICIENT = "none.insufficient"
REFUSED = "none.refused"

Confidence = Literal["high", "medium", "low", "none"]
StepKind = Literal["edit", "capture", "stop"]
RANK: Mapping[str, int] = {"none": 0, "low": 1, "medium": 2, "high": 3}


class Refusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a file gives no digest: a stable code, what was found, and the command that makes the right file."""

    code: str
    what: str
    fix: str


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number in its base unit (ns, byte, hz, percent, plain count) and the columns that it came from."""

    metric: str
    value: float
    unit: str


class Rejected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A class that was considered and why it was not chosen; ``unknown`` when its metrics are missing."""

    name: str = msgspec.field(name="class")
    why: str
    unknown: bool = False


class NextStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The one thing to do now."""

    kind: StepKind
    family: str = ""
    """Id of the edit family, or of the capture."""
    what: str
    why: str
    command: str
    """Verifies an edit, or makes the missing capture."""
    expect: str
    """Which metric moves from where toward what; for a capture, what it will decide."""
    guard: str
    """What must not get worse."""
    refute: str = ""
    """What would show that the step was wrong."""


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All launches with one name, grid and block; the numbers are those of the launch of median duration."""

    kernel: str
    grid: str
    block: str
    device: str
    launches: int
    duration_us: float | None
    """Of the representative launch, as ncu measured it (each launch alone)."""
    time_share: float | None
    """Of all launches in the file; None when durations are missing from a file with several groups."""
    name: str = msgspec.field(name="class")
    confidence: Confidence
    bound: float
    """Upper bound on the share of this group's time that the class can give back."""
    why: str
    evidence: Mapping[str, Reading]
    """Readings by role."""
    supports: tuple[str, ...]
    """Roles that speak for the class."""
    contradicts: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    missing: tuple[str, ...]
    """Roles that were asked for and are not in the file."""
    flags: tuple[str, ...]
    next_step: NextStep


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file that was read; its name without folders."""

    name: str
    bytes: int
    sha256: str
    """Empty when the file was refused before it was read to its end."""


class Digest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole answer: headline class, confidence, one next step, and every group by time."""

    format: str = FORMAT
    version: int = VERSION
    name: str = msgspec.field(name="class")
    confidence: Confidence
    next_step: NextStep
    groups: tuple[Group, ...]
    refused: Refusal | None
    headline: int | None
    """Index in ``groups`` of the group that the headline is about."""
    input: Input
    locale: str = ""
    """``C`` (1,234.5) or ``comma`` (1.234,5); ``C assumed`` when the file holds no cell that tells them apart."""
    flags: tuple[str, ...] = ()


OWNER = Owner(
    format=FORMAT, version=VERSION, type=Digest, fix="python -m kernelpilot_helpers.ncu digest FILE --out DIR"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A metric's text and its unit's text, as the file has them."""

    text: str
    unit: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One row of the raw page: identity and the metric cells that the digest may use."""

    id: str
    kernel: str
    grid: str
    block: str
    device: str
    cc: str
    stream: str
    process: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """One parsed raw page."""

    launches: tuple[Launch, ...]
    locale: str
    ignored_lines: int
    """Banner and program output lines that are no part of the table."""


class RefusedInput(Exception):
    """Raised while reading; carries the code and what was found. Turned into a Refusal by ``digest``."""

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        self.what = what
        super().__init__(f"{code}: {what}")
