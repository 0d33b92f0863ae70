"""Launches that do the same thing, together: their time, the launch that stands for them, and what is left over."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.report import Launch, Report, Value

DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration_avg")
REGISTERS = "launch__registers_per_thread"
COVERED = 0.95
"""Groups are told one by one until this share of the time is reached; the rest is one bucket."""
AT_LEAST = 10
"""So many groups are told one by one in any case."""
AT_MOST = 256
"""No more are told one by one: a program of thousands of kernels has no hot one among the last."""
_ANONYMOUS = re.compile(r"<unnamed>|\(anonymous namespace\)|\(anonymous\)|_GLOBAL__N__\w+")
_CAST = re.compile(r"(?<=[<,(\s])\((?:unsigned )?(?:int|long|bool|char|short)\)(?=[-\d])")


def normalised(kernel: str) -> str:
    """A kernel's name without what compilers and demanglers write differently for the same function.

    >>> normalised("void  f<(int)8, a<b> >(int *)"), normalised("<unnamed>::g(int)")
    ('f<8, a<b>>(int *)', '{anonymous}::g(int)')
    """
    name = _CAST.sub("", _ANONYMOUS.sub("{anonymous}", " ".join(kernel.split())))
    return name.removeprefix("void ").replace("> >", ">>").replace("> >", ">>")


def duration(launch: Launch) -> float | None:
    """Nanoseconds of one launch; None where the file has none."""
    for name in DURATION:
        value = launch.metrics.get(name)
        if value is not None and value.number is not None and value.number >= 0 and value.unit in ("ns", ""):
            return float(value.number)
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """All launches with one name, grid, block, registers, device and process; or one range or graph."""

    kernel: str
    key: tuple[str, ...]
    launches: tuple[Launch, ...]
    """In the order of the file."""
    durations: tuple[float | None, ...]
    """Nanoseconds, launch by launch."""
    launch: Launch
    """The one of median duration; the lower one of two."""
    share: float | None
    """Of all time in the report; None when durations are missing and there are several groups."""

    @property
    def known(self) -> list[float]:
        """The durations that the file has."""
        return [d for d in self.durations if d is not None]

    @property
    def total(self) -> float | None:
        """Sum over launches; None when one of them has no duration."""
        return sum(self.known) if len(self.known) == len(self.durations) else None

    @property
    def median(self) -> float | None:
        """Duration of the representative launch."""
        return duration(self.launch)

    @property
    def warm_up(self) -> bool:
        """Whether the first launch alone is slower than all others by more than launches of one group differ."""
        first, *rest = self.durations
        others = [d for d in rest if d is not None]
        return first is not None and len(others) > 1 and first > (1 + limits.SPREAD) * max(others)

    @property
    def spread(self) -> float:
        """Longest over shortest launch, without a warm-up; 1 for one launch."""
        known = self.known[1:] if self.warm_up else self.known
        return max(known) / min(known) if known and min(known) > 0 else 1.0

    @property
    def extremes(self) -> tuple[Launch, ...]:
        """The shortest and the longest launch without a warm-up, where they are not the representative."""
        pairs = [(d, ix) for ix, d in enumerate(self.durations) if d is not None and not (self.warm_up and ix == 0)]
        ends = (min(pairs)[1], max(pairs)[1]) if pairs else ()
        return tuple(self.launches[ix] for ix in dict.fromkeys(ends) if self.launches[ix] is not self.launch)


@dataclass(frozen=True, kw_only=True, slots=True)
class Grouping:
    """The groups that are told one by one, by time, and those that are only counted."""

    shown: tuple[Workload, ...]
    other: tuple[Workload, ...]


def grouping(report: Report) -> Grouping:
    """Groups by time; ties in the order of their keys."""
    together: dict[tuple[str, ...], list[Launch]] = defaultdict(list)
    for launch in report.launches:
        together[key(launch)].append(launch)
    durations = {k: tuple(duration(launch) for launch in members) for k, members in together.items()}
    totals = {k: None if None in d else sum(x for x in d if x is not None) for k, d in durations.items()}
    known = [t for t in totals.values() if t is not None]
    total = sum(known) if len(known) == len(totals) and sum(known) > 0 else None
    groups = [
        Workload(
            kernel=members[0].kernel,
            key=k,
            launches=tuple(members),
            durations=durations[k],
            launch=members[_middle(durations[k])],
            share=_share(totals[k], total, len(together)),
        )
        for k, members in together.items()
    ]
    groups.sort(key=lambda g: (-(g.share or 0.0), g.key))
    cut = _cut([g.share for g in groups])
    return Grouping(shown=tuple(groups[:cut]), other=tuple(groups[cut:]))


def key(launch: Launch) -> tuple[str, ...]:
    """What two launches must share to be one group; a range or a graph is its own."""
    registers = launch.metrics.get(REGISTERS)
    place = (launch.device, launch.process)
    if launch.kind != "kernel":
        return (launch.kind, normalised(launch.kernel), *place, launch.id)
    return (normalised(launch.kernel), launch.grid, launch.block, _plain(registers), *place)


def _plain(value: Value | None) -> str:
    return "" if value is None or value.number is None else f"{value.number:g}"


def _middle(durations: Sequence[float | None]) -> int:
    order = sorted(range(len(durations)), key=lambda ix: (-1.0 if durations[ix] is None else durations[ix], ix))
    return order[(len(order) - 1) // 2]


def _share(time: float | None, total: float | None, groups: int) -> float | None:
    if groups == 1:
        return 1.0
    return None if time is None or total is None else time / total


def _cut(shares: Sequence[float | None]) -> int:
    covered = 0.0
    for ix, share in enumerate(shares):
        if ix >= AT_MOST or (ix >= AT_LEAST and (share is None or covered >= COVERED)):
            return ix
        covered += share or 0.0
    return len(shares)


def noise(workload: Workload) -> float | None:
    """Half the spread of a group's launches around their median, without a warm-up; None below three launches."""
    known = workload.known[1:] if workload.warm_up else workload.known
    if len(known) < 3:
        return None
    middle = sorted(known)[(len(known) - 1) // 2]
    return (max(known) - min(known)) / (2 * middle) if middle > 0 else None
