"""Run the jobs that ``decide.step`` asks for, keep each in its run directory, and return the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from kernelpilot_helpers import benchmark, correctness, ledger, policy, records
from kernelpilot_helpers.attempt import sane
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import Busy, NotComparable, Refused
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.referee import ceilings, decide, floor, jobs, runs
from kernelpilot_helpers.referee.decide import Ask, Facts, Outcome, Runs
from kernelpilot_helpers.referee.floor import Clock
from kernelpilot_helpers.referee.runs import FloorRecord, Intent
from kernelpilot_helpers.referee.workspace import Workspace

Say = Callable[[str], None]
BOOKINGS = 2
"""A control of another machine is made anew once; a machine that changes again while measured on is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """The machinery of one attempt: where, with what, and whom to tell."""

    workspace: Workspace
    lab: Lab
    clock: Clock
    say: Say


def run_job(bench: Bench, intent: Intent, question: jobs.Question) -> Raw:
    """Intent, job directory, measurement, run directory."""
    root = bench.workspace.root
    runs.begin(root, intent)
    workdir = runs.job_dir(root, intent.run)
    job = jobs.make(bench.workspace, question, workdir)
    try:
        bench.lab.run(job, workdir)
    except (Busy, Refused):  # nothing was measured: no later command may take this for a killed attempt
        for run in runs.orphans(root, bench.workspace.rows):
            runs.put_aside(root, run)
        raise
    records.crash_point("attempt.measured")
    return runs.keep(root, intent.run)


def ensure_floor(bench: Bench, base: Intent, like: Mapping[str, Any] | None = None) -> tuple[floor.Floor, list[str]]:
    """The floor of this booking, measured now when no young and fit one exists; and the runs that this made."""
    workspace = bench.workspace
    cited = [run for row in workspace.rows if row.epoch == workspace.epoch for run in row.runs]
    young = floor.usable(runs.floors(workspace.root, cited), boot_id=boot_id(), now=bench.clock(), like=like)
    if young:
        return floor.pooled(young), []
    bench.say("A/A control: the baseline against itself (no fit one younger than an hour on this boot)")
    record = measure_floor(bench, base)
    return floor.pooled([*young, record]), [record.run]


def measure_floor(bench: Bench, base: Intent) -> FloorRecord:
    """One A/A job."""
    workspace = bench.workspace
    run = runs.next_run(workspace.root, base.label)
    question = floor_question(workspace, base, run)
    raw = run_job(bench, msgspec.structs.replace(base, run=run, role="floor"), question)
    record = floor.judge(workspace, raw, run=run, at=floor.stamp(bench.clock))
    runs.note(workspace.root, run, {"floor.json": record})
    return record


def floor_question(workspace: Workspace, base: Intent, job_id: str) -> jobs.Question:
    """The A/A job: the first baseline against itself, as long as the first look of an attempt."""
    usual = workspace.tier(policy.ACCEPT.name)
    program = jobs.baseline_program(workspace, workspace.baseline().tree if base.kind != "lock" else base.tree)
    return jobs.Question(
        job_id=job_id,
        phases=("verify", "time"),
        arms={"A": program, "B": program},
        pairs=usual.looks[0],
        blocks=usual.blocks,
    )


def boot_id() -> str:
    """This boot of this machine; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def facts_of(workspace: Workspace, intent: Intent) -> Facts:
    """What the verdict of an intent's attempt depends on."""
    baseline = workspace.baseline()
    return Facts(
        tier=workspace.tier(intent.tier),
        device=workspace.device,
        max_pairs=intent.max_pairs,
        numerics=workspace.numerics,
        expect=floor.expectation(workspace),
        timed=workspace.timed,
        required=workspace.required,
        weights=workspace.weights,
        bias_bound=intent.bias_bound,
        unfit=intent.unfit,
        incumbent_is_baseline=intent.incumbent == baseline.version,
        mutation_score=workspace.lock.mutation_score if workspace.lock else "",
        cases=workspace.resolved,
        ceilings=ceilings.best_here(workspace.device.kind),
        baselines=len(workspace.contract.baseline),
    )


def programs(workspace: Workspace, intent: Intent) -> tuple[jobs.Program, jobs.Program, jobs.Program]:
    """(incumbent, candidate, baseline)."""
    baseline = jobs.baseline_program(workspace, workspace.baseline().tree)
    row = ledger.find(workspace.rows, intent.incumbent)
    incumbent = baseline if row.kind == "baseline" else jobs.variant_program(row.tree)
    return incumbent, jobs.variant_program(intent.tree), baseline


