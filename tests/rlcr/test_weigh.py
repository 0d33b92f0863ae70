"""Verdicts weighed: what blocks, what waits, what is remembered, and when nothing moves any more."""

from __future__ import annotations

from typing import Any

import pytest

from rlcr.model import Check, Course, Finding, Opinion, State
from rlcr.weigh import held, weigh
from tests.rlcr import sim

DONE = (sim.check(met=True),)


def found(name: str, priority: str = "P1", file: str = "src/a.py", **over: Any) -> Finding:
    return sim.finding(priority, id=name, file=file, claim=f"fault {name}", **over)


def said(*findings: Finding, verdict: str = "continue", **over: Any) -> Opinion:
    return sim.opinion(verdict, findings=findings, **over)


def again(*findings: Finding, changed: tuple[str, ...] = (), **over: Any) -> Opinion:
    return said(*findings, full=False, changed=changed, **over)


def judged(state: State, *verdicts: Opinion, checks: tuple[Check, ...] = DONE) -> State:
    """The state after Stops with these verdicts, each with a commit of its own."""
    for verdict in verdicts:
        stop = sim.stop(state, state.intents + 1, checks=checks, verdict=verdict)
        state, _ = sim.drive(state, stop)
    return state


def names(findings: tuple[Finding, ...]) -> list[str]:
    return [f.id for f in findings]


def memory(state: State) -> dict[str, tuple[str, int, int]]:
    assert len({k.finding.id for k in state.findings}) == len(state.findings)
    return {k.finding.id: (k.state, k.first, k.last) for k in state.findings}


def reviewing(**over: Any) -> State:
    """In CODE_REVIEW, with one finding open and nothing else left to do."""
    state = judged(sim.begun(reviewer="codex", **over), said(verdict="complete"), said(found("A")))
    assert (state.phase, state.round, names(state.open)) == ("CODE_REVIEW", 2, ["A"])
    return state


# --- what blocks ---------------------------------------------------------------------------------------------------


def test_p0_p1_and_what_has_no_known_priority_block_the_others_queue() -> None:
    """Breaks when a nit holds a round up, or a priority that is not understood is waved through."""
    all_of = [found(p, priority=p) for p in ("P0", "P1", "P2", "P3", "P7", "")]
    state = judged(sim.begun(reviewer="codex"), said(*all_of))
    assert sorted(names(state.open)) == ["", "P0", "P1", "P7"]
    assert names(state.queued) == ["P2", "P3"]


@pytest.mark.parametrize(
    ("one", "blocks"),
    [
        (found("A"), True),
        (found("N", file="src/other.py"), False),
        (found("N", priority="P0", file="src/other.py"), True),
        (found("N", file="src/a.py"), True),
        (found("N", file="src"), True),
        (found("N", file="sr"), False),
        (found("N", file=""), True),
        (found("Q", file="src/other.py"), False),
        (found("N", priority="P7", file="src/other.py"), True),
    ],
)
def test_a_re_review_is_locked_to_what_was_open_and_what_was_touched(one: Finding, blocks: bool) -> None:
    """Breaks when a reviewer adds faults elsewhere faster than they are mended, or when a P0 has to wait."""
    state = judged(sim.begun(reviewer="codex"), said(found("A"), found("Q", priority="P2")))
    assert bool(held(state, again(one, changed=("src/a.py",)))) is blocks
    assert held(state, said(one)) == (one,), "a full review is not locked"


def test_a_p1_that_waits_is_queued_while_something_is_open_and_is_next_after_it() -> None:
    """Breaks when the lock turns into a pardon: the loop would complete beside a P1 that the reviewer reported."""
    state = judged(reviewing(), again(found("A"), found("N", file="far.py"), changed=("src/a.py",)))
    assert (names(state.open), names(state.queued)) == (["A"], ["N"])
    state = judged(state, again(verdict="complete", changed=("src/a.py",)))
    assert (state.phase, names(state.open), names(state.queued)) == ("CODE_REVIEW", ["N"], [])
    assert memory(state)["N"] == ("open", 2, 3)
    state = judged(state, again(verdict="complete", changed=("far.py",)))
    assert (state.phase, names(state.open)) == ("FINALIZE", [])


def test_a_p1_that_waits_goes_when_the_next_full_review_does_not_see_it() -> None:
    """Breaks when a full review cannot clear what a narrow one suspected."""
    state = judged(reviewing(), again(found("A"), found("N", file="far.py")), said(found("B")))
    assert (names(state.open), names(state.queued)) == (["B"], [])
    assert memory(state) == {"A": ("closed", 1, 3), "N": ("closed", 2, 3), "B": ("open", 3, 3)}


def test_queued_ones_stay_over_a_re_review_and_are_weighed_anew_in_a_full_one() -> None:
    """Breaks when a re-review, told not to repeat what is queued, thereby mends it."""
    state = judged(sim.begun(reviewer="codex"), said(found("A"), found("Q", priority="P2")), again(found("A")))
    assert names(state.queued) == ["Q"] and memory(state)["Q"] == ("queued", 0, 1)
    raised = judged(state, again(found("A"), found("Q", priority="P0")))
    assert sorted(names(raised.open)) == ["A", "Q"] and raised.queued == ()
    assert memory(judged(state, said(found("A"))))["Q"] == ("closed", 0, 2)


