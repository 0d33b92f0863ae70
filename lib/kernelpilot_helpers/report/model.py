"""What a report tells: rows, the runs behind them, and everything that could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.correctness import Verification
from kernelpilot_helpers.evidence.gpu_run import GpuRun
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate.model import Report
from kernelpilot_helpers.ledger import BenchFacts, Row, facts_of
from kernelpilot_helpers.records import Fault


class FloorFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows of an A/A control. Both figures are log ratios, 0.01 is about 1 %."""

    run: str
    at: str = ""
    half_width: float
    point: float
    fit: bool
    reason: str = ""


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One run directory as read; ``problems`` says, in words, what could not be read of it."""

    run: str
    bench: Bench | None = None
    verification: Verification | None = None
    floor: FloorFacts | None = None
    env: dict[str, Any] = {}
    gpu: GpuRun = GpuRun()
    problems: tuple[str, ...] = ()


class ReportData(msgspec.Struct, frozen=True, kw_only=True):
    """Everything ``render`` needs; an empty task is a report too."""

    task: str
    summary: str = ""
    gpu: str = "cpu"
    target: float | None = None
    """Speed-up over the baseline that the contract asks for."""
    baselines: int = 1
    """How many the contract names; of several the fastest counts, case by case."""
    epoch: int = 0
    mutation_score: str = ""
    survivors: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    runs: dict[str, RunFacts] = {}
    faults: tuple[Fault, ...] = ()
    evidence: Evidence | None = None
    """Loop, git and tuning facts; None: this page was made without them, and says so."""
    gate: Report | None = None

    def benches(self) -> dict[str, BenchFacts]:
        """Timing facts by run id, as the ledgers take them."""
        return {
            run: facts_of(
                [(c.case_id, c.speedup, c.a_us, c.b_us) for c in facts.bench.cases],
                confidence=1 - facts.bench.alpha,
            )
            for run, facts in self.runs.items()
            if facts.bench is not None
        }


def with_faults(data: ReportData, faults: Sequence[Fault]) -> ReportData:
    """The same page with more to say under what could not be trusted."""
    return msgspec.structs.replace(data, faults=(*data.faults, *faults))
