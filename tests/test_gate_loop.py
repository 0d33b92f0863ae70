"""Rules over the loop: rounds told by heads, repeated blockers, plateau and stop, and rows that know their round."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from kernelpilot_helpers import gate
from kernelpilot_helpers.evidence.model import CommitFacts, Evidence, StopFacts
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.weak import gains
from kernelpilot_helpers.ledger import Idea
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee import attempt as attempts
from kernelpilot_helpers.referee import gating, locking, selecting
from tests.evidence_sim import (
    BASELINE,
    CONTRACT,
    GIT,
    GOOD,
    LOOP,
    ROWED,
    TRY,
    decision,
    evidence,
    gain,
    loop,
    row,
)  # fmt: skip
from tests.loop_sim import Loop
from tests.referee_sim import TASK, VARIANTS, attempt, clock, quiet, write_variant

LATE, LATER = "d" * 40, "e" * 40


def found(e: Evidence, rule: str, *, final: bool = False) -> list[tuple[str, str]]:
    report = gate.decide(e, POLICY, final=final)
    return [(f.severity, f.what) for f in report.findings if f.rule == rule]


def test_a_commit_belongs_to_the_round_whose_stop_saw_it_first() -> None:
    """Breaks when rounds are counted by time, or the set-up's own commit is counted as round 0."""
    commits = (*GIT.commits, CommitFacts(commit=LATE, paths=()), CommitFacts(commit=LATER, paths=()))
    stops = (*LOOP.stops, StopFacts(round=1, head=LATE))
    e = replace(loop(stops=stops, round=2), git=replace(GIT, commits=commits))
    assert facts.rounds(e) == {TRY: 0, ROWED: 0, LATE: 1, LATER: 2}
    ended = replace(e, loop=replace(LOOP, stops=stops, phase="COMPLETE"))
    assert facts.rounds(ended) == {TRY: 0, ROWED: 0, LATE: 1}


def test_a_candidate_committed_before_the_loop_is_named_until_it_is_attempted_inside() -> None:
    """Breaks when work done outside review counts, or when the finding can never be mended."""
    after = loop(stops=(StopFacts(round=0, head=ROWED),), base_commit=ROWED, round=0)
    outside = replace(after, rows=(BASELINE, row(round=None)))
    assert [s for s, _ in found(outside, "3")] == ["repair"]
    again = row("v002_fused", kind="recheck", verdict="SAME", round=0, runs=(), confirmed_by=None, at_head=ROWED)
    assert found(replace(outside, rows=(*outside.rows, again)), "3") == []
    wip = (GIT.commits[0], replace(GIT.commits[1], subject="wip fused"), GIT.commits[2])
    draft = replace(outside, git=replace(GIT, commits=wip))
    assert [s for s, _ in found(draft, "3")] == ["repair"]  # judged, so a candidate whatever its commit says
    assert found(replace(draft, rows=(BASELINE,)), "3") == []
    gone = replace(outside, git=replace(GIT, head_variants={}, variants={}, current_tree=""))
    assert found(gone, "3") == []


def test_an_earlier_loop_covers_its_own_commits() -> None:
    """Breaks when a cancelled loop makes its honest rounds look like work outside review for ever."""
    first = replace(LOOP, phase="CANCEL")
    second = replace(LOOP, directory="y", stops=(StopFacts(round=0, head=ROWED),), base_commit=ROWED, round=0)
    assert found(evidence(loop=second, earlier=(first,), rows=(BASELINE, row(round=None))), "3") == []


def test_a_broken_journal_blocks_and_a_noted_edit_is_shown() -> None:
    """Breaks when a worker's edit of the loop's files passes in silence."""
    bad = loop(faults=(Fault(where="j:3", what="prev is not the hash", fix="f"),))
    assert [s for s, _ in found(bad, "3")] == ["block"]
    assert found(loop(tampered=("state.md: edited by hand",)), "3") == [
        ("trend", "the loop's runtime noted: edited by hand")
    ]


