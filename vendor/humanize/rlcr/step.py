"""The whole state machine as one pure function: no disk, clock, git or process is touched here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rlcr.model import (
    RULES,
    Adopt,
    Amend,
    Ask,
    Cancel,
    Decide,
    Done,
    Effect,
    Event,
    Failure,
    Gathered,
    Halt,
    Opinion,
    Outcome,
    Phase,
    Resume,
    Reviewed,
    Setup,
    State,
    Stop,
    Tamper,
    sha256,
)
from rlcr.weigh import STALLS, course, evidence_opinion, unmet, weigh

PATIENCE = 3
"""Red gates over one tree, or machinery failures of one class, in a row: then the loop parks."""
BLOCKS_PER_ROUND = 4
"""Blocks of every kind, red gates included, are capped at this many times ``max``."""
NOOPS = 2
"""Rounds in a row that may end without a commit."""
LEGAL: dict[str, tuple[str, ...]] = {
    "NONE": ("BUILD", "CODE_REVIEW"),
    "BUILD": ("BUILD", "CODE_REVIEW", "FINALIZE", "PARKED", "CANCEL", "MAXITER", "STOP"),
    "CODE_REVIEW": ("BUILD", "CODE_REVIEW", "FINALIZE", "PARKED", "CANCEL", "MAXITER", "STOP"),
    "FINALIZE": ("BUILD", "CODE_REVIEW", "FINALIZE", "COMPLETE", "PARKED", "CANCEL", "MAXITER", "STOP"),
    "PARKED": ("BUILD", "CODE_REVIEW", "FINALIZE", "PARKED", "CANCEL", "STOP"),
}
"""Which phase may follow which; a terminal is followed by none.

