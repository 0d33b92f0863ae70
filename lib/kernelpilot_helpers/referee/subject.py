"""What is profiled: which version, on which case, and what shows that it is correct."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from kernelpilot_helpers import contract as contracts
from kernelpilot_helpers import ledger
from kernelpilot_helpers.attempt.job import JobCase, TensorSpec
from kernelpilot_helpers.benchmark import CaseBench
from kernelpilot_helpers.benchmark.physics import cold_bytes
from kernelpilot_helpers.contract.dtypes import BYTES
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.evidence import run_facts
from kernelpilot_helpers.evidence.model import RunFacts
from kernelpilot_helpers.ledger.model import Row
from kernelpilot_helpers.referee import jobs, runs
from kernelpilot_helpers.referee.workspace import Workspace

BASELINE = "baseline"
BAD = ("WRONG", "BROKEN")
ROLES = ("confirm", "main", "more", "baseline")
"""Runs in which a case's times are looked for, the best first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A correct version and one of its cases."""

    row: Row
    case: JobCase
    regime: str
    run: str
    """That shows it correct."""
    runs: tuple[RunFacts, ...]

    @property
    def program(self) -> bool:
        """Whether it is the baseline."""
        return self.row.kind == "baseline"

    @property
    def residency(self) -> str:
        """Where most bytes of a call are when it begins: hot or cold."""
        held = {"hot": 0, "cold": 0}
        for tensor in self.case.tensors:
            held[tensor.residency] += size(tensor)
        return "hot" if held["hot"] > held["cold"] else "cold"

    @property
    def min_bytes(self) -> int | None:
        """Bytes that a call cannot help moving; None where nothing of it is cold."""
        return cold_bytes(self.case) or None

    @property
    def arm(self) -> str:
        """Name of this version's arm in its runs."""
        return "A" if self.program else "B"

    @property
    def kernels(self) -> tuple[tuple[str, int], ...]:
        """(name, launches a call) as the newest run saw them."""
        for run in reversed(self.runs):
            found = run.inventory.get((self.arm, self.case.case_id))
            if found:
                return found
        return ()

    @property
    def floor_us(self) -> float | None:
        """Time of a kernel that only moves the same bytes, where a run measured it."""
        found = [
            f.us for r in self.runs for f in r.gpu.figures if (f.case_id, f.figure) == (self.case.case_id, "touch")
        ]
        return found[-1] if found else None


def size(tensor: TensorSpec) -> int:
    """Bytes of a tensor's elements; none of a scalar."""
    return 0 if tensor.role == "scalar" else math.prod(tensor.shape) * BYTES.get(tensor.dtype, 1)


def program_of(ws: Workspace, subject: Subject) -> jobs.Program:
    """What to run."""
    tree = subject.row.tree
    return jobs.baseline_program(ws, tree) if subject.program else jobs.variant_program(tree)


def choose(ws: Workspace, *, version: str | None, variant: str | None, case_id: str | None) -> Subject:
    """The subject asked for; default: the incumbent, on its regressed required case or else the one with most time.

    Raises Refused for a CPU task, an unknown version or case, and a version that was not shown correct.
    """
    if contracts.device(ws.contract.target) != "gpu":
        what = "this task is for a CPU: there is no kernel that ncu could profile"
        raise Refused(what, where="contract.toml: target.gpu", fix="kernelpilot bench  # times are what a CPU task has")
    row = _row(ws, version, variant)
    _require_correct(ws, row)
    found = tuple(run_facts.load(runs.run_dir(ws.root, run)) for run in row.runs)
    case = _case(ws, case_id, found)
    if case.case_id in (".", ".."):
        what = f"case {case.case_id!r} can be no folder's name"
        raise Refused(what, where="workloads/cases.jsonl", fix="kernelpilot lock --amend  # after renaming the case")
    regimes = {c.case_id: c.regime for c in ws.cases}
    proof = row.confirmed_by or next((r.run for r in found if r.role in (*ROLES, "audit", "floor")), "")
    return Subject(
        row=row, case=case, regime=regimes.get(case.case_id, "default"), run=proof or "", runs=found
    )  # fmt: skip


def _row(ws: Workspace, version: str | None, variant: str | None) -> Row:
    if version is not None and variant is not None:
        raise Refused("--version and --variant name the same thing twice", fix="give one of them")
    if version in (BASELINE, ledger.BASELINE) or (version is None and variant == BASELINE):
        return ws.baseline()
    if version is not None:
        row = ledger.find(ws.rows, version)
        if row.epoch != ws.epoch:
            what = f"{row.version} was judged under another contract (epoch {row.epoch}, now {ws.epoch})"
            raise Refused(what, fix=f'kernelpilot attempt {row.variant} --motivation "the same under the new contract"')
        return row
    if variant is not None:
        name = variant.rstrip("/").rpartition("/")[2]
        mine = [r for r in ws.rows if r.variant == name and r.kind == "attempt" and r.epoch == ws.epoch]
        if not mine:
            what = f"variant {name!r} was never attempted: only a version that was shown correct is profiled"
            raise Refused(what, where=f"{ws.variants}/{name}", fix=f'kernelpilot attempt {name} --motivation "..."')
        return mine[-1]
    return ws.best()


def _require_correct(ws: Workspace, row: Row) -> None:
    if row.kind == "baseline":
        return
    wrong = [r for r in ledger.by_tree(ws.rows, row.tree, row.epoch) if r.verdict in BAD]
    if row.verdict is None or wrong:
        said = wrong[-1] if wrong else row
        what = f"{row.version} is {said.verdict} ({said.reason[:160]}): an incorrect version is not profiled"
        fix = f"kernelpilot verify {row.variant}  # mend it, then: kernelpilot attempt {row.variant} --motivation TEXT"
        raise Refused(what, where=row.version, fix=fix)


def _case(ws: Workspace, asked: str | None, found: tuple[RunFacts, ...]) -> JobCase:
    by_id = {case.case_id: case for case in ws.resolved}
    if asked is not None:
        if asked not in by_id:
            timed = ", ".join(ws.timed)
            raise Refused(
                f"no case {asked!r} (timed are: {timed})", where="workloads/cases.jsonl", fix=f"--case {ws.timed[0]}"
            )
        return by_id[asked]
    benched = benches(found)
    slower = regressed(benched)
    if slower:
        return by_id.get(slower[0].case_id, by_id[ws.timed[0]])
    calls = {c.case_id: c.calls for c in ws.cases}

    def weight(case_id: str) -> tuple[float, int]:
        us = next((c.b_us for c in benched if c.case_id == case_id), 0.0)
        return us * calls.get(case_id, 1), sum(map(size, by_id[case_id].tensors)) * calls.get(case_id, 1)

    return by_id[max(ws.timed, key=weight)]


def benches(found: tuple[RunFacts, ...]) -> tuple[CaseBench, ...]:
    """Cases of the run that says most of a version."""
    for role in ROLES:
        for run in found:
            if run.role == role and run.bench is not None:
                return run.bench.cases
    return ()


def regressed(cases: tuple[CaseBench, ...]) -> list[CaseBench]:
    """Required cases that are slower beyond doubt, the worst first."""
    slower: Iterator[CaseBench] = (c for c in cases if c.required and c.ci_high is not None and c.ci_high < 1)
    return sorted(slower, key=lambda c: c.speedup)
