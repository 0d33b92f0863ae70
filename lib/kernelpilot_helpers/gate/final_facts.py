"""What ``artifacts/FINAL.md`` rests on, picked out of the evidence; and whether its figures are the runs'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelpilot_helpers import ledger
from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.contract.model import Contract, Lock
from kernelpilot_helpers.correctness import Verification
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.evidence.loop import EXPORTED, JOURNAL
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate.facts import ATTEMPT
from kernelpilot_helpers.ledger import Row
from kernelpilot_helpers.records import Fault

FINAL_PATH = "artifacts/FINAL.md"
FIX = "kernelpilot report --final"
JOURNAL_PATH = f"{EXPORTED}/{JOURNAL}"
"""The loop's journal as exported beside FINAL.md: the loop's own folder is not in git."""
PER_RUN = frozenset({"started", "seconds", "finished", "pid", "load", "loadavg"})
"""Environment entries that differ from run to run by their nature."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalFacts:
    """The evidence once it is known to hold a contract, a lock and an attempt."""

    evidence: Evidence
    contract: Contract
    lock: Lock
    rows: tuple[Row, ...]
    """Rows of the lock's epoch."""
    best: Row
    unevaluated: tuple[str, ...]
    """``rule: why`` of every rule whose inputs are missing."""

    @property
    def tried(self) -> tuple[Row, ...]:
        """Attempts and rechecks of every epoch, in order."""
        return tuple(row for row in self.evidence.rows if row.kind in ("attempt", "recheck"))

    @property
    def kernels(self) -> tuple[Row, ...]:
        """Every version of this epoch that was the best once, or that the dispatcher uses."""
        table = self.evidence.tuning.table
        used = {rule.version for rule in table.rules} if table else set()
        return tuple(
            row
            for row in self.rows
            if row.kind == "attempt" and (row.status == "selected" or row.version in used | {self.best.version})
        )

    @property
    def several(self) -> bool:
        """Whether the contract names more than one baseline."""
        return len(self.contract.baseline) > 1

    @property
    def on_cpu(self) -> bool:
        """Whether the target is the embedded default device."""
        return self.contract.target.gpu.lower() == "cpu"


def facts_of(evidence: Evidence, unevaluated: tuple[str, ...]) -> FinalFacts:
    """Raises Refused, with the command that helps, when there is nothing to take stock of."""
    contract, lock = evidence.contract, evidence.lock
    if isinstance(contract, Fault):
        raise Refused(contract.what, where=contract.where, fix=contract.fix)
    if isinstance(lock, Fault):
        raise Refused(lock.what, where=lock.where, fix=lock.fix)
    rows = tuple(row for row in evidence.rows if row.epoch == lock.epoch)
    if not any(row.kind == "attempt" for row in rows):
        what = f"no attempt in epoch {lock.epoch}: there is nothing to take stock of"
        raise Refused(what, where=ledger.LINEAGE_PATH, fix=ATTEMPT.format(name="NAME"))
    return FinalFacts(
        evidence=evidence,
        contract=contract,
        lock=lock,
        rows=rows,
        best=ledger.best(evidence.rows, lock.epoch),
        unevaluated=unevaluated,
    )


def bench_of(evidence: Evidence, run: str | None) -> Bench | None:
    """The timing of a run, None where there is none that can be read."""
    facts = evidence.runs.get(run or "")
    return facts.bench if facts else None


def direct_run(evidence: Evidence, row: Row) -> str:
    """The run behind ``vs_baseline``: the confirmation, or the timed run that follows it; empty when there is none."""
    if row.confirmed_by not in row.runs:
        return ""
    if row.incumbent == ledger.BASELINE:
        return row.confirmed_by or ""
    after = row.runs[row.runs.index(row.confirmed_by or "") + 1 :]
    return next((run for run in after if bench_of(evidence, run)), "")


def direct_runs(evidence: Evidence, row: Row) -> tuple[str, ...]:
    """The direct runs behind ``vs_baseline``, one for each of several baselines in the contract's order."""
    if row.confirmed_by not in row.runs:
        return ()
    after = row.runs[row.runs.index(row.confirmed_by or "") + 1 :]
    own = (row.confirmed_by or "",) if row.incumbent == ledger.BASELINE else ()
    return (*own, *(run for run in after if bench_of(evidence, run)))


def timed_run(evidence: Evidence, row: Row) -> str:
    """The run behind ``gain``: the confirmation, else the last timed one; empty when none was timed."""
    if row.confirmed_by:
        return row.confirmed_by
    return next((run for run in reversed(row.runs) if bench_of(evidence, run)), "")


def verification_of(evidence: Evidence, row: Row) -> tuple[str, Verification] | None:
    """(run, judgement) of the last verification of a row; None when it has none."""
    for run in reversed(row.runs):
        facts = evidence.runs.get(run)
        if facts is not None and facts.verification is not None:
            return run, facts.verification
    return None


def reviewer_of(evidence: Evidence) -> str:
    """The loop's reviewer, from its journal or the exported copy of it; empty without a loop."""
    return evidence.loop.reviewer if evidence.loop else ""


def amendments_of(evidence: Evidence) -> tuple[str, ...]:
    """``plan: why`` and ``evidence: why`` of each amendment of the loop, on one line each; none without a loop."""
    return tuple(" ".join(said.split()) for said in (evidence.loop.amends if evidence.loop else ()))


def cite(source: str) -> str:
    """A run id, label or file in the form that a reader and ``check_final`` can follow."""
    return f"[{source}]" if source else "[no run]"


def fine(speedup: float) -> str:
    """A ratio to a tenth of a percent: a bound just short of its target must not look like it."""
    return f"{speedup:.3f}x"


def ratio(speedup: float, low: float | None, high: float | None) -> str:
    """``1.200x [1.198x, 1.201x]``, without the interval where two pairs gave none."""
    if low is None or high is None:
        return f"{fine(speedup)} (no interval)"
    return f"{fine(speedup)} [{fine(low)}, {fine(high)}]"


def sure(evidence: Evidence, row: Row, run: str) -> str:
    """Confidence of a run's intervals in words."""
    bench = bench_of(evidence, run)
    facts = ledger.BenchFacts(confidence=1 - bench.alpha) if bench else None
    return ledger.confidence(row.tier, facts)


def _figures(row: Row, evidence: Evidence) -> Mapping[str, tuple[ledger.Interval | None, str]]:
    return {
        "gain": (row.gain, timed_run(evidence, row)),
        "vs_baseline": (row.vs_baseline, direct_run(evidence, row)),
    }


def figure_faults(facts: FinalFacts) -> Iterator[Fault]:
    """Each figure of a kernel that is not the geomean of the run it is printed with."""
    for row in facts.kernels:
        for name, (figure, run) in _figures(row, facts.evidence).items():
            if figure is None or (name == "vs_baseline" and facts.several):
                continue  # of several baselines the fastest counts case by case: the ledger check judges that again
            bench = bench_of(facts.evidence, run)
            want = (figure.speedup, figure.ci_low, figure.ci_high)
            got = (bench.geomean.speedup, bench.geomean.ci_low, bench.geomean.ci_high) if bench else None
            if got != want:
                said = ratio(*got) if got else "nothing that can be read"
                what = f"{name} is {ratio(*want)} in the row, but {cite(run)} says {said}"
                yield Fault(where=f"{ledger.LINEAGE_PATH}: {row.version}", what=what, fix="kernelpilot ledger check")
