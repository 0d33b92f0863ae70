"""Events of a loop without a repository: fake git facts, a fake evidence command, a clock that stands still."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlcr import journal as journals
from rlcr.model import Check, Decide, Effect, Event, Finding, Opinion, Problem, Setup, State, Stop
from rlcr.step import LEGAL, step

AT = "2026-11-30T08:00:00Z"


def head(n: int) -> str:
    return f"{n:040x}"


def setup(**over: Any) -> Setup:
    base: dict[str, Any] = {
        "loop": "2026-11-30_08-00-00", "max": 84, "plan": ".humanize/plan.md", "plan_sha256": "a" * 64,
        "branch": "main", "base_commit": head(0), "base_branch": "main", "reviewer": "evidence-only",
        "session_sha256": "b" * 64, "evidence": {"path": ".humanize/evidence.json", "sha256": "c" * 64, "commands": []},
        "at": AT,
    }  # fmt: skip
    return Setup(**{**base, **over})


def check(*, passed: bool = True, met: bool = False, problems: tuple[Problem, ...] = ()) -> Check:
    missing = () if met else ("target not reached",)
    return Check(
        name="gate", exit=0 if passed else 1, seconds=0.5, stdout_sha256="d" * 64, passed=passed, met=met,
        missing=missing, problems=problems,
    )  # fmt: skip


def red(rule: str = "12", where: str = "v003") -> Check:
    return check(passed=False, problems=(Problem(rule=rule, where=where, what="no row", fix="kernelpilot attempt"),))


def stop(state: State, n: int, **over: Any) -> Stop:
    """A Stop in the state's round and phase, with commit number ``n`` at HEAD."""
    base: dict[str, Any] = {
        "round": state.round, "phase": state.phase, "head": head(n), "tree": f"tree{n}",
        "summary_sha256": "e" * 64, "checks": (check(),), "at": AT,
    }  # fmt: skip
    return Stop(**{**base, **over})


def opinion(verdict: str = "continue", mainline: str = "advanced", **over: Any) -> Opinion:
    return Opinion(verdict=verdict, mainline=mainline, **over)


def finding(priority: str, locus: str = "in-round", **over: Any) -> Finding:
    base: dict[str, Any] = {"id": "F1", "file": "src/a.py", "line": 3, "claim": "wrong at the edge"}
    return Finding(priority=priority, locus=locus, **{**base, **over})


def drive(state: State, *events: Event) -> tuple[State, list[Effect]]:
    """Step through events, asserting that each change of phase is a legal one; every effect."""
    seen: list[Effect] = []
    for event in events:
        new, effects = step(state, event)
        assert new.phase == state.phase or new.phase in LEGAL[state.phase], (state.phase, new.phase)
        assert new.round in (state.round, state.round + 1)
        assert new.blocks <= 4 * new.begun.max
        seen += effects
        state = new
    return state, seen


def begun(**over: Any) -> State:
    return drive(State(), setup(**over))[0]


def last(effects: list[Effect]) -> Decide:
    assert isinstance(effects[-1], Decide)
    return effects[-1]


class Tape:
    """A journal on disk with its own clock."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / journals.NAME
        self.journal = journals.Journal()

    @property
    def state(self) -> State:
        return self.journal.state

    def put(self, event: Event, at_head: str = "") -> State:
        self.journal = journals.append(self.path, self.journal, event, at=AT, head=at_head)
        return self.state