def test_one_id_twice_counts_once_as_its_gravest() -> None:
    """Breaks when a mild copy hides the grave one."""
    state = judged(sim.begun(reviewer="codex"), said(found("A", priority="P3"), found("A", priority="P0")))
    assert [(f.id, f.priority) for f in state.open] == [("A", "P0")] and state.queued == ()


# --- what is remembered --------------------------------------------------------------------------------------------


def test_a_finding_that_returns_is_open_again_since_its_first_round() -> None:
    """Breaks when a fault that comes back looks new, or stays closed."""
    state = judged(sim.begun(reviewer="codex"), said(found("A")), said(unmet=("AC-1",)))
    assert memory(state) == {"A": ("closed", 0, 1)}
    state = judged(state, said(unmet=("AC-1",)))
    assert memory(state) == {"A": ("closed", 0, 1)}, "the round in which it was closed stays"
    assert memory(judged(state, said(found("A")))) == {"A": ("open", 0, 3)}


def test_memory_is_bounded_and_forgets_what_is_closed_first() -> None:
    """Breaks when a reviewer that invents findings makes state and journal grow without end."""
    state = judged(sim.begun(reviewer="codex"), said(found("old")))
    for n in range(1, 21):
        flood = [found(f"{n}-{k}", priority="P3") for k in range(58)]
        stop = sim.stop(state, n, round=n, checks=DONE)
        state, _ = weigh(state, stop, again(found("keep", priority="P0"), found(f"{n}-p", priority="P2"), *flood))
        assert len(state.findings) <= 500 and len(state.queued) <= 400
    kept = memory(state)
    assert kept["keep"] == ("open", 1, 20) and "old" not in kept
    assert {f"{n}-p" for n in range(1, 21)} <= set(names(state.queued)), "of the queued, P3 goes first"
    many = tuple(found(f"P0-{k}", priority="P0") for k in range(10_000))
    state, _ = weigh(state, sim.stop(state, 99, checks=DONE), said(*many))
    assert (len(state.open), len(state.queued), len(state.findings)) == (60, 400, 500)


# --- when nothing moves --------------------------------------------------------------------------------------------


def stuck(state: State, *verdicts: Opinion) -> tuple[list[int], State]:
    seen = []
    for verdict in verdicts:
        state = judged(state, verdict)
        seen.append(state.stuck)
    return seen, state


def test_rounds_that_mend_nothing_ask_for_a_recovery_and_then_end_the_loop() -> None:
    """Breaks when the same findings can come back for 84 rounds, or a finding added beside them counts as progress."""
    more = (said(found("A")), said(found("A"), found("B")), said(found("A"), found("B")))
    seen, state = stuck(reviewing(), *more)
    assert seen == [1, 2, 3]
    assert (state.phase, state.exit_reason) == ("STOP", "stalled: 3 verdicts in a row changed nothing that was open")
    _, before = stuck(reviewing(), *more[:2])
    assert before.last is not None and before.last.drift, "one before the end, the worker is told"


def test_one_finding_mended_is_progress() -> None:
    """Breaks when honest work on a long list is taken for standing still."""
    steps = (said(found("A"), found("B")), said(found("B")), said(found("C")), said(found("C"), found("D")))
    assert stuck(reviewing(), *steps)[0] == [1, 0, 0, 1]


def test_a_code_review_that_goes_on_without_naming_anything_ends() -> None:
    """Breaks when "continue", "advanced" and nothing else can be said until the budget is spent."""
    seen, state = stuck(reviewing(), said(), said(), said())
    assert seen == [1, 2, 3] and state.exit_reason.startswith("stalled: ")
    named = said(unmet=("AC-2",))
    assert stuck(reviewing(), named, named, named, named)[0] == [0, 0, 0, 0]


@pytest.mark.parametrize(("weak", "mainline"), [(0, "advanced"), (2, "stalled")])
def test_with_numbers_the_reviewers_words_never_end_the_loop(weak: int, mainline: str) -> None:
    """Breaks when an opinion that nothing moves ends a loop whose ledger says otherwise, or asks for wider search."""
    check = Check(
        name="gate", exit=0, seconds=1.0, stdout_sha256="d" * 64, passed=True, met=False, missing=("the target",),
        course=Course(kind="widen" if weak else "on", weak=weak),
    )  # fmt: skip
    state = sim.begun(reviewer="codex")
    for _ in range(5):
        state = judged(state, sim.opinion(mainline="stalled"), checks=(check,))
        assert (state.stuck, state.mainline, state.phase) == (0, mainline, "BUILD")
    alone = judged(sim.begun(reviewer="codex"), *[sim.opinion(mainline="regressed")] * 3, checks=(sim.check(),))
    assert alone.exit_reason == "stalled: 3 verdicts in a row saw no progress"


def test_the_evidence_outranks_a_reviewer_that_says_complete() -> None:
    """Breaks when a criterion or a missing target is closed by word of mouth."""
    for checks, verdict in (
        ((sim.check(met=False),), said(verdict="complete")),
        (DONE, said(verdict="complete", unmet=("AC-1",))),
    ):
        state = judged(sim.begun(reviewer="codex"), verdict, checks=checks)
        assert (state.phase, state.round) == ("BUILD", 1)
