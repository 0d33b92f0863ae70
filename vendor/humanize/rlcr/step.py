"""The whole state machine as one pure function: no disk, clock, git or process is touched here."""

from __future__ import annotations

from dataclasses import replace

from rlcr.model import (
    RULES,
    Adopt,
    Ask,
    Cancel,
    Decide,
    Done,
    Effect,
    Event,
    Failure,
    Finding,
    Opinion,
    Outcome,
    Phase,
    Reviewed,
    Setup,
    State,
    Stop,
    Tamper,
    sha256,
)

PATIENCE = 3
"""Red gates over one tree, or machinery failures of one class, in a row: then the loop parks."""
BLOCKS_PER_ROUND = 4
"""Blocks of every kind, red gates included, are capped at this many times ``max``."""
NOOPS = 2
"""Rounds in a row that may end without a commit."""
STALLS = 3
"""Stalled or regressed verdicts in a row that end the loop; one before that asks for a recovery."""

LEGAL: dict[str, tuple[str, ...]] = {
    "NONE": ("BUILD",),
    "BUILD": ("BUILD", "CODE_REVIEW", "FINALIZE", "PARKED", "CANCEL", "MAXITER", "STOP"),
    "CODE_REVIEW": ("BUILD", "CODE_REVIEW", "FINALIZE", "PARKED", "CANCEL", "MAXITER", "STOP"),
    "FINALIZE": ("BUILD", "CODE_REVIEW", "FINALIZE", "COMPLETE", "PARKED", "CANCEL", "MAXITER", "STOP"),
    "PARKED": ("BUILD", "CODE_REVIEW", "FINALIZE", "PARKED", "CANCEL"),
}
"""Which phase may follow which; a terminal is followed by none."""


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
        return replace(state, tampers=state.tampers + 1)
    if not state.active:
        raise Illegal("the loop is not active")
    if isinstance(event, Reviewed):
        return replace(state, review_key=event.key, review=event.verdict)
    if isinstance(event, Cancel):
        return replace(state, phase="CANCEL", exit_reason=event.why, pending="cancel")
    if isinstance(event, Adopt):
        return replace(state, session_sha256=event.session_sha256, pending="adopt")
    return _resume(state)


def _setup(state: State, event: Setup) -> State:
    if state.phase != "NONE":
        raise Illegal("a second set-up")
    if event.rules != RULES:
        raise Illegal(f"started under rules {event.rules}, this runtime has {RULES}: cancel, and set up again")
    head, session = event.base_commit, event.session_sha256
    return State(setup=event, phase="BUILD", session_sha256=session, round_head=head, pending="setup")


def _resume(state: State) -> State:
    if state.phase != "PARKED":
        raise Illegal("the loop is not parked")
    if state.blocks >= BLOCKS_PER_ROUND * state.begun.max:
        raise Illegal("its blocks are spent: cancel, and set up again")
    return replace(
        state, phase=state.parked_from, red_key="", red_count=0, infra_kind="", infra_count=0, stalls=0,
        exit_reason="", pending="resume",
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
    if state.phase == "FINALIZE" and stop.head == state.reviewed_head and _unmet(stop) is None:
        return _complete(green, stop)
    if stop.verdict is None:
        every = state.begun.full_review_round
        return state, (Ask(phase=state.phase, full=state.phase == "BUILD" and state.round % every == every - 1),)
    return _judge(green, stop, stop.verdict)


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
        found = sorted(check.problems, key=lambda p: {"repair": 1, "trend": 2}.get(p.severity, 0))
        if not check.passed:
            words = [f"{check.name} {p.rule} {p.where}: {p.what}" + (f" -> {p.fix}" if p.fix else "") for p in found]
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
    headline = f"Round {state.round}: the gate is red, {len(items)} to mend; the round is not over"
    page = f"round-{state.round}-gate.md"
    return _settle(
        state, stop,
        Decide(outcome="block", phase=state.phase, round=state.round, headline=headline, items=items, page=page),
    )  # fmt: skip


def _unmet(stop: Stop) -> tuple[str, ...] | None:
    """What the evidence commands say is still missing; None when all of them call the task done."""
    left = [check for check in stop.checks if not check.met]
    if not left:
        return None
    return tuple(word for check in left for word in (check.missing or (check.why or f"{check.name}: not done",)))


def evidence_opinion(stop: Stop) -> Opinion:
    """The verdict of the evidence alone: complete iff there is evidence, it passed, and it calls the task done."""
    unmet = _unmet(stop) if stop.checks else ("no evidence command has run",)
    if unmet is None:
        return Opinion(verdict="complete", mainline="advanced", text="gate passed and done")
    return Opinion(verdict="continue", mainline="unknown", unmet=unmet, text="gate passed, not done yet")


def blocking(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """P0 and P1, and whatever has no known priority: what is not understood is not waved through."""
    return tuple(f for f in findings if f.priority not in ("P2", "P3"))


def _judge(state: State, stop: Stop, said: Opinion) -> tuple[State, tuple[Effect, ...]]:
    held = blocking(said.findings)
    unmet = (said.unmet or ()) + (_unmet(stop) or () if said.verdict == "complete" else ())
    queued = {f.id: f for f in (*state.queued, *said.findings) if f not in held}
    stalls = state.stalls + 1 if said.mainline in ("stalled", "regressed") else 0
    state = replace(
        state, infra_kind="", infra_count=0, open=held, queued=tuple(queued.values()), mainline=said.mainline,
        stalls=stalls, noops=state.noops + 1 if stop.noop else 0,
    )  # fmt: skip
    items = tuple(f"[{f.priority}] {f.id} {f.file}:{f.line} {f.claim}" for f in held) + unmet
    outside = bool(held) and all(f.locus in ("plan", "external") for f in held)
    if said.verdict == "blocked" or (outside and not unmet):
        return _end(state, stop, "STOP", "blocked: what is left cannot be done from inside the loop", items)
    if stalls >= STALLS:
        return _end(state, stop, "STOP", f"stalled: {stalls} verdicts in a row saw no progress", items)
    if said.verdict == "complete" and not held and not unmet:
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
    drift = state.stalls == STALLS - 1
    page = f"round-{after}-prompt.md"
    return _settle(
        state, stop,
        Decide(outcome="block", phase=phase, round=after, headline=headline, items=items, page=page, drift=drift),
    )  # fmt: skip


def _end(state: State, stop: Stop, phase: Phase, why: str, items: tuple[str, ...]) -> tuple[State, tuple[Effect, ...]]:
    outcome: Outcome = "MAXITER" if phase == "MAXITER" else "STOP"
    state = replace(state, exit_reason=why)
    return _settle(state, stop, Decide(outcome=outcome, phase=phase, round=stop.round, headline=why, items=items))


def _complete(state: State, stop: Stop) -> tuple[State, tuple[Effect, ...]]:
    why = "complete: the gate passed at this HEAD in FINALIZE"
    state = replace(state, exit_reason=why, reviewed_head=stop.head)
    return _settle(state, stop, Decide(outcome="COMPLETE", phase="COMPLETE", round=stop.round, headline=why))
