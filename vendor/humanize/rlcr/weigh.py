"""A reviewer's verdict, weighed: what it holds against the work, what is queued, and whether the work still moves.

Pure. Severity decides, and scope is locked: faults added elsewhere wait behind the ones that are being mended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rlcr.model import State, Stop
from rlcr.records import Course, Finding, Known, Opinion

STALLS = 3
"""Verdicts in a row without progress that end the loop; one before that asks for a recovery."""
OPEN, QUEUED, KEPT = 60, 400, 500
"""Findings that a state holds as open, as queued, and in all; what is closed is forgotten first."""


def unmet(stop: Stop) -> tuple[str, ...] | None:
    """What the evidence commands say is still missing; None when all of them call the task done."""
    left = [check for check in stop.checks if not check.met]
    if not left:
        return None
    return tuple(word for check in left for word in (check.missing or (check.why or f"{check.name}: not done",)))


def evidence_opinion(stop: Stop) -> Opinion:
    """The verdict of the evidence alone: complete iff there is evidence, it passed, and it calls the task done."""
    left = unmet(stop) if stop.checks else ("no evidence command has run",)
    if left is None:
        return Opinion(verdict="complete", mainline="advanced", text="gate passed and done")
    return Opinion(verdict="continue", mainline="unknown", unmet=left, text="gate passed, not done yet")


def course(stop: Stop) -> Course | None:
    """Where the numbers lead: of several commands that say so, the one that asks for most."""
    order = {"decide": 0, "widen": 1, "finish": 2}
    said = [check.course for check in stop.checks if check.course is not None]
    return min(said, key=lambda one: order.get(one.kind, 3), default=None)


def blocking(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """P0 and P1, and whatever has no known priority: what is not understood is not waved through."""
    return tuple(f for f in findings if f.priority not in ("P2", "P3"))


def held(state: State, said: Opinion) -> tuple[Finding, ...]:
    """The findings that block.

    In a re-review a new P1 about a file that nobody touched since the last review waits for the next full one, or
    until nothing else is left to do (``weigh``).
    """
    if said.full:
        return blocking(said.findings)
    known = {f.id for f in state.open}
    return tuple(f for f in blocking(said.findings) if f.priority != "P1" or f.id in known or _touched(f, said.changed))


def _touched(finding: Finding, changed: tuple[str, ...]) -> bool:
    """Whether a finding names a file that changed, or a folder above one, or nothing at all."""
    file = finding.file.rstrip("/")
    return not file or any(path == file or path.startswith(file + "/") for path in changed)


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """What a verdict comes to: findings that block, and everything that stands in the way of the end."""

    held: tuple[Finding, ...]
    unmet: tuple[str, ...]


def weigh(state: State, stop: Stop, said: Opinion) -> tuple[State, Weighed]:
    """The state with the verdict taken in, and what it comes to."""
    said = replace(said, findings=_distinct(said.findings))
    against = tuple(_gravest(held(state, said))[:OPEN])
    missing = unmet(stop) or ()
    left = said.unmet + (missing if said.verdict == "complete" else ())
    told = {f.id for f in said.findings}
    waiting = (
        *(f for f in said.findings if f not in against),
        *(f for f in state.queued if not said.full and f.id not in told),
    )
    if not against and not said.unmet and not missing:
        # Nothing else is left to do: what the scope kept waiting is next, for the end would pass it over.
        against = blocking(waiting)[:OPEN]
    queued = tuple(f for f in _gravest(waiting) if f not in against)[:QUEUED]
    numbers = course(stop)
    stalled = said.mainline in ("stalled", "regressed")
    mainline = said.mainline if numbers is None else ("stalled" if numbers.weak else "advanced")
    new = replace(
        state, infra_kind="", infra_count=0, open=against, queued=queued, mainline=mainline,
        # Where the numbers are known they decide how the work goes on, and no opinion ends it as stalled.
        stalls=state.stalls + 1 if stalled and numbers is None else 0,
        repeats=0 if _moved(state, stop, said, against, named=bool(left or missing)) else state.repeats + 1,
        noops=state.noops + 1 if stop.noop else 0,
        findings=_known(state, against, queued, stop.round), review_head=stop.head, review_phase=stop.phase,
    )  # fmt: skip
    return new, Weighed(held=against, unmet=left)


def _moved(state: State, stop: Stop, said: Opinion, against: tuple[Finding, ...], *, named: bool) -> bool:
    """Whether a round came further: it had a commit, and not every finding that was open is open still.

    A code review that goes on without naming anything that is left has no round come further.
    """
    before, now = {f.id for f in state.open}, {f.id for f in against}
    idle = stop.phase != "BUILD" and said.verdict == "continue" and not now and not named
    return not (stop.noop or idle or (before and before <= now))


def _distinct(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Each id once, as its gravest."""
    out: dict[str, Finding] = {}
    for finding in _gravest(findings):
        out.setdefault(finding.id, finding)
    return tuple(f for f in findings if out.get(f.id) is f)


def _gravest(findings: Iterable[Finding]) -> list[Finding]:
    """Sorted by priority, what blocks first."""
    return sorted(findings, key=lambda f: {"P1": 1, "P2": 2, "P3": 3}.get(f.priority, 0))


def _known(state: State, open_: tuple[Finding, ...], queued: tuple[Finding, ...], number: int) -> tuple[Known, ...]:
    now = {f.id: (f, word) for word, found in (("queued", queued), ("open", open_)) for f in found}
    out: list[Known] = []
    for known in state.findings:
        here = now.pop(known.finding.id, None)
        if here is not None:
            out.append(Known(finding=here[0], state=here[1], first=known.first, last=number))
        else:
            out.append(known if known.state == "closed" else replace(known, state="closed", last=number))
    out += [Known(finding=f, state=word, first=number, last=number) for f, word in now.values()]
    if len(out) <= KEPT:
        return tuple(out)
    rank = {"open": 0, "queued": 1}
    keep = sorted(range(len(out)), key=lambda n: (rank.get(out[n].state, 2), -out[n].last, -n))[:KEPT]
    return tuple(out[n] for n in sorted(keep))
