"""Laws of the loop: whatever comes in whatever order, the state stays legal, bounded, and what the journal says."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rlcr import journal as journals
from rlcr.model import (
    EXITS,
    REVIEWERS,
    TERMINALS,
    Adopt,
    Amend,
    Ask,
    Cancel,
    Check,
    Course,
    Decide,
    Done,
    Event,
    Failure,
    Finding,
    Gathered,
    Halt,
    Opinion,
    Problem,
    Resume,
    Reviewed,
    Setup,
    State,
    Stop,
    Tamper,
)
from rlcr.step import LEGAL, Illegal, step
from tests.rlcr import sim

Move = tuple[str, Any]
"""An event's kind and what it is made of; a Stop's round and phase come from the state that it meets."""

few = st.sampled_from
FINDINGS = st.builds(
    Finding, id=few(["A", "B", "C", "D"]), priority=few(["P0", "P1", "P1", "P2", "P3", "P9"]),
    file=few(["src/a.py", "src/b.py", ""]), line=st.just(1), claim=few(["one", "two"]),
    locus=few(["in-round"] * 6 + ["plan", "external"]),
)  # fmt: skip
OPINIONS = st.builds(
    Opinion, verdict=few(["continue"] * 6 + ["complete"] * 3 + ["blocked"]),
    mainline=few(["advanced", "stalled", "regressed"]), unmet=few([(), (), ("AC-1",)]),
    findings=st.lists(FINDINGS, max_size=3).map(tuple), full=st.booleans(), changed=few([(), ("src/a.py",)]),
)  # fmt: skip
COURSES = st.none() | st.builds(Course, kind=few(["on", "widen", "decide", "finish"]), weak=few([0, 1, 3]))
PROBLEMS = st.builds(
    Problem, rule=few(["clean", "summary", "12", "moved"]), where=few(["x", "y"]), what=st.just("no"),
    severity=few(["block", "repair", "trend"]),
)  # fmt: skip
CHECKS = st.builds(
    Check, name=few(["gate", "slow"]), exit=few([0, 1]), seconds=st.just(0.5), stdout_sha256=few(["d" * 64, "e" * 64]),
    passed=few([True, True, True, False]), met=st.booleans(), missing=few([(), ("the target",)]),
    problems=st.lists(PROBLEMS, max_size=1).map(tuple), course=COURSES,
)  # fmt: skip
GREEN = st.builds(
    Check, name=st.just("gate"), exit=st.just(0), seconds=st.just(0.5), stdout_sha256=st.just("d" * 64),
    passed=st.just(True), met=few([True, True, False]), missing=few([(), ("the target",)]), course=COURSES,
)  # fmt: skip
YES = st.builds(Opinion, verdict=st.just("complete"), mainline=st.just("advanced"))
FAILURES = few([Failure(kind="review-empty", detail="x"), Failure(kind="evidence-exit", detail="y")])


def stops(checks: st.SearchStrategy[Check], verdict: st.SearchStrategy[Opinion], **over: Any) -> Any:
    """Stops, by their parts."""
    made: dict[str, Any] = {
        "n": st.integers(0, 4), "off": st.just(0), "problems": st.just(()), "failure": st.none(),
        "checks": st.lists(checks, max_size=2).map(tuple), "verdict": verdict, "noop": few(["", "", "", "waiting"]),
    }  # fmt: skip
    return st.fixed_dictionaries({**made, **over})


STOPS = st.one_of(
    stops(GREEN, OPINIONS), stops(GREEN, OPINIONS), stops(GREEN, YES),
    stops(CHECKS, OPINIONS, problems=st.lists(PROBLEMS, max_size=1).map(tuple)),
    stops(CHECKS, OPINIONS, failure=st.none() | FAILURES, off=few([0, 0, 0, 1])),
)  # fmt: skip
SETUPS = st.fixed_dictionaries(
    {"max": few([1, 2, 4, 6]), "reviewer": few(REVIEWERS), "skip_impl": st.booleans(),
     "plan": few([".humanize/plan.md", ".humanize/plan.md", ""]), "full_review_round": st.integers(2, 5)}
)  # fmt: skip
AMENDS = few(
    [
        Amend(what="plan", why="w", sha256="1" * 64, text="# new"),
        Amend(what="evidence", why="w", sha256="2" * 64, evidence={"path": "x", "sha256": "3" * 64, "commands": []}),
        Amend(what="evidence", why="w", sha256="2" * 64),
        Amend(what="mind", why="w", sha256=""),
    ]
)
OTHERS: st.SearchStrategy[Event] = st.one_of(
    AMENDS,
    st.builds(Reviewed, key=few(["k", "l"]), verdict=OPINIONS),
    st.builds(Gathered, key=few(["k", "l"]), checks=st.lists(CHECKS, max_size=2).map(tuple)),
    st.builds(Done, id=few(["setup", "0-1", "1-2", "resume", "amend-1"]), files=st.just({"state.md": "4" * 64})),
    few(
        [
            Resume(),
            Resume(),
            Resume(),
            Adopt(session_sha256="9" * 64),
            Tamper(what="changed", path="plan.md"),
            Tamper(what="x", path="registry"),
        ]
    ),
)
ENDS: st.SearchStrategy[Event] = few([Cancel(), Halt(why="enough")])
NOTHING = Tamper(what="changed", path="state.md")
MOVES: st.SearchStrategy[Move] = st.one_of(
    *[STOPS.map(lambda s: ("stop", s))] * 5,
    STOPS.map(lambda s: ("thrice", s)),
    *[OTHERS.map(lambda e: ("event", e))] * 2,
    st.integers(0, 9).flatmap(lambda n: ENDS if n == 5 else st.just(NOTHING)).map(lambda e: ("event", e)),
    SETUPS.map(lambda s: ("event", sim.setup(**s))),
)


def stop_of(state: State, made: dict[str, Any]) -> Stop:
    """A Stop as it would be in this state, without the reviewer's answer."""
    return sim.stop(
        state, made["n"], round=state.round + made["off"], problems=made["problems"], failure=made["failure"],
        checks=made["checks"], noop=made["noop"],
    )  # fmt: skip


