"""The rules of the loop, one by one, over events written by hand."""

import dataclasses

import pytest

from rlcr.model import Adopt, Ask, Cancel, Failure, Opinion, Problem, Resume, Tamper
from rlcr.step import LEGAL, Illegal, step
from tests.rlcr import sim


def test_max_1_ends_at_round_1() -> None:
    # E12: the reference went on to round 6, because its review phase has no cap.
    for reviewer in ("evidence-only", "codex"):
        state = sim.begun(max=1, reviewer=reviewer)
        verdict = None if reviewer == "evidence-only" else sim.opinion()
        state, _ = sim.drive(state, sim.stop(state, 1, verdict=verdict))
        assert (state.phase, state.round) == ("BUILD", 1)
        state, _ = sim.drive(state, sim.stop(state, 2, verdict=verdict))
        assert (state.phase, state.round) == ("MAXITER", 1)


def test_code_review_findings_use_up_rounds_too() -> None:
    state = sim.begun(max=3, reviewer="codex")
    done = (sim.check(met=True),)
    state, _ = sim.drive(state, sim.stop(state, 1, checks=done, verdict=sim.opinion("complete")))
    assert (state.phase, state.round, state.work_expected) == ("CODE_REVIEW", 1, False)
    nit = sim.opinion("continue", findings=(sim.finding("P1"),))
    for n, want in ((2, ("CODE_REVIEW", 2)), (3, ("CODE_REVIEW", 3)), (4, ("MAXITER", 3))):
        state, _ = sim.drive(state, sim.stop(state, n, checks=done, verdict=nit))
        assert (state.phase, state.round) == want


def test_all_blocks_together_are_capped_at_four_times_max() -> None:
    # Breaks when the repair lane, which costs no round, can go on for ever while the tree changes.
    state = sim.begun(max=2)
    for n in range(1, 9):
        state, seen = sim.drive(state, sim.stop(state, n, checks=(sim.red(where=f"v{n}"),)))
        assert sim.last(seen).outcome == "block" and state.round == 0
    state, seen = sim.drive(state, sim.stop(state, 9, checks=(sim.red(where="v9"),)))
    assert (sim.last(seen).outcome, state.phase, state.blocks) == ("PARKED", "PARKED", 8)
    with pytest.raises(Illegal, match="blocks are spent"):
        step(state, Resume())


def test_same_red_gate_three_times_parks_and_resume_goes_on() -> None:
    state = sim.begun()
    same = {"checks": (sim.red(),)}
    state, _ = sim.drive(state, sim.stop(state, 1, **same), sim.stop(state, 1, **same))
    assert state.phase == "BUILD"
    moved, _ = sim.drive(state, sim.stop(state, 2, **same))
    assert moved.phase == "BUILD", "the tree changed: somebody is working on it"
    state, seen = sim.drive(state, sim.stop(state, 1, **same))
    assert (state.phase, sim.last(seen).outcome) == ("PARKED", "PARKED")
    parked, seen = sim.drive(state, sim.stop(state, 1))
    assert parked == state and sim.last(seen).outcome == "allow", "a parked loop lets go, whatever the evidence says"
    state, _ = sim.drive(state, Resume())
    assert (state.phase, state.round, state.red_count) == ("BUILD", 0, 0)


def test_a_trend_that_comes_later_does_not_make_the_same_red_gate_new() -> None:
    # The gate itself adds "the same finding twice" at the third red Stop; that must not start the count again.
    state = sim.begun()
    late = Problem(rule="28", where="round-0-contract.md", what="the same blocker twice", severity="trend")
    for checks in (sim.red(), sim.red(), dataclasses.replace(sim.red(), problems=(*sim.red().problems, late))):
        state, _ = sim.drive(state, sim.stop(state, 1, checks=(checks,)))
    assert (state.phase, state.red_count) == ("PARKED", 3)


