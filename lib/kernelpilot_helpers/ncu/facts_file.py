"""``facts.json``: what a report holds that its digest rests on, small enough to be committed in the report's place.

The launch that stands for a group is kept with its aggregates, what its instructions say is kept as the digest says it,
and of the other launches only the time is kept: the digest of this file is the digest of the report.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.ncu import group, quantity, reach
from kernelpilot_helpers.ncu.hotspots import Hotspot
from kernelpilot_helpers.ncu.metrics import wanted
from kernelpilot_helpers.ncu.phases import Phases
from kernelpilot_helpers.ncu.redact import Redactor
from kernelpilot_helpers.ncu.report import File, Kind, Launch, Report, Rule, Series, Session, Value
from kernelpilot_helpers.records import Owner

FORMAT = "kernelpilot.ncu-facts"
VERSION = 1
_EXTREME = r"\.(min|max)(\.|$)"
_TWICE = r"\.sum\.pct_of_peak_sustained"
"""The same share as ``.avg.pct_of_peak_sustained``, which is what everybody reads."""
_SHARE = re.compile(r"(breakdown:)?\w+\.avg\.pct_of_peak_sustained_elapsed")
_NEVER = r"pmsampling:|[A-Z_]+\.Triage|group:|profiler__|nvlink__|pcie__|c2clink__|numa__|derived_temp|func__"
_ALWAYS = r"device__attribute_(display_name|multiprocessor_count|\w*l2_cache_size|max_\w+_per_multiprocessor)"
_SERIES = r"launch__occupancy_per_\w+|sass__inst_executed_per_opcode(_with_modifier_all)?"
LONGEST = 2000
Cell = tuple[float | int | str | None, str, int, int]
"""Number or text, unit, row, file."""


class Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One short series."""

    keys: tuple[int | str, ...]
    values: tuple[float | int | str | None, ...]


class LaunchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One launch; ``metrics`` holds only the time where another launch stands for the group."""

    id: str
    kernel: str
    grid: str
    block: str
    device: str
    cc: str
    stream: str
    process: str
    metrics: dict[str, Cell]
    kind: Kind = "kernel"
    function: str = ""
    mangled: str = ""
    context: str = ""
    nvtx: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    sections: tuple[str, ...] = ()
    place: str = ""
    hotspots: dict[str, tuple[Hotspot, ...]] = {}
    """By the class that they were ranked for."""
    phases: Phases | None = None
    code: str = ""
    """Hash of the kernel's instructions."""
    series: dict[str, Kept] = {}
    """Executed instructions by opcode, and occupancy by each resource."""


class FactsFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A report without its series, code and sources."""

    format: str = FORMAT
    version: int = VERSION
    files: tuple[File, ...]
    session: Session
    launches: tuple[LaunchRow, ...]
    locale: str = ""
    ignored_lines: int = 0
    notes: tuple[str, ...] = ()
    unknown_fields: dict[str, tuple[int, ...]] = {}


OWNER = Owner(
    format=FORMAT, version=VERSION, type=FactsFile, fix="kernelpilot ncu digest REPORT.ncu-rep --out DIR"
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """What the digest took from a launch's instructions and series."""

    hotspots: Mapping[str, tuple[Hotspot, ...]] = field(default_factory=dict)
    phases: Phases | None = None
    code: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded(Report):
    """A report that was read from facts.json."""

    derived: Mapping[str, Derived] = field(default_factory=dict)
    """By the launch's place in the file: ``LaunchRow`` order."""


def parse(data: bytes, *, at: str = "facts.json") -> Recorded:
    """The report that the file stands for; its ``files`` are those of the report. Raises BadRecord, NewerFormat."""
    found = records.parse(data, OWNER, at=at)
    if not found.files:
        raise BadRecord("names no file that it stands for", where=at, fix=OWNER.fix)
    launches = tuple(_launch(row) for row in found.launches)
    derived = {
        _at(launch): Derived(hotspots=row.hotspots, phases=row.phases, code=row.code)
        for launch, row in zip(launches, found.launches, strict=True)
        if row.hotspots or row.phases or row.code
    }
    return Recorded(
        files=found.files,
        launches=launches,
        session=found.session,
        locale=found.locale,
        ignored_lines=found.ignored_lines,
        notes=found.notes,
        unknown_fields=found.unknown_fields,
        derived=derived,
    )