class Run:
    """A loop that is stepped and journalled, and held to every law on the way."""

    def __init__(self, path: Path) -> None:
        self.path, self.journal, self.state = path, journals.Journal(), State()
        self.blocked = 0

    def move(self, move: Move) -> None:
        kind, made = move
        for _ in range(2 if kind == "thrice" else 0):
            self.move(("stop", made))
        if kind == "event":
            self.put(made)
            return
        stop = stop_of(self.state, made)
        if self.state.phase == "PARKED":
            same, effects = step(self.state, stop)
            assert same == self.state and sim.last(list(effects)).outcome == "allow"
            return
        try:
            asked = step(self.state, stop)
        except Illegal:
            self.put(stop)
            return
        if isinstance(asked[1][0], Ask):
            assert asked[0] == self.state and self.state.begun.reviewer != "evidence-only"
            stop = replace(stop, verdict=made["verdict"])
        self.put(stop)

    def put(self, event: Event) -> None:
        before, size = self.state, self.path.stat().st_size if self.path.exists() else 0
        try:
            after, effects = step(before, event)
        except Illegal:
            try:
                journals.append(self.path, self.journal, event, at=sim.AT, head="")
                raise AssertionError("the journal took what the rules refuse")
            except Illegal:
                pass
            assert (self.path.stat().st_size if self.path.exists() else 0) == size
            return
        assert (after, effects) == step(before, event), "the same cause has the same effect"
        self.journal = journals.append(self.path, self.journal, event, at=sim.AT, head="")
        assert self.journal.state == after, "what is remembered is what was decided"
        self.state = after
        self.blocked += sum(isinstance(e, Decide) and e.outcome == "block" for e in effects)
        lawful(before, after)
        assert self.blocked <= 4 * after.begun.max if after.setup else not self.blocked