def test_failures_of_the_machinery_take_no_round_and_park_at_the_third_of_a_class() -> None:
    state = sim.begun(reviewer="codex")

    def failed(kind: str) -> sim.Stop:
        return sim.stop(state, 1, failure=Failure(kind=kind, detail="x"))

    state, seen = sim.drive(
        state, failed("empty"), failed("empty"), failed("deadline"), failed("empty"), failed("empty")
    )
    assert (state.phase, state.round) == ("BUILD", 0)
    assert all(getattr(e, "outcome", "") == "block" for e in seen)
    state, seen = sim.drive(state, failed("empty"))
    assert (state.phase, sim.last(seen).outcome) == ("PARKED", "PARKED")


def test_a_red_gate_never_reaches_the_reviewer() -> None:
    state = sim.begun(reviewer="codex")
    red = sim.stop(state, 1, checks=(sim.red(),), verdict=sim.opinion("complete"))
    state, seen = sim.drive(state, red)
    assert (state.phase, state.round, sim.last(seen).outcome) == ("BUILD", 0, "block")
    assert sim.last(seen).items == ("gate 12 v003: no row -> kernelpilot attempt",)


def test_a_green_gate_asks_the_reviewer_and_fully_every_fifth_round() -> None:
    state = sim.begun(reviewer="codex")
    same, seen = step(state, sim.stop(state, 1))
    assert same == state and seen == (Ask(phase="BUILD", full=True, since=sim.head(0)),), "the first of its phase"
    for number, full in ((1, False), (3, False), (4, True), (5, False), (9, True)):
        later = dataclasses.replace(state, round=number, review_head=sim.head(1), review_phase="BUILD")
        assert step(later, sim.stop(later, 2))[1] == (Ask(phase="BUILD", full=full, since=sim.head(1)),)


@pytest.mark.parametrize(
    ("said", "met"),
    [
        (sim.opinion("complete", findings=(sim.finding("P0"),)), True),
        (sim.opinion("complete", findings=(sim.finding("P1"),)), True),
        (sim.opinion("complete", findings=(sim.finding("P7"),)), True),
        (sim.opinion("complete", unmet=("AC-3",)), True),
        (sim.opinion("complete"), False),
    ],
)
def test_complete_is_not_believed_over_open_findings_or_missing_evidence(said: Opinion, met: bool) -> None:
    state = sim.begun(reviewer="codex")
    state, seen = sim.drive(state, sim.stop(state, 1, checks=(sim.check(met=met),), verdict=said))
    assert (state.phase, state.round) == ("BUILD", 1)
    assert sim.last(seen).items, "the worker is told what is left"


def test_small_findings_are_queued_and_do_not_block() -> None:
    state = sim.begun(reviewer="codex")
    said = sim.opinion("complete", findings=(sim.finding("P2"), sim.finding("P3", id="F2")))
    state, _ = sim.drive(state, sim.stop(state, 1, checks=(sim.check(met=True),), verdict=said))
    assert state.phase == "CODE_REVIEW" and [f.id for f in state.queued] == ["F1", "F2"] and state.open == ()


def test_blocked_and_outside_findings_and_three_stalls_end_in_stop() -> None:
    state = sim.begun(reviewer="codex")
    outside = sim.opinion(findings=(sim.finding("P1", "external"), sim.finding("P0", "plan", id="F2")))
    conflict = sim.opinion(findings=(sim.finding("P0", "plan"),))
    met = (sim.check(met=True),)
    word_alone = sim.drive(state, sim.stop(state, 1, checks=met, verdict=sim.opinion("blocked")))[0]
    assert word_alone.phase == "BUILD", "blocked by nothing that is named"
    blocked = sim.opinion("blocked", findings=(sim.finding("P1", "external"),))
    assert sim.drive(state, sim.stop(state, 1, verdict=blocked))[0].phase == "STOP", "whatever the evidence wants"
    for said, word in ((blocked, "blocked: "), (outside, "blocked: "), (conflict, "plan-conflict: ")):
        over, _ = sim.drive(state, sim.stop(state, 1, checks=met, verdict=said))
        assert over.phase == "STOP" and over.exit_reason.startswith(word)
    assert sim.drive(state, sim.stop(state, 1, verdict=outside))[0].phase == "BUILD", "the evidence still wants more"
    mendable = sim.opinion("blocked", findings=(sim.finding("P1"),))
    assert sim.drive(state, sim.stop(state, 1, checks=met, verdict=mendable))[0].phase == "BUILD"
    stalled = sim.opinion(mainline="stalled")
    for n in (1, 2):
        state, seen = sim.drive(state, sim.stop(state, n, verdict=stalled))
        assert sim.last(seen).drift is (n == 2)
    assert sim.drive(state, sim.stop(state, 3, verdict=sim.opinion()))[0].stalls == 0
    assert sim.drive(state, sim.stop(state, 3, verdict=stalled))[0].phase == "STOP"