def known(report: Report, launch: Launch) -> Derived | None:
    """What facts.json says of a launch's instructions; None for a report that holds them itself."""
    if not isinstance(report, Recorded):
        return None
    return report.derived.get(_at(launch), Derived())


def record(report: Report, derived: Mapping[str, Derived], *, redactor: Redactor) -> FactsFile:
    """What to write for a report; ``derived`` by ``at(launch)``, for the launches that stand for a group."""
    groups = group.grouping(report)
    full = {id(launch) for g in groups.shown for launch in (g.launch, *g.extremes)}
    stands = {id(g.launch) for g in groups.shown}
    rows = tuple(
        _row(report, launch, derived.get(_at(launch), Derived()), full=id(launch) in full, stands=id(launch) in stands)
        for launch in report.launches
    )
    whole = FactsFile(
        files=report.files,
        session=report.session,
        launches=rows,
        locale=report.locale,
        ignored_lines=report.ignored_lines,
        notes=report.notes,
        unknown_fields={k: tuple(v) for k, v in report.unknown_fields.items()},
    )
    plain = redactor.all(msgspec.to_builtins(whole))
    return msgspec.convert(plain, FactsFile)


def at(launch: Launch) -> str:
    """A launch's key in ``derived``."""
    return _at(launch)


def _at(launch: Launch) -> str:
    return f"{launch.place}/{launch.process}/{launch.id}"


def _kept(name: str, *, stands: bool) -> bool:
    """Whether an aggregate is kept of the launch that stands for a group; of its extremes, what names their class."""
    if wanted(name) or re.match(_ALWAYS, name):
        return True
    if not stands:
        return _SHARE.fullmatch(name) is not None
    if re.search(_EXTREME, name) or re.search(_TWICE, name) or re.match(_NEVER, name):
        return False
    return not name.startswith("device__")


def _row(report: Report, launch: Launch, derived: Derived, *, full: bool, stands: bool) -> LaunchRow:
    names = [n for n in launch.metrics if _kept(n, stands=stands)] if full else [*group.DURATION, group.REGISTERS]
    return LaunchRow(
        id=launch.id,
        kernel=launch.kernel,
        grid=launch.grid,
        block=launch.block,
        device=launch.device,
        cc=launch.cc,
        stream=launch.stream,
        process=launch.process,
        metrics={n: cell for n in sorted(names) if (cell := _cell(launch.metrics.get(n))) is not None},
        kind=launch.kind,
        function=launch.function,
        mangled=launch.mangled,
        context=launch.context,
        nvtx=launch.nvtx,
        rules=launch.rules if full else (),
        sections=launch.sections if full else (),
        place=launch.place,
        hotspots=dict(derived.hotspots),
        phases=derived.phases,
        code=build(report, launch).text if stands else "",
        series=_series(launch) if stands else {},
    )


def _series(launch: Launch) -> dict[str, Kept]:
    found = {n: launch.series[n] for n in sorted(launch.series) if re.fullmatch(_SERIES, n)}
    return {n: Kept(keys=one.keys, values=one.values) for n, one in found.items() if len(one.keys) <= LONGEST}


def build(report: Report, launch: Launch) -> reach.Build:
    """What is compared of a launch's machine code: from the report, or as facts.json keeps it."""
    kept, found = known(report, launch), reach.build(report, launch)
    return found if kept is None else msgspec.structs.replace(found, text=kept.code)


def _cell(value: Value | None) -> Cell | None:
    if value is None:
        return None
    if value.number is None:
        return (value.text, value.unit, value.row, value.file) if value.text else None
    return (value.number, value.unit, value.row, value.file) if math.isfinite(value.number) else None


def _launch(row: LaunchRow) -> Launch:
    metrics = {
        name: Value(
            number=None if isinstance(value, str) else value,
            text=value if isinstance(value, str) else "",
            unit=unit,
            row=place,
            file=file,
        )
        for name, (value, unit, place, file) in row.metrics.items()
        if isinstance(value, str) or value is None or quantity.plausible(value)
    }
    return Launch(
        id=row.id,
        kernel=row.kernel,
        grid=row.grid,
        block=row.block,
        device=row.device,
        cc=row.cc,
        stream=row.stream,
        process=row.process,
        metrics=metrics,
        kind=row.kind,
        function=row.function,
        mangled=row.mangled,
        context=row.context,
        nvtx=row.nvtx,
        rules=row.rules,
        sections=row.sections,
        place=row.place,
        series={name: Series(keys=kept.keys, values=kept.values) for name, kept in row.series.items()},
    )