def test_an_amended_plan_is_shown_and_no_fault() -> None:
    """Breaks when the measure of a loop changes in silence, or when changing it on purpose blocks."""
    e = loop(amends=("plan: AC-3 is 1.2x", "evidence: a new path"), plan_sha256="7" * 64)
    assert found(e, "3") == [
        ("trend", "the plan was amended: AC-3 is 1.2x"),
        ("trend", "the evidence was amended: a new path"),
    ]
    assert gate.decide(e, POLICY, final=False).passed


def test_a_head_that_the_loop_saw_must_still_be_in_the_history() -> None:
    """Breaks when a rewritten history forgets what was reviewed."""
    e = loop(stops=(*LOOP.stops, StopFacts(round=1, head=LATE)))
    assert [s for s, _ in found(e, "12")] == ["block"]


def test_the_same_blocker_twice_asks_for_a_narrower_round() -> None:
    """Breaks when a round may circle around one blocker, or a milestone contract does not answer it."""
    red = StopFacts(round=0, head=ROWED, passed=False, findings=("21:artifacts/runs/x", "3:y"))
    e = loop(stops=(LOOP.stops[0], red, replace(red, round=1, findings=("21:artifacts/runs/x",))), round=2)
    assert [(s, "21:artifacts/runs/x" in w) for s, w in found(e, "28")] == [("trend", True)]
    assert found(replace(e, loop=replace(e.loop or LOOP, contracts={2: "Type: milestone"})), "28") == []
    assert found(replace(e, loop=replace(e.loop or LOOP, stops=(LOOP.stops[0], red))), "28") == []
    papers = ("summary:round-0-summary.md", "contract:x", "tracker:x", "28:x", "33:round-0-summary.md:3", "amend:plan")
    written = tuple(replace(red, round=n, findings=papers) for n in (0, 1))
    assert found(replace(e, loop=replace(e.loop or LOOP, stops=(LOOP.stops[0], *written))), "28") == []


def test_ten_times_off_the_target_asks_for_another_route() -> None:
    """Breaks when a tensor-core kernel is polished at a tenth of its target."""
    gemm = msgspec.structs.replace(CONTRACT, task=msgspec.structs.replace(CONTRACT.task, op="gemm"))
    slow = row(vs_baseline=gain(0.1), gain=gain(0.1), verdict="REGRESSED", confirmed_by=None, status="rejected")
    e = evidence(contract=gemm, rows=(BASELINE, slow))
    assert [s for s, _ in found(e, "29")] == ["trend"]
    assert found(replace(e, rows=(BASELINE, slow, decision("select: pivot: to mma"))), "29") == []
    assert found(replace(e, rows=(BASELINE, row(vs_baseline=gain(0.2)))), "29") == []
    assert found(replace(e, contract=CONTRACT), "29") == []


def test_weak_rounds_are_counted_by_round_and_a_round_without_a_correct_attempt_is_weak() -> None:
    """Breaks when two attempts of one round count as two rounds, or a wrong kernel's figure as progress."""
    rows = (
        row("v001_a", round=0, gain=gain(1.005)),
        row("v002_b", round=0, gain=gain(1.2)),
        row("v003_c", round=1, verdict="WRONG", gain=None),
        row("v004_d", round=None, gain=gain(1.002)),
    )
    assert [(name, best and round(best, 3), ix) for name, best, ix in gains(rows)] == [
        ("round 0", 0.2, 1), ("round 1", None, 2), ("v004_d", 0.002, 3),
    ]  # fmt: skip


def test_what_speaks_of_the_machine_or_repeats_a_version_is_no_weak_round() -> None:
    """Breaks when a busy machine, a killed run or a recheck is counted as a round that got nowhere."""
    assert facts.VOID == attempts.REPEATABLE
    reasons = ("suspect.clock: x", "machine.unfit", "interrupted", "harness.x: y", "oracle.died", "evidence.garbled: z")
    void = [
        row(f"v{n:03d}_m", round=n, verdict="AMBIGUOUS", gain=gain(1.0), reason=reason, runs=(), confirmed_by=None)
        for n, reason in enumerate(reasons, start=2)
    ]
    again = row("v020_fused", kind="recheck", round=9, gain=gain(1.5))
    flat = row("v021_f", round=10, verdict="AMBIGUOUS", gain=gain(1.002), reason="flat: x", runs=(), confirmed_by=None)
    assert [(name, ix) for name, _, ix in gains((*void, again, flat))] == [("round 10", 7)]
    short = row(vs_baseline=gain(1.05), gain=gain(1.05))
    e = evidence(rows=(BASELINE, short, *void))
    assert "no stop decision" in found(e, "30", final=True)[0][1]