def question_for(workspace: Workspace, intent: Intent, ask: Ask, job_id: str) -> jobs.Question:
    """The job that answers an ask."""
    incumbent, candidate, baseline = programs(workspace, intent)
    arms: dict[jobs.ArmName, jobs.Program] = {"A": incumbent, "B": candidate}
    if ask.role == "baseline":
        arms = against_baseline(workspace, candidate, baseline, ask.which)
    elif not incumbent.is_baseline:
        arms["Z"] = baseline
    return jobs.Question(
        job_id=job_id,
        phases=ask.phases,
        arms=arms,
        pairs=ask.pairs,
        first_pair=ask.first_pair,
        blocks=workspace.tier(intent.tier).blocks,
        stop_if_identical=ask.role == "main",
        stop_if_wrong=workspace.device.kind == "gpu",
    )


def against_baseline(
    workspace: Workspace, candidate: jobs.Program, first: jobs.Program, which: int
) -> dict[jobs.ArmName, jobs.Program]:
    """Arms of a direct run. The first baseline stays the yardstick of error whichever is timed."""
    if which == 0:
        return {"A": first, "B": candidate}
    other = jobs.baseline_program(workspace, workspace.baseline().tree, which)
    return {"A": replace(other, is_baseline=False), "B": candidate, "Z": first}


class Moved(Exception):
    """A job ran on another GPU, driver or Python than the control that its verdict would lean on."""

    def __init__(self, keys: tuple[str, ...], booking: dict[str, Any]) -> None:
        super().__init__(", ".join(keys))
        self.booking = booking


def with_floor(bench: Bench, base: Intent) -> tuple[Outcome, Intent, list[str]]:
    """Control and measurement on one booking: (outcome, the intent with its floor, runs made).

    Raises NotComparable when the machine changes while it is measured on.
    """
    like: dict[str, Any] | None = None
    for _ in range(BOOKINGS):
        found, made = ensure_floor(bench, base, like)
        intent = msgspec.structs.replace(base, bias_bound=found.bias_bound, unfit=found.unfit)
        try:
            outcome, more = measure(bench, intent, found.booking)
        except Moved as seen:
            bench.say(f"not the machine of the A/A control ({seen} differ): control and job are made again")
            like = seen.booking
            for run in runs.orphans(bench.workspace.root, bench.workspace.rows):
                runs.put_aside(bench.workspace.root, run)
            continue
        return outcome, intent, [*made, *more]
    what = "its jobs ran on different GPUs, drivers or Pythons, so no A/A control holds for them"
    raise NotComparable(what, fix="export CUDA_VISIBLE_DEVICES=NUMBER  # then the same command again")


def measure(bench: Bench, base: Intent, booking: Mapping[str, Any] | None = None) -> tuple[Outcome, list[str]]:
    """Measure until there is a verdict: (outcome, runs made). Raises Moved for a job on another ``booking``."""
    workspace = bench.workspace
    facts = facts_of(workspace, base)
    state = Runs()
    made: list[str] = []
    while True:
        answer = decide.step(facts, state)
        if isinstance(answer, Outcome):
            return answer, made
        run = runs.next_run(workspace.root, base.label)
        bench.say(f"{run}: {answer.role}, {answer.pairs} cross-over pairs ({answer.why})")
        intent = msgspec.structs.replace(base, run=run, role=answer.role)
        made.append(run)
        raw = run_job(bench, intent, question_for(workspace, intent, answer, run))
        if odd := benchmark.moved(booking or {}, floor.booking(raw)):
            raise Moved(odd, floor.booking(raw))
        state = state.with_raw(answer.role, raw)
        note_judgements(workspace, facts, run, answer.role, state)


def note_judgements(workspace: Workspace, facts: Facts, run: str, role: str, state: Runs) -> None:
    """Store verify.json and bench.json beside a raw: what was judged, for people and for the gate."""
    raws: tuple[Raw, ...] = {
        "main": (state.main,) if state.main else (),
        "more": (state.main, *state.more) if state.main else (),
        "confirm": (state.confirm,) if state.confirm else (),
        "baseline": (state.baseline,) if state.baseline else (),
    }[role]
    if sane.problems(raws):
        return
    files: dict[str, Any] = {}
    merged = decide.merged(raws)
    if role != "baseline":
        asked: decide.RunRole = "confirm" if role == "confirm" else "main"
        expected = decide.expected(facts, asked)
        verdict = correctness.judge(merged, numerics=facts.numerics, expectation=expected)
        files["verify.json"] = correctness.record(merged, verdict, mutation_score=facts.mutation_score)
        if not isinstance(verdict, correctness.Correct) or benchmark.identical(merged):
            runs.note(workspace.root, run, files)
            return
    if merged.samples:
        tier = (
            facts.tier
            if role in ("main", "more")
            else decide.fixed_look(facts.tier, len({s.pair for s in merged.samples}))
        )
        files["bench.json"] = decide.judge(facts, raws, tier)
    runs.note(workspace.root, run, files)
