"""84 rounds in one process: a fake lab's figures through the real judge, the real rules and the real state machine."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import benchmark, dispatcher, gate, ledger, report
from kernelpilot_helpers.attempt.job import Arm, Job, Limits, TimeSpec
from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.evidence.model import CommitFacts, Evidence, StopFacts, TuningFacts
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.gate.final_facts import FINAL_PATH
from kernelpilot_helpers.ledger import Interval
from kernelpilot_helpers.ledger.model import Verdict
from kernelpilot_helpers.policy import ACCEPT, CPU, POLICY
from rlcr.model import Check, Course, Done, Problem
from rlcr.step import LEGAL
from tests import evidence_sim as facts
from tests import tuning_sim
from tests.rlcr import sim

NOWHERE = Path("/nonexistent")


def commit(n: int) -> str:
    return f"{n:040x}"


def measured(speedup: float) -> Bench:
    """What the judge says of one job of a lab in which the candidate is ``speedup`` times as fast."""
    arms = tuple(
        Arm(name=name, source="s", entry="candidate.py:entry", build_key=name.lower() * 64, is_baseline=name == "A")
        for name in ("A", "B")
    )
    job = Job(
        job_id="j", phases=("time",), cases=tuple(c for c in facts.CASES if c.timed), arms=arms,
        time=TimeSpec(pairs=6, blocks=2, recheck_share=0.1), verify=None, reference="oracle/reference.py:ref",
        limits=Limits(build_s=1.0, call_s=1.0, wall_s=1.0),
    )  # fmt: skip
    raw = FakeLab(speedup=speedup).run(job, NOWHERE)
    required = frozenset(facts.TIMED)
    return benchmark.judge([raw], tier=ACCEPT, device=CPU, required=required, timed=facts.TIMED, max_pairs=6)


class World:
    """A repo that exists only as evidence; it grows by one honest attempt a round."""

    def __init__(self) -> None:
        self.rows = [facts.BASELINE]
        self.runs: dict[str, Any] = {}
        self.commits = [facts.GIT.commits[0]]
        self.stops = [StopFacts(round=0, head=facts.BASE)]
        self.head = facts.BASE
        self.tuning = TuningFacts()
        self.final = ""
        self.courses: list[tuple[int, str]] = []
        """(round, course) at each Stop."""
        self.ideas: list[ledger.Idea] = []
        self.held: dict[str, int] = {}
        self.cites: tuple[str, ...] = ()

    def attempt(self, n: int, speedup: float, round_: int) -> None:
        """One candidate, judged."""
        said = measured(speedup)
        label, tree = f"v{n:03d}_fused", commit(n)
        better = said.verdict == "IMPROVED"
        at = Interval(speedup=said.geomean.speedup, ci_low=said.geomean.ci_low, ci_high=said.geomean.ci_high)
        verdict: Verdict = said.verdict
        row = facts.row(
            label, tree=tree, commit=commit(2 * n), round=round_, at_head=commit(2 * n), verdict=verdict, gain=at,
            vs_baseline=at, status="selected" if better else "rejected",
            confirmed_by=f"{label}.2" if better else None,
            motivation=ledger.Motivation(kind="benchmark", text="t", source_keys=self.cites),
        )  # fmt: skip
        self.rows.append(row)
        for run, role in ((f"{label}.1", "main"), (f"{label}.2", "confirm")):
            self.runs[run] = facts.run(run, role, bench=said, tree=tree)
        path = f"{facts.VARIANTS}/fused/candidate.py"
        self.commits += [
            CommitFacts(commit=commit(2 * n), paths=(path,), trees={"fused": tree}, subject="try"),
            CommitFacts(commit=commit(2 * n + 1), paths=("artifacts/lineage.jsonl",), subject="row"),
        ]
        self.head = commit(2 * n + 1)

    def decide(self, n: int, round_: int, fix: str) -> None:
        """The first of the commands that the gate printed, carried out: a decision row on the version it names."""
        label, why = fix.partition(' --why "')[0].rpartition(" ")[2], fix.partition('--why "')[2].partition('"')[0]
        said = next(row for row in self.rows if row.version.startswith(label))
        self.rows.append(
            facts.decision(
                f"select: {why.replace('REASON', 'another route')}", version=said.version, variant=said.variant,
                tree=said.tree, commit=said.commit, round=round_, at_head=self.head,
            )
        )  # fmt: skip
        self.head = commit(10_000 + n)
        self.commits.append(CommitFacts(commit=self.head, paths=("artifacts/lineage.jsonl",), subject="decision"))

    def read(self, n: int) -> None:
        """As many new sources as a wider search wants, each noted and committed; the next attempt cites one."""
        made = [facts.source(f"{n}-{ix}.cu", facts.SAID[ix % 5]) for ix in range(POLICY.research_sources)]
        self.ideas += made
        self.cites = (made[0].key,)
        self.head = commit(20_000 + n)
        self.held[self.head] = len(self.ideas)
        self.commits.append(CommitFacts(commit=self.head, paths=(ledger.IDEAS_PATH,), subject="sources"))

    def finish(self, text: str) -> None:
        """FINAL.md, committed."""
        self.final, self.head = text, commit(9_999)
        self.commits.append(CommitFacts(commit=self.head, paths=(FINAL_PATH,), subject="final"))

    def evidence(self, phase: str, round_: int) -> Evidence:
        """The repo as the collector would hand it over."""
        best = ledger.best(self.rows, 1)
        name = "baseline" if best.kind == "baseline" else "fused"
        trees = {f"{r.commit}:{r.variant}": r.tree for r in self.rows}
        tried = [row for row in self.rows if row.kind == "attempt"]
        held = {"fused": best.tree if best.kind != "baseline" else tried[-1].tree} if tried else {}
        git = replace(
            facts.GIT, head=self.head, commits=tuple(self.commits), current_tree=best.tree, row_trees=trees,
            head_variants=held, variants=held, tracked=facts.GIT.tracked | {FINAL_PATH},
            ideas_held=self.held,
        )  # fmt: skip
        loop = replace(facts.LOOP, phase=phase, round=round_, stops=tuple(self.stops))
        files = {f"src/{facts.TASK}/current": f"{name}\n", **facts.DIGEST} | (
            {FINAL_PATH: self.final} if self.final else {}
        )
        return facts.evidence(
            rows=tuple(self.rows), runs=self.runs, git=git, loop=loop, files=files, tuning=self.tuning,
            ideas=tuple(self.ideas),
        )  # fmt: skip


def check(said: gate.Report) -> Check:
    """What the evidence command would have printed, as the loop reads it."""
    found = tuple(
        Problem(rule=f.rule, where=f.where, what=f.what, fix=f.fix, severity=f.severity) for f in said.findings
    )
    return Check(
        name="gate", exit=0 if said.passed else 1, seconds=0.1, stdout_sha256="d" * 64, passed=said.passed,
        met=said.done.met, why=said.done.why, missing=said.done.missing, problems=found,
        course=Course(**msgspec.structs.asdict(said.course)),
    )  # fmt: skip


def play(folder: Path, *, reached_at: int) -> tuple[sim.Tape, World]:
    """Rounds until the loop ends; from ``reached_at`` on the candidate is 1.5 times as fast as the baseline.

    A Stop that the gate holds up for want of a decision is answered by one, and made again in the same round; where
    it sees a wider search coming, the sources are read before the next attempt.
    """
    tape, world = sim.Tape(folder), World()
    tape.put(sim.setup(base_commit=facts.BASE), facts.BASE)
    tape.put(Done(id="setup"))
    n = 0
    while tape.state.active:
        n += 1
        phase, round_ = tape.state.phase, tape.state.round
        if phase == "BUILD":
            world.attempt(n, 1.5 if round_ >= reached_at else 1.0 + 0.001 * (n % 5), round_)
        if phase == "BUILD" and round_ >= reached_at:
            version = world.rows[-1]
            made = tuning_sim.built(tuning_sim.tuned(version.version))
            world.tuning = TuningFacts(map=made, table=dispatcher.choose(made))
        if phase == "FINALIZE":
            world.finish(report.final_text(report.final_facts(world.evidence(phase, round_), POLICY)))
        said = stop(tape, world)
        if said.course.kind == "decide":
            (held,) = [f for f in said.findings if f.severity != "trend"]
            assert (held.rule, tape.state.phase, tape.state.round, said.passed) == ("30", phase, round_, False)
            world.decide(n, round_, held.fix)
            said = stop(tape, world)
        if said.course.kind == "widen" and said.course.have < said.course.want:
            world.read(n)
        assert n < 100 and said.passed, said.findings
    return tape, world


def stop(tape: sim.Tape, world: World) -> gate.Report:
    """One Stop: the rules over the world as it is, and what the state machine makes of that."""
    phase, round_ = tape.state.phase, tape.state.round
    said = gate.decide(world.evidence(phase, round_), POLICY, final=phase == "FINALIZE")
    world.courses.append((round_, said.course.kind))
    tape.put(sim.stop(tape.state, 0, head=world.head, tree=world.head, checks=(check(said),)), world.head)
    assert tape.state.phase == phase or tape.state.phase in LEGAL[phase]
    names = tuple(f"{f.rule}:{f.where}" for f in said.findings)
    world.stops.append(StopFacts(round=round_, head=world.head, passed=said.passed, findings=names))
    tape.put(Done(id=tape.state.pending))
    return said


def test_84_rounds_without_a_gain_end_at_maxiter(tmp_path: Path) -> None:
    """Breaks when a rule turns an honest history red, when the loop escapes its cap, or when a round gets slow.

    Every round is weak: the second and third in a row widen the search, the fourth ends only with a decision.
    """
    start = time.process_time()  # of this process: what others do on the machine is not its doing
    tape, world = play(tmp_path, reached_at=10**6)
    assert time.process_time() - start < 2.0
    assert (tape.state.phase, tape.state.round) == ("MAXITER", 84)
    tried = [row.verdict for row in world.rows if row.kind == "attempt"]
    assert len(tried) == 85 and set(tried) <= {"SAME", "AMBIGUOUS"}, "a lab at rest improves nothing"
    assert world.courses[:12] == [
        (0, "on"), (1, "widen"), (2, "widen"), (3, "decide"), (3, "on"),
        (4, "on"), (5, "widen"), (6, "widen"), (7, "decide"), (7, "on"),
        (8, "on"), (9, "widen"),
    ]  # fmt: skip
    seen = Counter(kind for _, kind in world.courses)
    assert seen == {"on": 43, "widen": 42, "decide": 21} and tape.state.blocks == 105
    assert [r.round for r in world.rows if r.kind == "decision"] == list(range(3, 84, 4))


@pytest.mark.parametrize("at", [0, 7])
def test_the_loop_completes_once_the_rules_call_it_done(tmp_path: Path, at: int) -> None:
    """Breaks when a measured target, a map, a dispatcher and FINAL.md do not end the loop, or less than that does."""
    tape, world = play(tmp_path, reached_at=at)
    assert (tape.state.phase, tape.state.round) == ("COMPLETE", at)
    assert world.rows[-1].verdict == "IMPROVED"
    held = [s.round for s in world.stops[1:] if not s.passed]
    assert held == [n for n in (3,) if n < at] and len(world.stops) == 1 + at + 2 + len(held)
    assert world.courses[-2:] == [(at, "finish"), (at, "finish")]
