"""Several files of one report as one: the most exact value of each metric, and no two that contradict each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kernelpilot_helpers.ncu import sums
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import Code, Launch, Report, Session, Value

ORDER = ("report", "facts", "raw", "details", "source", "session")
"""Best first: a binary report has every digit, a details page two."""
ROUNDING = 0.00501
"""Half of the second decimal, the last that is printed: absolute, and relative where a prefix keeps 1 <= n < 1000."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, eq=False)
class Layers(Mapping[str, _T]):
    """Mappings of which the first that has a key answers."""

    layers: tuple[Mapping[str, _T], ...]

    def __getitem__(self, key: str) -> _T:
        for layer in self.layers:
            if key in layer:
                return layer[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key for layer in self.layers for key in layer))

    def __len__(self) -> int:
        return len(dict.fromkeys(key for layer in self.layers for key in layer))


@dataclass(frozen=True, slots=True, eq=False)
class _Placed(Mapping[str, Value]):
    """Metrics whose values name the file that they came from."""

    metrics: Mapping[str, Value]
    file: int

    def __getitem__(self, key: str) -> Value:
        return dataclasses.replace(self.metrics[key], file=self.file)

    def __contains__(self, key: object) -> bool:
        return key in self.metrics

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)


def merge(reports: Sequence[Report]) -> Report:
    """One report of the files of one run. Launches are the same by id, and must then agree in what they are.

    What a source page counts for each instruction of a kernel that was launched once is summed for its launch.

    Raises RefusedInput ``merge.differ`` when the files contradict each other beyond print rounding.
    """
    if len(reports) == 1:
        return reports[0]
    ordered = sorted(reports, key=lambda r: ORDER.index(r.files[0].form) if r.files[0].form in ORDER else len(ORDER))
    launches: dict[tuple[str, int], Launch] = {}
    files = 0
    for report in ordered:
        for key, launch in _keyed(report.launches):
            placed = dataclasses.replace(launch, metrics=_Placed(launch.metrics, files))
            launches[key] = _joined(launches[key], placed) if key in launches else placed
        if report.lines:
            found = sums.by_kernel(launches.values(), report.lines, file=files)
            launches = {key: _with_sums(launch, found.get(launch.kernel, {})) for key, launch in launches.items()}
        files += len(report.files)
    return Report(
        files=tuple(file for report in ordered for file in report.files),
        launches=tuple(launches[key] for key in sorted(launches, key=_order)),
        session=_session([report.session for report in ordered]),
        code=_code(ordered),
        lines=tuple(line for report in ordered for line in report.lines),
        locale=next((report.locale for report in ordered if report.locale), ""),
        ignored_lines=sum(report.ignored_lines for report in ordered),
        notes=tuple(dict.fromkeys(note for report in ordered for note in report.notes)),
        unknown_fields={k: v for report in reversed(ordered) for k, v in report.unknown_fields.items()},
    )


def _keyed(launches: Sequence[Launch]) -> Iterator[tuple[tuple[str, int], Launch]]:
    """Each launch with its id, and how often that id came before: processes of a live run count from 0 each."""
    seen: dict[str, int] = {}
    for launch in launches:
        at = seen.get(launch.id, 0)
        seen[launch.id] = at + 1
        yield (launch.id, at), launch


def _order(key: tuple[str, int]) -> tuple[int, int, str]:
    return key[1], int(key[0]) if key[0].isdigit() else 0, key[0]


def _joined(best: Launch, other: Launch) -> Launch:
    """One launch of two files."""
    for part in ("grid", "block", "device", "cc", "function"):
        one, two = getattr(best, part), getattr(other, part)
        if one and two and one != two:
            raise RefusedInput(
                "merge.differ", f"launch {best.id}: {part} {one[:80]} in one file, {two[:80]} in another"
            )
    for name in other.metrics:
        if name in best.metrics and not agree(best.metrics[name], other.metrics[name]):
            one, two = (_shown(launch.metrics[name]) for launch in (best, other))
            raise RefusedInput("merge.differ", f"launch {best.id}: {name[:100]} is {one} in one file, {two} in another")
    words = {part: getattr(best, part) or getattr(other, part) for part in (
        "grid", "block", "device", "cc", "stream", "process", "context", "function", "mangled", "code", "rules", "nvtx",
    )}  # fmt: skip
    return dataclasses.replace(
        best,
        metrics=Layers((best.metrics, other.metrics)),
        series=Layers((best.series, other.series)),
        sections=tuple(dict.fromkeys((*best.sections, *other.sections))),
        **words,
    )


def _with_sums(launch: Launch, found: Mapping[str, Value]) -> Launch:
    """The launch with what its source page adds; of a page of another run nothing is added."""
    for name, value in found.items():
        if name in launch.metrics and not agree(launch.metrics[name], value):
            raise RefusedInput(
                "merge.differ",
                f"launch {launch.id}: {name[:100]} is {_shown(launch.metrics[name])}, "
                f"but the lines of its source page add up to {_shown(value)}",
            )
    return dataclasses.replace(launch, metrics=Layers((launch.metrics, found))) if found else launch


def agree(one: Value, two: Value) -> bool:
    """Whether two values of a metric can be prints of one number. Units that are spelled differently say nothing."""
    if one.number is None or two.number is None:
        return one.number is not two.number or one.text == two.text
    # ncu prints a difference of two counters that came out below zero as 0.
    left, right = max(one.number, 0), max(two.number, 0)
    return abs(left - right) <= ROUNDING * max(1.0, left, right)


def _shown(value: Value) -> str:
    return f"{value.number:.6g} {value.unit}".strip() if value.number is not None else value.text[:80]


def _session(sessions: Sequence[Session]) -> Session:
    """The first that says something, part by part. Raises RefusedInput when they name different GPUs."""
    gpus = dict.fromkeys(s.gpu for s in sessions if s.gpu)
    if len(gpus) > 1:
        raise RefusedInput("merge.differ", f"the files name different GPUs: {', '.join(g[:60] for g in gpus)}")
    parts = (field.name for field in dataclasses.fields(Session))
    return Session(**{part: next((getattr(s, part) for s in sessions if getattr(s, part)), "") for part in parts})


def _code(reports: Sequence[Report]) -> Mapping[str, Code]:
    held = tuple(report.code for report in reports if report.code)
    return held[0] if len(held) == 1 else Layers(held)
