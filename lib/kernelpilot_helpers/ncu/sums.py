"""Aggregates of a launch that its source page implies: the sum of a count over all instructions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kernelpilot_helpers.ncu.report import Launch, Line, Value

_COUNTS = re.compile(
    r"inst_executed|thread_inst_executed|thread_inst_executed_true|smsp__pcsamp_sample_count"
    r"|smsp__pcsamp_warps_issue_stalled_\w+|memory_l1_tag_requests_global|memory_l1_wavefronts_shared(_ideal)?"
    r"|memory_l2_theoretical_sectors_(global(_ideal)?|local)"
    r"|derived__memory_(l1_wavefronts_shared|l2_theoretical_sectors_global)_excessive"
)
"""Metrics whose aggregate is the sum of their instances."""


def by_kernel(launches: Iterable[Launch], lines: Sequence[Line], *, file: int) -> Mapping[str, Mapping[str, Value]]:
    """Sums over the instructions of each kernel of which it is certain which launch they are of.

    The page has no launch ids: the kernel must be launched once in the report, and stand once on the page.
    """
    times = Counter(launch.kernel for launch in launches)
    mine: dict[str, list[Line]] = {kernel: [] for kernel, count in times.items() if count == 1}
    for line in lines:
        if line.view == "sass" and line.kernel in mine:
            mine[line.kernel].append(line)
    return {
        kernel: {name: Value(number=number, file=file) for name, number in _summed(held).items()}
        for kernel, held in mine.items()
        if held and len({line.address for line in held}) == len(held)
    }


def _summed(lines: Sequence[Line]) -> Mapping[str, float]:
    sums: dict[str, float] = {}
    for line in lines:
        for name, number in line.metrics.items():
            if _COUNTS.fullmatch(name):
                sums[name] = sums.get(name, 0.0) + number
    return sums
