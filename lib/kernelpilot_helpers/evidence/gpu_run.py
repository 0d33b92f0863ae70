"""What a run on a GPU shows beside its deciding times: reported figures, residency, clocks. Shown, never judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from kernelpilot_helpers.attempt.raw import FigureTime, GpuLook, Residency
from kernelpilot_helpers.benchmark import Bench, CaseBench

FIGURES = ("pipelined", "isolated", "chained", "host", "sustained", "floor", "touch")
"""Columns of the table, in order; those that nobody measured are left out."""
MEASURED = ("time", "figures")
"""Phases whose clocks are told."""
ABSENT = "-"


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuRun:
    """The parts of one ``raw.json``; all empty on a CPU."""

    figures: tuple[FigureTime, ...] = ()
    residency: tuple[Residency, ...] = ()
    looks: tuple[GpuLook, ...] = ()


def decided_by(run: GpuRun, bench: Bench) -> str:
    """Which figure decided, how it was timed and where the tensors were; empty on a CPU.

    One clause for cases that were measured alike, which are named where there are several clauses.
    """
    ways: dict[str, list[str]] = {}
    for case in bench.cases:
        if case.method:
            ways.setdefault(_way(run, case), []).append(case.case_id)
    if len(ways) == 1:
        return next(iter(ways))
    return "; ".join(f"{way} ({', '.join(cases)})" for way, cases in ways.items())


def _way(run: GpuRun, case: CaseBench) -> str:
    how = "graph replay" if case.method == "graph" else "event pairs"
    return ", ".join(part for part in (f"{case.figure} times by {how}", residency(run, case.case_id)) if part)


def residency(run: GpuRun, case_id: str) -> str:
    """``hot x, residual; cold weight``; a tensor that is not where it was asked to be says so."""
    held: dict[str, list[str]] = {}
    for one in run.residency:
        if one.case_id == case_id:
            missed = "" if one.reached == one.asked else f" (asked {one.asked})"
            held.setdefault(one.reached, []).append(f"{one.tensor}{missed}")
    return "; ".join(f"{reached} {', '.join(dict.fromkeys(names))}" for reached, names in held.items())


def table(run: GpuRun, bench: Bench) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(columns, one line a case): every figure as first arm -> second arm, microseconds a call."""
    found = {(f.case_id, f.figure, f.arm): f for f in run.figures}
    names = [name for name in FIGURES if any(f.figure == name for f in run.figures)]
    shown = [case for case in bench.cases if case.method]
    body = [
        (
            case.case_id,
            f"{case.figure} {case.a_us:.2f} -> {case.b_us:.2f}",
            *(_cell(found, case.case_id, name) for name in names),
            residency(run, case.case_id) or ABSENT,
        )
        for case in shown
    ]
    return ("Case", "Decided by, us", *(f"{name}, us" for name in names), "Where the tensors were"), body


def _cell(found: dict[tuple[str, str, str], FigureTime], case_id: str, name: str) -> str:
    sides = [found.get((case_id, name, arm)) for arm in ("A", "B")]
    text = " -> ".join(f"{one.us:.2f}" if one else ABSENT for one in sides)
    joules = [f"{one.joules * 1e6:.0f}" if one and one.joules is not None else ABSENT for one in sides]
    power = f" ({' -> '.join(joules)} uJ)" if joules != [ABSENT, ABSENT] else ""
    notes = "; ".join(dict.fromkeys(one.note for one in sides if one and one.note))
    return f"{text}{power}" + (f" ({notes})" if notes else "")


def clocks(run: GpuRun) -> str:
    """Clocks, temperature and power while times were read, and what slowed them down; empty where nobody looked."""
    looks = [look for look in run.looks if look.phase in MEASURED]
    if not looks:
        return ""
    least, most = min(look.sm_mhz[0] for look in looks), max(look.sm_mhz[2] for look in looks)
    middle = median(look.sm_mhz[1] for look in looks)
    reasons = ", ".join(dict.fromkeys(reason for look in looks for reason in look.reasons)) or "nothing"
    return (
        f"SM clock {least} to {most} MHz (median {middle:g}), memory {_span([x.mem_mhz for x in looks])} MHz, "
        f"{_span([t for x in looks for t in x.temp_c])} C, {_span([round(p) for x in looks for p in x.power_w])} W; "
        f"held back by: {reasons}"
    )


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
