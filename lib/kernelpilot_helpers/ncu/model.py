"""What a digest is made of: readings with their provenance, one class a group, exactly one next step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from kernelpilot_helpers.ncu.change import Diff
from kernelpilot_helpers.ncu.hotspots import Hotspot
from kernelpilot_helpers.ncu.parts import Advice, Light, Occupancy, Other, Reader
from kernelpilot_helpers.ncu.phases import Phases
from kernelpilot_helpers.ncu.report import Kind, Session
from kernelpilot_helpers.ncu.roofline import Roofline
from kernelpilot_helpers.records import Owner

FORMAT = "kernelpilot.ncu-digest"
VERSION = 2
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


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One number in its base unit (ns, byte, hz, percent, plain count) and where it came from."""

    metric: str
    """The metric, or what a derived number was made of."""
    value: float
    unit: str
    file: int | None = None
    """Index in the digest's ``inputs``; absent for a derived number."""
    row: int | None = None
    """Row of a CSV file, or metric of a result in a binary report; counted from 1."""
    alias: int | None = None
    """Which of the role's names was found: 0 is the newest. Absent for a derived number."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A class that was considered and why it was not chosen; ``unknown`` when its metrics are missing."""

    name: str = msgspec.field(name="class")
    why: str
    unknown: bool = False


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to make the change; empty parts are not known."""

    function: str = ""
    file: str = ""
    line: int | None = None
    pc: str = ""
    """Offset in the function, hex."""
    opcode: str = ""
    share: float | None = None
    """Of the metric that ranks the places of this class."""


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to look up in the corpus of optimization pull requests."""

    text: str
    """Words for ``kernelpilot knowledge search``."""
    name: str = msgspec.field(name="class", default="")
    metrics: tuple[str, ...] = ()
    arch: str = ""
    """``sm_90``; empty where it is not known."""
    dsl: str = ""
    operator: str = ""
    command: str = ""


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
    target: Target = Target()
    bound: float | None = None
    """At most this share of the kernel's time can be won; None where nothing can be said."""
    risk: int = 1
    """0 changes nothing that results depend on, 1 changes the code's shape, 2 changes the algorithm or the numbers."""
    query: Query | None = None


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Launches that do the same thing; the numbers are those of the launch of median duration."""

    kernel: str
    grid: str
    block: str
    device: str
    process: str = ""
    kind: Kind = "kernel"
    """A range or a graph is one workload: nothing is claimed of a kernel in it."""
    launches: int
    duration_us: float | None
    """Of the representative launch, as ncu measured it (each launch alone)."""
    total_us: float | None = None
    """Of all launches of the group."""
    time_share: float | None
    """Of all launches in the file; None when durations are missing from a file with several groups."""
    warm_up: bool = False
    """The first launch was slower than all others; it counts in the time and not in the numbers."""
    name: str = msgspec.field(name="class")
    confidence: Confidence
    bound: float
    """Upper bound on the share of this group's time that the class can give back."""
    why: str
    step_kind: StepKind
    family: str = ""
    """What would be done about this group if it were the headline."""
    evidence: Mapping[str, Reading]
    """Readings by role."""
    supports: tuple[str, ...]
    """Roles that speak for the class."""
    contradicts: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    missing: tuple[str, ...]
    """Roles that were asked for and are not in the file."""
    flags: tuple[str, ...]
    speed_of_light: Mapping[str, Light] = {}
    occupancy: Occupancy | None = None
    stalls: Mapping[str, float] = {}
    """Share of each true stall reason, of one family."""
    hotspots: tuple[Hotspot, ...] = ()
    """Of the headline group alone."""
    phases: Phases | None = None
    roofline: Roofline | None = None
    advice: Advice | None = None
    """None where the report holds no rule results."""
    next_step: NextStep | None
    """Of the headline group alone: a file has one next step."""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file that was read; its name without folders."""

    name: str
    bytes: int
    sha256: str
    """Empty when the file was refused before it was read to its end."""
    form: str = ""
    """``report``, ``raw``, ``details``, ``source``, ``session``; empty for a refused file."""


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the caller said of the case; part of the answer's inputs."""

    case: str = ""
    min_bytes: int | None = None
    floor_us: float | None = None
    ceilings: Mapping[str, float] = {}
    """Measured ceilings, by the names of their file."""


class Digest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole answer: headline class, confidence, one next step, and every group by time."""

    format: str = FORMAT
    version: int = VERSION
    tool: str = ""
    """Version of KernelPilot."""
    thresholds: str = ""
    """Hash of every threshold that the answer rests on."""
    name: str = msgspec.field(name="class")
    confidence: Confidence
    next_step: NextStep
    groups: tuple[Group, ...]
    other: Other | None = None
    refused: Refusal | None
    headline: int | None
    """Index in ``groups`` of the group that the headline is about."""
    input: Input
    """The first file."""
    inputs: tuple[Input, ...] = ()
    """All files of the report."""
    session: Session = Session()
    given: Given = Given()
    parent: Diff | None = None
    """This report against its parent's."""
    locale: str = ""
    """``C`` (1,234.5) or ``comma`` (1.234,5); ``C assumed`` when the file holds no cell that tells them apart."""
    flags: tuple[str, ...] = ()
    reader: Reader = Reader(unknown_fields={}, ignored_lines=0, notes=())


OWNER = Owner(format=FORMAT, version=VERSION, type=Digest, fix="kernelpilot ncu digest FILE --out DIR")


class RefusedInput(Exception):
    """Raised while reading; carries the code and what was found. Turned into a Refusal by ``digest``."""

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        self.what = what
        super().__init__(f"{code}: {what}")
