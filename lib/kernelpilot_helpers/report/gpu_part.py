"""The page's part on a GPU: figures, residency and clocks of the run that decided."""

from __future__ import annotations

from typing import Any

from kernelpilot_helpers.evidence import gpu_run
from kernelpilot_helpers.ledger import Row
from kernelpilot_helpers.report.model import ReportData, RunFacts


def deciding(data: ReportData, best: Row | None) -> RunFacts | None:
    """The run behind the best version's gain, where it was timed on a GPU."""
    found = data.runs.get(best.confirmed_by or "") if best is not None else None
    return found if found and found.bench and any(case.method for case in found.bench.cases) else None


def decided_by(data: ReportData, best: Row | None) -> str:
    """Which times decided, in words; empty on a CPU and for the baseline."""
    found = deciding(data, best)
    words = gpu_run.decided_by(found.gpu, found.bench) if found and found.bench else ""
    return f"Decided by {words}." if words else ""


def gpu_part(data: ReportData, best: Row | None) -> dict[str, Any] | None:
    """What the template shows; None where there is nothing to show."""
    found = deciding(data, best)
    if found is None or found.bench is None or best is None:
        return None
    columns, lines = gpu_run.table(found.gpu, found.bench)
    return {
        "run": found.run, "against": best.incumbent, "version": best.version, "columns": columns, "lines": lines,
        "clocks": gpu_run.clocks(found.gpu),
    }  # fmt: skip
