"""Rules over the runs: verified on all of W, timed completely, comparable, bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kernelpilot_helpers.evidence.model import Evidence, RunFacts
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.audited import Found, under
from kernelpilot_helpers.gate.facts import epoch_rows
from kernelpilot_helpers.gate.model import NotEvaluated, Rule
from kernelpilot_helpers.ledger import Row
from kernelpilot_helpers.policy import Policy
from kernelpilot_helpers.units import geomean

RUNS = "artifacts/runs/"
ENVIRONMENT = ("python", "cpu", "machine", "boot_id", "framework")
"""Fields of a run's environment that must say something."""
BOOKING = ("boot_id", "framework", "framework_version", "python", "cpu", "machine", "gpu_uuid", "driver", "compiler")
"""Fields that must be equal in measurements that are judged together."""
AGAIN = 'kernelpilot attempt {variant} --again --motivation "recheck"'


def _timed(evidence: Evidence) -> Iterator[tuple[Row, RunFacts]]:
    """Runs that stand behind a figure of this epoch: of tried rows with a gain, the runs with a timed job."""
    for row in epoch_rows(evidence):
        if row.kind in facts.TRIED and row.gain is not None:
            for run in row.runs:
                found = evidence.runs.get(run)
                if found is not None and found.role in ("main", "more", "confirm", "baseline"):
                    yield row, found


def covered(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: case ids, seeds and recheck share of each run's job against W, and its stored verification."""
    want = {case.case_id for case in evidence.cases}
    if not want:
        raise NotEvaluated("W could not be read")
    for row, run in _timed(evidence):
        where, fix = f"{RUNS}{run.run}", AGAIN.format(variant=row.variant)
        if "verify" in run.phases:
            if set(run.cases) != want:
                differ = ", ".join(sorted(want ^ set(run.cases))[:6])
                yield where, f"its cases are not W with its edges ({differ})", fix
            if run.seeds < policy.verify_seeds:
                yield where, f"{run.seeds} seeds a case; the policy wants {policy.verify_seeds}", fix
            verified = run.verification
            if row.verdict == "IMPROVED" and (verified is None or verified.verdict != "Correct" or not verified.checks):
                yield where, f"{row.version} is IMPROVED, and this run was not shown correct", fix
        if "time" in run.phases and run.recheck_share < policy.recheck_share:
            yield where, "timed outputs were not compared with the reference", fix


def complete(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: bench.json and the environment of each timed run, and verdicts judged again from raws (audit)."""
    yield from under("22")(evidence, policy)
    want = {case.case_id for case in evidence.cases if case.timed}
    for row, run in _timed(evidence):
        where, fix = f"{RUNS}{run.run}", AGAIN.format(variant=row.variant)
        for problem in run.problems:
            yield where, problem, "git checkout -- artifacts/runs"
        absent = [name for name in ENVIRONMENT if not run.env.get(name)]
        if absent:
            yield where, f"its environment does not say {', '.join(absent)}", fix
        if run.bench is None:
            if row.verdict == "IMPROVED" and not run.problems:
                yield where, "no bench.json", "git checkout -- artifacts/runs"
            continue
        have = {case.case_id for case in run.bench.cases}
        if want and have != want:
            yield where, f"timed cases are not those of W ({', '.join(sorted(want ^ have)[:6])})", fix
        if run.bench.objective == "geomean" and run.bench.cases:
            again = geomean([case.speedup for case in run.bench.cases])
            if not math.isclose(again, run.bench.geomean.speedup, rel_tol=1e-6):
                what = f"geomean {run.bench.geomean.speedup:g}, its cases give {again:g}"
                yield where, what, "git checkout -- artifacts/runs"


def comparable(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: epoch of each incumbent, arms of each timed job, and environments of runs that one verdict merges."""
    rows = epoch_rows(evidence)
    here = {row.version for row in rows}
    for row in rows:
        if row.kind in facts.TRIED and row.gain is not None and row.incumbent not in here:
            what = f"its figure is against {row.incumbent}, which is of another contract epoch"
            yield f"{row.version}", what, AGAIN.format(variant=row.variant)
    merged: dict[str, RunFacts] = {}
    for row, run in _timed(evidence):
        where, fix = f"{RUNS}{run.run}", AGAIN.format(variant=row.variant)
        if "time" in run.phases and not {"A", "B"} <= set(run.arms):
            yield where, "the two programs were not timed in one job", fix
        if run.role not in ("main", "more"):
            continue
        first = merged.setdefault(row.version, run)
        differ = [name for name in BOOKING if first.env.get(name) != run.env.get(name)]
        if differ:
            yield where, f"merged with {first.run}, and {', '.join(differ)} differ", fix


def bounded(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: limits of each job; rows whose reason is ``timeout`` and what was attempted after them."""
    for name, run in evidence.runs.items():
        if not run.limits:
            said = next((row.variant for row in evidence.rows if name in row.runs), "VARIANT")
            yield f"{RUNS}{name}", "its job had a step without a time limit", AGAIN.format(variant=said)
    hung: list[Row] = []
    for row in epoch_rows(evidence):
        if row.kind not in facts.TRIED:
            continue
        if row.reason.split(":")[0].split(".")[0] == "timeout" or row.reason.startswith("broken.timeout"):
            hung.append(row)
        elif row.verdict not in ("WRONG", "BROKEN"):
            hung = []
    if len(hung) > 1:
        names = ", ".join(row.version for row in hung[-4:])
        what = f"{len(hung)} time-outs without a correct version between them ({names})"
        yield (
            hung[-1].version,
            what,
            "attempt a minimal tile that ends, one block without a pipeline, and go on from it",
        )


RULES: tuple[Rule, ...] = (
    Rule(id="21", title="correctness covers W", severity="block", phase="always", check=covered),
    Rule(id="22", title="benchmark record is complete", severity="block", phase="always", check=complete),
    Rule(id="23", title="only comparable numbers", severity="block", phase="always", check=comparable),
    Rule(id="25", title="the dispatcher's files can be read", severity="block", phase="always", check=under("25")),
    Rule(id="27", title="every run is bounded", severity="block", phase="always", check=bounded),
)
