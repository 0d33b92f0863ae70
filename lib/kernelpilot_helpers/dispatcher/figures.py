"""Questions that the choice asks of a map: how fast a version is on some cases, and whether that is sure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpilot_helpers.autotune import Cell, MapCase, PerformanceMap
from kernelpilot_helpers.dispatcher.model import BASELINE
from kernelpilot_helpers.policy import DEVICES, POLICY


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """A map, indexed."""

    cells: dict[tuple[str, str], Cell]
    versions: tuple[str, ...]
    weighted: bool
    margin: float
    """Fraction by which a case may be slower than the baseline and still count as no worse."""

    def ratio(self, version: str, cases: Sequence[MapCase], end: str = "speedup") -> float:
        """Objective over these cases, from one end of each case's interval: geomean, or weighted total time."""
        ends = [(case, self.cells[case.case_id, version]) for case in cases]
        if not self.weighted:
            return math.exp(math.fsum(math.log(getattr(c.vs_baseline, end)) for _, c in ends) / len(ends))
        before = math.fsum(case.calls * c.baseline_us for case, c in ends)
        return before / math.fsum(case.calls * c.baseline_us / getattr(c.vs_baseline, end) for case, c in ends)

    def fastest(self, cases: Sequence[MapCase]) -> str:
        """The version with the best objective over these cases, sure or not."""
        return self.fastest_of(self.versions, cases)

    def fastest_of(self, versions: Sequence[str], cases: Sequence[MapCase]) -> str:
        """The same among some versions."""
        return max(versions, key=lambda v: (self.ratio(v, cases), v))

    def best(self, cases: Sequence[MapCase]) -> str:
        """The best version that beats the baseline over these cases and is no worse on any; else ``baseline``."""
        good = [v for v in self.versions if not self.doubt(v, cases)]
        return max(good, key=lambda v: (self.ratio(v, cases), v), default=BASELINE)

    def doubt(self, version: str, cases: Sequence[MapCase]) -> str:
        """Why a version may not serve these cases; empty when it may."""
        late = [c.case_id for c in cases if self.cells[c.case_id, version].vs_baseline.ci_low <= 1 - self.margin]
        if late:
            return f"not shown to be no slower than the baseline on {', '.join(late)}"
        if self.ratio(version, cases) < 1 + POLICY.improved_point or self.ratio(version, cases, "ci_low") <= 1:
            return "not shown to be faster than the baseline"
        return ""

    def slower(self, version: str, other: str, case: MapCase) -> bool:
        """Whether ``version`` is slower than ``other`` on a case beyond both intervals."""
        if version == other:
            return False
        low = 1.0 if other == BASELINE else self.cells[case.case_id, other].vs_baseline.ci_low
        high = 1.0 if version == BASELINE else self.cells[case.case_id, version].vs_baseline.ci_high
        return high < low

    def beaten(self, version: str, case: MapCase) -> str:
        """The fastest program that beats ``version`` on a case beyond both intervals; empty when none does."""
        points = {v: self.cells[case.case_id, v].vs_baseline.speedup for v in self.versions} | {BASELINE: 1.0}
        winners = [v for v in points if self.slower(version, v, case)]
        return max(winners, key=lambda v: (points[v], v), default="")


def figures(found: PerformanceMap) -> Figures:
    """Index a map."""
    return Figures(
        cells={(c.case_id, c.version): c for c in found.cells},
        versions=tuple(v.version for v in found.variants),
        weighted=found.objective == "total_time",
        margin=DEVICES[found.device].noninferiority,
    )