def lawful(before: State, after: State) -> None:
    """What holds over every step."""
    assert after.phase == before.phase or after.phase in LEGAL.get(before.phase, ())
    assert before.phase not in TERMINALS or (after.phase, after.exit_reason) == (before.phase, before.exit_reason)
    assert after.round in (before.round, before.round + 1)
    if after.setup is None:
        return
    assert after.round <= after.begun.max and after.blocks <= 4 * after.begun.max
    assert after.phase != "STOP" or after.exit_reason.startswith(tuple(f"{word}: " for word in EXITS))
    assert after.phase != "COMPLETE" or before.phase in ("FINALIZE", "COMPLETE")
    assert after.active or after.phase in TERMINALS
    known = {k.finding.id: k.state for k in after.findings}
    assert len(known) == len(after.findings) and all(0 <= k.first <= k.last <= after.round for k in after.findings)
    for word, found in (("open", after.open), ("queued", after.queued)):
        assert [f.id for f in found] == list(dict.fromkeys(f.id for f in found))
        assert {f.id for f in found} == {name for name, state in known.items() if state == word}
    assert {k.finding.id for k in before.findings} <= set(known), "a finding is never forgotten"
    assert after.phase not in ("FINALIZE", "COMPLETE") or not [f for f in after.open if f.priority in ("P0", "P1")]


@contextmanager
def running() -> Iterator[Run]:
    with tempfile.TemporaryDirectory() as folder:
        yield Run(Path(folder, journals.NAME))


QUICK = settings(max_examples=90, deadline=None, derandomize=True, database=None)


@QUICK
@given(first=SETUPS, moves=st.lists(MOVES, min_size=10, max_size=30))
def test_any_order_of_events_leaves_a_legal_state_and_the_journal_says_the_same(
    first: dict[str, Any], moves: list[Move]
) -> None:
    """Breaks when some order of events leaves the table of phases, grows past a bound, or replays to another state."""
    with running() as run:
        run.put(sim.setup(**first))
        for move in moves:
            run.move(move)
        read = journals.read(run.path)
        assert (read.state, read.faults) == (run.state, ())


@QUICK
@given(moves=st.lists(MOVES, max_size=6))
def test_nothing_but_a_set_up_begins_a_loop(moves: list[Move]) -> None:
    """Breaks when a stray event before the set-up leaves a loop that nobody began."""
    with running() as run:
        for move in moves:
            if not isinstance(move[1], Setup):
                run.move(move)
        assert (run.state.phase, run.blocked) == ("NONE", 0)


@QUICK
@given(first=SETUPS, moves=st.lists(MOVES, min_size=2, max_size=8), tail=st.lists(STOPS, min_size=1, max_size=5))
def test_without_resume_a_worker_that_goes_on_stopping_is_let_go(
    first: dict[str, Any], moves: list[Move], tail: list[dict[str, Any]]
) -> None:
    """Breaks when some run of Stops, red, green, failed or reviewed, can be blocked for ever."""
    state = step(State(), sim.setup(**first))[0]
    for kind, made in moves:
        state = stepped(state, made if kind == "event" else stop_of(state, made), None if kind == "event" else made)
    blocks = 0
    for turn in range(4 * state.begun.max + 1):
        if state.phase in ("PARKED", *TERMINALS):
            break
        made = {**tail[turn % len(tail)], "off": 0, "n": turn}
        after = stepped(state, stop_of(state, made), made)
        blocks += after.blocks - state.blocks
        state = after
    assert state.phase in ("PARKED", *TERMINALS) and blocks <= 4 * state.begun.max


def stepped(state: State, event: Event, made: dict[str, Any] | None) -> State:
    """The next state; a Stop that asks for a reviewer gets the answer that was made for it."""
    try:
        new, effects = step(state, event)
        if effects and isinstance(effects[0], Ask) and made is not None and isinstance(event, Stop):
            new, _ = step(state, replace(event, verdict=made["verdict"]))
    except Illegal:
        return state
    lawful(state, new)
    return new