def test_no_evidence_is_never_a_pass() -> None:
    state = sim.begun()
    state, _ = sim.drive(state, sim.stop(state, 1, checks=()))
    assert (state.phase, state.round) == ("BUILD", 1)


def test_the_evidence_alone_finalizes_and_completes() -> None:
    state = sim.begun()
    met = (sim.check(met=True),)
    state, seen = sim.drive(state, sim.stop(state, 1, checks=met))
    assert (state.phase, state.round) == ("FINALIZE", 0) and "no code review" in sim.last(seen).headline
    red, _ = sim.drive(state, sim.stop(state, 2, checks=(sim.red("31"),)))
    assert (red.phase, red.round) == ("FINALIZE", 0)
    lost, _ = sim.drive(state, sim.stop(state, 2))
    assert (lost.phase, lost.round) == ("BUILD", 1), "a finalize edit that undoes the goal begins a new round"
    assert sim.drive(red, sim.stop(red, 3, checks=met))[0].phase == "COMPLETE"


def test_edits_in_finalize_are_reviewed_again() -> None:
    # The reference never looks at them.
    met = (sim.check(met=True),)
    state = sim.begun(reviewer="claude")
    yes = sim.opinion("complete")
    state, _ = sim.drive(state, sim.stop(state, 1, checks=met, verdict=yes))
    state, _ = sim.drive(state, sim.stop(state, 1, checks=met, verdict=yes))
    assert state.phase == "FINALIZE"
    assert sim.drive(state, sim.stop(state, 1, checks=met))[0].phase == "COMPLETE", "the HEAD that was reviewed"
    moved = sim.stop(state, 2, checks=met)
    assert step(state, moved)[1] == (Ask(phase="FINALIZE", full=False, since=sim.head(1)),)
    assert sim.drive(state, dataclasses.replace(moved, verdict=yes))[0].phase == "COMPLETE"
    no = sim.opinion("continue", findings=(sim.finding("P0"),))
    back, _ = sim.drive(state, dataclasses.replace(moved, verdict=no))
    assert (back.phase, back.round) == ("CODE_REVIEW", 2)


def test_noops_in_a_row_are_counted_and_a_commit_resets_them() -> None:
    state = sim.begun()
    state, _ = sim.drive(state, sim.stop(state, 0, noop="waiting for a machine"))
    state, _ = sim.drive(state, sim.stop(state, 0, noop="still waiting"))
    assert state.noops == 2
    assert sim.drive(state, sim.stop(state, 5))[0].noops == 0


def test_terminals_are_terminal() -> None:
    state, _ = sim.drive(sim.begun(), Cancel())
    assert state.phase == "CANCEL" and set(LEGAL) == {"NONE", "BUILD", "CODE_REVIEW", "FINALIZE", "PARKED"}
    for event in (sim.stop(state, 1), Cancel(), Resume(), Adopt(session_sha256="f"), sim.setup()):
        with pytest.raises(Illegal):
            step(state, event)


def test_a_stop_of_another_round_is_refused() -> None:
    state = sim.begun()
    with pytest.raises(Illegal, match="round 3"):
        step(state, sim.stop(state, 1, round=3))
    assert step(state, Tamper(what="x", path="y"))[0].tampers == 1
