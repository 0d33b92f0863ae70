"""Metrics by instruction of one launch, whether from a binary report's instances or from a source page."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import lines, sass
from kernelpilot_helpers.ncu.report import Launch, Report

Where = tuple[str, int]
"""(function, byte offset), or (file, line) of a page that shows source lines only."""
MAX_PCS = 1_000_000
STALL = "smsp__pcsamp_warps_issue_stalled_"
OLD_STALL = "smsp__pcsamp_warp_stall_"
_EVERY_PC = ("inst_executed", "smsp__pcsamp_sample_count")
NO_STALL = ("selected", "not_selected")


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """Values by metric and place."""

    symbol: str
    """The launch's function."""
    metrics: Mapping[str, Mapping[Where, float]]
    places: Mapping[Where, lines.Place] = field(default_factory=dict)
    """Source lines that a page states itself."""
    texts: Mapping[Where, str] = field(default_factory=dict)
    """Source text that a page states itself, by (file, line)."""
    whole_lines: bool = False
    """The keys are source lines, not instructions."""

    def total(self, names: Sequence[str]) -> dict[Where, float]:
        """Sum of several metrics at each place."""
        found: dict[Where, float] = {}
        for name in names:
            for where, value in self.metrics.get(name, {}).items():
                found[where] = found.get(where, 0.0) + value
        return found

    def reasons(self, suffix: str) -> dict[str, str]:
        """Metric by stall reason, of the true stalls; ``suffix`` is ``_not_issued`` or empty."""
        found = {}
        for name in self.metrics:
            for prefix in (STALL, OLD_STALL):
                reason = name.removeprefix(prefix)
                if reason != name and reason.endswith("_not_issued") == bool(suffix):
                    reason = reason.removesuffix("_not_issued")
                    if reason not in NO_STALL and not reason.startswith("reasons"):
                        found[reason] = name
        return found


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Instances(Mapping[str, Mapping[Where, float]]):
    """Instances of a binary report by metric and place, each decoded when it is asked for: most never are."""

    launch: Launch
    names: tuple[str, ...]
    locate: Callable[[int], Where]
    decoded: dict[str, dict[Where, float]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Mapping[Where, float]:
        if name not in self.names:
            raise KeyError(name)
        if name not in self.decoded:
            found = self.decoded[name] = {}
            one = self.launch.series[name]
            for key, value in zip(one.keys[:MAX_PCS], one.values, strict=False) if one.kind == 0 else ():
                if isinstance(key, int) and isinstance(value, (int, float)) and value > 0:
                    where = self.locate(key)
                    found[where] = found.get(where, 0.0) + value
        return self.decoded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def counts(report: Report, launch: Launch, names: Iterable[str]) -> Counts:
    """What is known by instruction; empty metrics where nothing is.

    ``names`` are the metrics by instruction that are wanted, besides the stall samples.
    """
    symbol = launch.mangled or launch.function or launch.kernel
    wanted = set(names)
    held = tuple(n for n in launch.series if n in wanted or n.startswith((STALL, OLD_STALL)))
    if held:
        # an aggregate of 0 has instances of 0 only: not worth decoding
        totals = {n: launch.metrics[n].number for n in held if n in launch.metrics and n.startswith((STALL, OLD_STALL))}
        held = tuple(n for n in held if totals.get(n) != 0)
        metrics = _Instances(launch=launch, names=held, locate=_locator(report, launch, symbol, held))
        return Counts(symbol=symbol, metrics=metrics, places=_stated(report, launch, symbol))
    return _of_page(report, launch, symbol)


def _locator(report: Report, launch: Launch, symbol: str, held: Sequence[str]) -> Callable[[int], Where]:
    """From a program counter to its function and offset."""
    code = report.code.get(launch.code)
    starts = sorted((address, name) for name, address in (code.functions if code else ()))
    if all(name != symbol for _, name in starts):
        own = launch.series.get("launch__function_pcs")
        base = own.values[0] if own is not None and own.values and isinstance(own.values[0], int) else None
        if base is None:
            keys = (k for n in [n for n in launch.series if n in _EVERY_PC] or held for k in launch.series[n].keys)
            base = min((k for k in keys if isinstance(k, int)), default=0)
            page = sass.page_lines(report, launch)
            if page and page[0][0] <= base <= page[-1][0]:  # a page of the same run: it begins with the function
                base = page[0][0]
        starts = [(base, symbol)]
    addresses = [address for address, _ in starts]

    def locate(pc: int) -> Where:
        address, name = starts[max(0, bisect.bisect_right(addresses, pc) - 1)]
        return name, pc - address

    return locate


def _stated(report: Report, launch: Launch, symbol: str) -> dict[Where, lines.Place]:
    """Source lines of instructions on a page that shows both."""
    found = sass.page_lines(report, launch)
    base = found[0][0] if found else 0
    stated = {}
    for address, index in found:
        line = report.lines[index]
        if line.file and line.line is not None:
            stated[symbol, address - base] = lines.Place(file=line.file, line=line.line)
    return stated


def _of_page(report: Report, launch: Launch, symbol: str) -> Counts:
    metrics: dict[str, dict[Where, float]] = {}
    found = sass.page_lines(report, launch)
    base = found[0][0] if found else 0
    for address, index in found:
        for name, value in report.lines[index].metrics.items():
            metrics.setdefault(name, {})[symbol, address - base] = value
    texts = {}
    coarse = not any(line.view == "sass" for line in report.lines)
    for line in report.lines:
        if line.view == "cuda" and line.line is not None:
            texts[line.file, line.line] = line.text
            if coarse and (not line.kernel or sass.same_kernel(line.kernel, launch)):
                for name, value in line.metrics.items():
                    metrics.setdefault(name, {})[line.file, line.line] = value
    stated = _stated(report, launch, symbol)
    return Counts(symbol=symbol, metrics=metrics, places=stated, texts=texts, whole_lines=coarse)