UNEXPECTED follows no event: it is where a loop is laid down whose journal cannot be continued.
"""


class Illegal(ValueError):
    """The event does not fit the state: a journal that holds it was not written by this runtime."""


def step(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    """The next state and what it asks of the world.

    A Stop yields one effect: ``Ask`` (state unchanged: come back with a verdict) or ``Decide``. Raises Illegal.
    """
    effects: tuple[Effect, ...] = ()
    if isinstance(event, Stop):
        new, effects = _stop(state, event)
    else:
        new = _simple(state, event)
    if new.phase != state.phase and new.phase not in LEGAL.get(state.phase, ()):
        raise Illegal(f"{state.phase} cannot become {new.phase}")
    return new, effects


def _simple(state: State, event: Event) -> State:
    if isinstance(event, Setup):
        return _setup(state, event)
    if isinstance(event, Done):
        return replace(state, pending="", files={**state.files, **event.files}) if event.id == state.pending else state
    if isinstance(event, Tamper):
        state = replace(state, tampers=state.tampers + 1)
        return _doubted(state) if event.path == "registry" and state.active else state
    if not state.active:
        raise Illegal("the loop is not active")
    if isinstance(event, Amend):
        return _amend(state, event)
    if isinstance(event, Resume):
        return _resume(state)
    return replace(state, **_noted(event))


def _noted(event: Event) -> dict[str, Any]:
    """What an event changes that may come at any time while the loop is active."""
    if isinstance(event, Reviewed):
        return {"review_key": event.key, "review": event.verdict}
    if isinstance(event, Gathered):
        return {"gathered": event}
    if isinstance(event, Cancel):
        return {"phase": "CANCEL", "exit_reason": event.why, "pending": "cancel"}
    if isinstance(event, Halt):
        return {"phase": "STOP", "exit_reason": f"user: {event.why}", "pending": "halt"}
    if isinstance(event, Adopt):
        return {"session_sha256": event.session_sha256, "pending": "adopt"}
    raise Illegal(f"no such event: {event!r}")


def _setup(state: State, event: Setup) -> State:
    if state.phase != "NONE":
        raise Illegal("a second set-up")
    if event.rules != RULES:
        raise Illegal(f"started under rules {event.rules}, this runtime has {RULES}: cancel, and set up again")
    phase: Phase = "CODE_REVIEW" if event.skip_impl else "BUILD"
    return State(
        setup=event, first_setup=event, phase=phase, session_sha256=event.session_sha256, pending="setup",
        round_head=event.start_commit or event.base_commit, work_expected=not event.skip_impl,
    )  # fmt: skip


def _amend(state: State, event: Amend) -> State:
    """Judge by something else from here on: what was accepted before was accepted by the old measure."""
    if event.what not in ("plan", "evidence") or (event.what == "evidence") != (event.evidence is not None):
        raise Illegal(f"no such amendment: {event.what}")
    begun = state.begun
    if event.what == "plan":
        if not begun.plan:
            raise Illegal("the loop has no plan")
        # The criteria may be others now, so the work on them is open again.
        back: Phase = "CODE_REVIEW" if begun.skip_impl else "BUILD"
        phase = "PARKED" if state.phase == "PARKED" else back
        state = replace(state, phase=phase, parked_from=back, work_expected=not begun.skip_impl)
        begun = replace(begun, plan_sha256=event.sha256)
    elif event.evidence is not None:
        begun = replace(begun, evidence=event.evidence)
    return replace(
        state, setup=begun, reviewed_head="", review_head="", review_key="", review=None, gathered=None, red_key="",
        red_count=0, amends=(*state.amends, event), pending=f"amend-{len(state.amends) + 1}",
    )  # fmt: skip


def _doubted(state: State) -> State:
    """Nothing vouches for the journal: what was accepted in it may be a forgery, and is looked at again."""
    skip = state.begun.skip_impl
    back: Phase = "CODE_REVIEW" if skip else "BUILD"
    return replace(
        state, phase="PARKED" if state.phase == "PARKED" else back, parked_from=back, work_expected=not skip,
        reviewed_head="", review_head="", review_phase="", review_key="", review=None, gathered=None, red_key="",
        red_count=0, pending=f"doubt-{state.tampers}",
    )  # fmt: skip


def _resume(state: State) -> State:
    if state.phase != "PARKED":
        raise Illegal("the loop is not parked")
    if state.blocks >= BLOCKS_PER_ROUND * state.begun.max:
        raise Illegal("its blocks are spent: cancel, and set up again")
    return replace(
        state, phase=state.parked_from, red_key="", red_count=0, infra_kind="", infra_count=0, stalls=0,
        repeats=0, exit_reason="", pending="resume",
    )  # fmt: skip


def _stop(state: State, stop: Stop) -> tuple[State, tuple[Effect, ...]]:
    if not state.active:
        raise Illegal("a Stop after the end")
    if state.phase == "PARKED":
        return state, (Decide(outcome="allow", phase="PARKED", round=state.round, headline=state.exit_reason),)
    if stop.round != state.round or stop.phase != state.phase:
        raise Illegal(f"a Stop of round {stop.round} ({stop.phase}) in round {state.round} ({state.phase})")
    if stop.failure is not None:
        return _failed(state, stop, stop.failure)
    if stop.problems or not all(check.passed for check in stop.checks):
        return _red(state, stop)
    green = replace(state, red_key="", red_count=0)
    if state.begun.reviewer == "evidence-only":
        return _judge(green, stop, evidence_opinion(stop))
    if state.phase == "FINALIZE" and stop.head == state.reviewed_head and unmet(stop) is None:
        return _complete(green, stop)
    if stop.verdict is None:
        since = state.review_head or state.begun.base_commit
        return state, (Ask(phase=state.phase, full=_full(state), since=since),)
    return _judge(green, stop, stop.verdict)


def _full(state: State) -> bool:
    """Whether everything is looked at: the first review of a phase, and every Nth round; edits in FINALIZE never."""
    every = state.begun.full_review_round
    if not state.review_head:
        return True
    first = state.review_phase != state.phase or state.round % every == every - 1
    return first and state.phase != "FINALIZE"


def _settle(state: State, stop: Stop, decide: Decide) -> tuple[State, tuple[Effect, ...]]:
    blocks = state.blocks + (decide.outcome == "block")
    if blocks > BLOCKS_PER_ROUND * state.begun.max:
        blocks = state.blocks
        decide = _park(state, f"{blocks} blocks are {BLOCKS_PER_ROUND} times --max: the budget is spent")
    if decide.phase == "PARKED":
        state = replace(state, parked_from=state.phase, exit_reason=decide.headline)
    new = replace(
        state, phase=decide.phase, round=decide.round, blocks=blocks, intents=state.intents + 1, last=decide,
        last_stop=stop, pending=f"{stop.round}-{state.intents + 1}",
    )  # fmt: skip
    return new, (decide,)


def _park(state: State, why: str, items: tuple[str, ...] = ()) -> Decide:
    page = f"round-{state.round}-gate.md"
    return Decide(outcome="PARKED", phase="PARKED", round=state.round, headline=why, items=items, page=page)


def problem_lines(stop: Stop) -> tuple[str, ...]:
    """Every problem of a Stop, one line each, blocking ones first, with its remedy."""
    out = [f"{p.rule} {p.where}: {p.what}" + (f" -> {p.fix}" if p.fix else "") for p in stop.problems]
    for check in stop.checks:
        # A severity that is not known comes first: what is not understood is not put last.
        found = sorted(check.problems, key=lambda p: p.severity == "repair")
        if not check.passed:
            # A trend is shown on the gate's page; among what is to be mended it would only mislead.
            words = [
                f"{check.name} {p.rule} {p.where}: {p.what}" + (f" -> {p.fix}" if p.fix else "")
                for p in found if p.severity != "trend"
            ]  # fmt: skip
            out += words or [f"{check.name}: did not pass (exit {check.exit}) and named no finding"]
    return tuple(out)


def _failed(state: State, stop: Stop, failure: Failure) -> tuple[State, tuple[Effect, ...]]:
    count = state.infra_count + 1 if failure.kind == state.infra_kind else 1
    state = replace(state, infra_kind=failure.kind, infra_count=count)
    items = (f"{failure.kind}: {failure.detail}", *problem_lines(stop))
    if count >= PATIENCE:
        return _settle(state, stop, _park(state, f"{failure.kind} failed {count} times in a row", items))
    return _settle(
        state, stop,
        Decide(
            outcome="block", phase=state.phase, round=state.round, items=items, page=f"round-{state.round}-gate.md",
            headline=f"Round {state.round} could not be judged ({failure.kind}); it is not counted. Stop again",
        ),
    )  # fmt: skip


def _red(state: State, stop: Stop) -> tuple[State, tuple[Effect, ...]]:
    state = replace(state, infra_kind="", infra_count=0)
    items = problem_lines(stop)
    # A trend is shown and holds nothing up; one that comes late ("the same finding twice") must not make a gate new.
    keys = [p.key for p in stop.problems]
    keys += [p.key for check in stop.checks for p in check.problems if p.severity != "trend"]
    key = sha256("\n".join([stop.tree, *sorted(keys)]))
    count = state.red_count + 1 if key == state.red_key else 1
    state = replace(state, red_key=key, red_count=count)
    if count >= PATIENCE:
        return _settle(state, stop, _park(state, f"the same red gate {count} times over an unchanged tree", items))
    lane = "the gate is red, in papers and order only" if _repair_only(stop) else "the gate is red"
    headline = f"Round {state.round}: {lane}, {len(items)} to mend; the round is not over and no review is spent"
    page = f"round-{state.round}-gate.md"
    return _settle(
        state, stop,
        Decide(outcome="block", phase=state.phase, round=state.round, headline=headline, items=items, page=page),
    )  # fmt: skip


PAPERS = ("summary", "contract", "tracker", "clean", "head", "branch", "humanize")
"""Our own rules whose findings say nothing about the work itself."""


def _repair_only(stop: Stop) -> bool:
    """Whether everything that stands against a Stop is mended without touching the work."""
    ours = all(p.severity == "repair" or p.rule in PAPERS for p in stop.problems)
    asked = (check for check in stop.checks if not check.passed)
    return ours and all(
        check.problems and all(p.severity in ("repair", "trend") for p in check.problems) for check in asked
    )


def _judge(state: State, stop: Stop, said: Opinion) -> tuple[State, tuple[Effect, ...]]:
    state, found = weigh(state, stop, said)
    held = found.held
    items = tuple(f"[{f.priority}] {f.id} {f.file}:{f.line} {f.claim}" for f in held) + found.unmet
    inside = any(f.locus not in ("plan", "external") for f in held)
    # A word alone ends nothing: what the worker can still mend, or the evidence still wants, is no reason to stop.
    outside = bool(held) and not inside
    if outside and (said.verdict == "blocked" or (not found.unmet and unmet(stop) is None)):
        if held and all(f.locus == "plan" for f in held):
            return _end(state, stop, "STOP", "plan-conflict: what is left asks for another plan", items)
        return _end(state, stop, "STOP", "blocked: what is left cannot be done from inside the loop", items)
    if state.stuck >= STALLS:
        why = "saw no progress" if state.stalls >= STALLS else "changed nothing that was open"
        return _end(state, stop, "STOP", f"stalled: {state.stuck} verdicts in a row {why}", items)
    if said.verdict == "complete" and not held and not found.unmet:
        return _accepted(state, stop)
    phase: Phase = "BUILD" if state.begun.reviewer == "evidence-only" or state.phase == "BUILD" else "CODE_REVIEW"
    return _next(state, stop, phase, f"Round {stop.round} is over; round {stop.round + 1} begins", items)


def _accepted(state: State, stop: Stop) -> tuple[State, tuple[Effect, ...]]:
    state = replace(state, reviewed_head=stop.head)
    if state.phase == "FINALIZE":
        return _complete(state, stop)
    if state.phase == "BUILD" and state.begun.reviewer != "evidence-only":
        return _next(state, stop, "CODE_REVIEW", "The plan is done; the code is reviewed next. Stop again", ())
    note = "; the reviewer is the evidence alone, so there is no code review" if state.phase == "BUILD" else ""
    headline = f"Everything is met{note}: finalize"
    state = replace(state, work_expected=True, round_head=stop.head, round_tree=stop.tree)
    page = "finalize-prompt.md"
    return _settle(
        state, stop, Decide(outcome="block", phase="FINALIZE", round=stop.round, headline=headline, page=page)
    )


def _next(
    state: State, stop: Stop, phase: Phase, headline: str, items: tuple[str, ...]
) -> tuple[State, tuple[Effect, ...]]:
    after = stop.round + 1
    if after > state.begun.max:
        return _end(state, stop, "MAXITER", f"--max {state.begun.max} is reached", items)
    asks = bool(items) or phase == state.phase
    state = replace(state, work_expected=asks, round_head=stop.head, round_tree=stop.tree)
    page = f"round-{after}-prompt.md"
    return _settle(
        state, stop,
        Decide(
            outcome="block", phase=phase, round=after, headline=headline, items=items, page=page,
            drift=state.stuck == STALLS - 1, course=course(stop),
        ),
    )  # fmt: skip


def _end(state: State, stop: Stop, phase: Phase, why: str, items: tuple[str, ...]) -> tuple[State, tuple[Effect, ...]]:
    outcome: Outcome = "MAXITER" if phase == "MAXITER" else "STOP"
    state = replace(state, exit_reason=why)
    return _settle(state, stop, Decide(outcome=outcome, phase=phase, round=stop.round, headline=why, items=items))


def _complete(state: State, stop: Stop) -> tuple[State, tuple[Effect, ...]]:
    said = "; ".join(f"{check.name}: {check.why}" for check in stop.checks if check.why)
    why = "complete: the gate passed at this HEAD in FINALIZE" + (f" ({said[:600]})" if said else "")
    state = replace(state, exit_reason=why, reviewed_head=stop.head)
    return _settle(state, stop, Decide(outcome="COMPLETE", phase="COMPLETE", round=stop.round, headline=why))
