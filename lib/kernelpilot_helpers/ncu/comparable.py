"""Why two reports may not be compared: another GPU, other clocks, another profiler, caches, replay, or sizes."""

from __future__ import annotations

import re

from kernelpilot_helpers.ncu.diagnose import Diagnosis
from kernelpilot_helpers.ncu.report import Launch, Report

SAME = 0.10
"""ours: ratios this close are the same ratio."""
_NAME = "device__attribute_display_name"


def reports(baseline: Report, candidate: Report) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(what forbids a comparison, what could not be seen). Where one report is silent, nothing is forbidden."""
    forbids, unseen = [], []
    for what, before, after in (
        ("GPU", _gpu(baseline), _gpu(candidate)),
        ("compute capability", _cc(baseline), _cc(candidate)),
        ("clock control", baseline.session.clocks, candidate.session.clocks),
        ("major version of ncu", _major(baseline.session.ncu), _major(candidate.session.ncu)),
        ("cache control", baseline.session.cache, candidate.session.cache),
        ("replay mode", baseline.session.replay, candidate.session.replay),
    ):
        if before and after and before.lower() != after.lower():
            forbids.append(f"{what}: {before} against {after}")
        elif not before or not after:
            unseen.append(what)
    flags = (f"not seen in both reports: {', '.join(unseen)}",) if unseen else ()
    return tuple(forbids), flags


def _gpu(report: Report) -> str:
    if report.session.gpu:
        return report.session.gpu
    names = {value.text for launch in report.launches if (value := launch.metrics.get(_NAME)) is not None}
    return " and ".join(sorted(names))


def _cc(report: Report) -> str:
    return " and ".join(sorted({launch.cc for launch in report.launches if launch.cc}))


def _major(version: str) -> str:
    found = re.search(r"\d+", version)
    return found[0] if found else ""


def sizes(baseline: Diagnosis, candidate: Diagnosis, *, same_name: bool) -> str:
    """Why the two launches do not do the same work; empty when nothing speaks for that.

    Another grid alone is an edit. Another grid with as many more instructions and as many more bytes is another size.
    """
    if not same_name or baseline.launch.block != candidate.launch.block:
        return ""
    before, after = _blocks(baseline.launch), _blocks(candidate.launch)
    if not before or not after or abs(after / before - 1) <= SAME:
        return ""
    ratios = [_ratio(baseline, candidate, role) for role in ("instructions", "dram_bytes")]
    if all(r is not None and abs(r / (after / before) - 1) <= SAME for r in ratios):
        return (
            f"sizes: grid {baseline.launch.grid} against {candidate.launch.grid}, "
            "and instructions and bytes grew alike: another size of the same problem"
        )
    return ""


def _blocks(launch: Launch) -> int:
    sizes = [int(n) for n in re.findall(r"\d{1,10}", launch.grid)]
    return sizes[0] * sizes[1] * sizes[2] if len(sizes) == 3 else 0


def _ratio(baseline: Diagnosis, candidate: Diagnosis, role: str) -> float | None:
    before, after = (d.facts.readings.found.get(role) for d in (baseline, candidate))
    return None if before is None or after is None or before.value <= 0 else after.value / before.value