def test_the_end_needs_the_target_or_a_decision_and_only_at_the_end() -> None:
    """Breaks when a run may end short of its target without saying why, or is blocked for it half way."""
    short = row(vs_baseline=gain(1.05), gain=gain(1.05))
    e = evidence(rows=(BASELINE, short))
    assert found(e, "30") == [] and [s for s, _ in found(e, "30", final=True)] == ["block"]
    early = replace(e, rows=(BASELINE, short, decision("select: stop: roof")))
    assert "0 of 2 weak rounds in a row stand before it" in found(early, "30", final=True)[0][1]
    assert found(GOOD, "30", final=True) == []
    weak = row("v002_b", round=1, gain=gain(1.001), vs_baseline=None, runs=(), verdict="AMBIGUOUS", confirmed_by=None)
    flat = (BASELINE, short, weak, msgspec.structs.replace(weak, version="v003_c", round=2))
    assert "2 weak rounds (round 1, round 2)" in found(replace(e, rows=flat), "30", final=True)[0][1]
    assert found(replace(e, rows=(*flat, decision("select: stop: roof"))), "30", final=True) == []
    went_on = (*flat, decision("select: continue: 10 % from wider loads"))
    assert "no stop decision" in found(replace(e, rows=went_on), "30", final=True)[0][1]


def test_exhausted_without_a_digest_is_listed_as_not_evaluated() -> None:
    """Breaks when "exhausted" is believed without evidence."""
    e = evidence(rows=(BASELINE, row(vs_baseline=gain(1.05)), decision("select: stop: exhausted")))
    report = gate.decide(e, POLICY, final=True)
    assert any(entry.startswith("30: ") and "85%" in entry for entry in report.not_evaluated)


def test_a_cited_pull_request_carries_its_head_and_its_time() -> None:
    """Breaks when an open pull request may change under the idea that cites it."""
    idea = Idea(repo="a/b", commit="1" * 40, path="p", pr="7", hypothesis="h", at="2026-11-30T08:00:00Z")
    assert found(evidence(ideas=(idea,)), "32") == []
    assert len(found(evidence(ideas=(msgspec.structs.replace(idea, at=""),)), "32")) == 1


def test_no_loop_is_one_repair_that_names_the_set_up() -> None:
    """Breaks when a repo without a loop is blocked, or is not told how to begin one."""
    report = gate.decide(evidence(loop=None), POLICY, final=False)
    assert [(f.rule, f.severity) for f in report.findings] == [("3", "repair")]
    assert "setup-rlcr-loop.sh" in report.findings[0].fix


def test_an_honest_life_of_a_repo_passes_at_each_step(repo: Path) -> None:
    """Breaks when an amended contract, a rejected edit in place or a restored version blocks for ever."""

    def red() -> list[tuple[str, str]]:
        return [(f.rule, f.where) for f in gating.gate(repo, final=False).findings if f.severity != "trend"]

    Loop(repo).setup()
    attempt(repo, FakeLab(speedup=1.5), max_pairs=6)
    assert red() == []
    write_variant(repo, "fused", "def entry(**tensors):\n    return 1\n")
    assert red() == [("13", f"{VARIANTS}/fused")]
    attempt(repo, FakeLab(wrong="tail"), max_pairs=6)
    assert red() == [("13", f"{VARIANTS}/fused")]
    selecting.select(repo, "v001", why="restore", clock=clock)
    assert red() == []
    selecting.select(repo, "v000_baseline", why="look", clock=clock)
    assert red() == [("13", f"src/{TASK}/current")]
    selecting.select(repo, "v001", why="back", clock=clock)
    for path in ("reference.py", "baseline/candidate.py"):
        (repo / path).write_text((repo / path).read_text() + "\n# a comment\n")
    assert {rule for rule, _ in red()} == {"6"}
    locking.lock(repo, amend=True, why="a comment", lab=FakeLab(), clock=clock, say=quiet)
    assert red() == []
