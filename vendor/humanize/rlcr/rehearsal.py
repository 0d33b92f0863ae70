"""``rlcr evidence``: what a Stop would hold against the round, found out ahead of it; or the commands pinned anew."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rlcr import decide, evidence, repo, reviewer
from rlcr.command import NoLoop, here, idle, move, take, why
from rlcr.files import Locked
from rlcr.loop import Loop
from rlcr.model import Amend, Gathered, State, Stop, plain
from rlcr.step import Illegal, problem_lines

HELD, UNJUDGED = 10, 20


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """A round as a Stop would see it; ``gathered`` names the commands that need not run again at this commit."""

    stop: Stop
    key: str
    gathered: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """Exit code of the command."""
        if self.stop.failure is not None:
            return UNJUDGED
        held = self.stop.problems or not all(check.passed for check in self.stop.checks)
        return HELD if held else 0


def main(words: list[str]) -> int:
    """0: nothing is held against the round, 10: something is, 20: it could not be judged, 1 and 3 as elsewhere."""
    given = take(words, "--why", flags=("--json", "--amend"))
    if "--amend" in given:
        return _amend(why(given))
    if "--why" in given:
        raise ValueError("--why goes with --amend")
    for told in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(told, _ended)  # so that the command's process group does not outlive us
    try:
        with idle(here()) as free:
            pass
        done = rehearse(free)
        with contextlib.suppress(Locked, NoLoop, Illegal):  # whoever moved the loop meanwhile does not take the answer
            done = _keep(free, done)
    except (repo.GitError, Locked) as error:
        print(f"Error: {error}", file=sys.stderr)
        return UNJUDGED
    print(_json(done) if "--json" in given else "\n".join(_text(done)))
    return done.code


def _ended(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def rehearse(loop: Loop) -> Rehearsed:
    """Rules and evidence of the loop's present round; nothing is written, and no lock is held. Raises GitError."""
    state = _at_work(loop.state)
    stop = decide.looked(loop, state, {}, (), math.inf)
    moved = decide.moved(loop, stop)
    if moved:
        return Rehearsed(stop=replace(stop, problems=(*stop.problems, *moved)), key="")
    facts = repo.look(loop.worktree, state.begun.base_commit)
    clean = not (facts.dirty or facts.hidden)
    return Rehearsed(stop=stop, key=decide.evidence_key(state, facts) if clean else "")


def _at_work(state: State) -> State:
    """A parked loop as it goes on after ``resume``."""
    return replace(state, phase=state.parked_from) if state.phase == "PARKED" else state


def _keep(loop: Loop, done: Rehearsed) -> Rehearsed:
    """Journal the answers that a Stop of this very commit may use, should the loop still stand where it stood."""
    checks = decide.lasting(loop.state, done.stop)
    if not checks or not done.key:
        return done
    with idle(loop) as free:
        state = _at_work(free.state)
        facts = repo.look(free.worktree, state.begun.base_commit)
        if facts.dirty or facts.hidden or decide.evidence_key(state, facts) != done.key:
            return done
        found = Gathered(key=done.key, checks=checks)
        if state.gathered != found:
            free.put(found, facts.head)
            free.sure()
    return replace(done, gathered=tuple(check.name for check in checks))


def _text(done: Rehearsed) -> Iterator[str]:
    stop = done.stop
    words = {0: "nothing is held against it", HELD: "held against it", UNJUDGED: "could not be judged"}
    yield f"Round {stop.round} ({stop.phase}) at {stop.head[:12]}: {words[done.code]}"
    if stop.failure is not None:
        yield f"- {stop.failure.kind}: {stop.failure.detail}"
    yield from (f"- {line}" for line in problem_lines(stop))
    for check in stop.checks:
        said = f"{'passed' if check.passed else 'did not pass'}, {'done' if check.met else 'not done'}"
        yield f"{check.name}: {said} ({check.seconds:.1f} s). {check.why}"
        yield from (f"  missing: {line}" for line in check.missing)
        yield from (f"  not evaluated: {line}" for line in check.not_evaluated)
        yield from (f"  {p.severity} {p.rule} {p.where}: {p.what}" for p in check.problems if check.passed)
    if done.gathered:
        yield f"kept for a Stop at this commit: {', '.join(done.gathered)}"


def _json(done: Rehearsed) -> str:
    stop = plain(done.stop)
    facts: dict[str, Any] = {key: stop[key] for key in ("round", "phase", "head", "problems", "checks", "failure")}
    facts |= {"pass": done.code == 0, "done": bool(stop["checks"]) and all(c["met"] for c in stop["checks"])}
    facts |= {"format": "humanize.rehearsal", "version": 1, "gathered": list(done.gathered)}
    return json.dumps(facts, indent=1, sort_keys=True)


def _amend(reason: str) -> int:
    found = here()
    before = found.state
    if before.setup is None:
        raise Illegal("the journal holds no set-up, see rlcr status")
    pinned = {**evidence.pin(found.worktree), **reviewer.pin(before.begun.reviewer, before.begun.evidence)}
    evidence.fits(pinned, before.begun.reviewer)
    with idle(found) as free:
        old = free.state.begun.evidence
        if pinned == old and before.pending.startswith("amend-"):
            print(f"AMENDED: evidence; an interrupted amendment was completed; {free.folder}")
            return 0
        if pinned == old:
            raise Illegal(f"{evidence.PATH} and what it names are as the loop has them: edit first, then amend")
        move(free, Amend(what="evidence", why=reason, sha256=pinned["sha256"], evidence=pinned))
        now = free.state
    had, has = ([c["name"] for c in pins["commands"]] for pins in (old, pinned))
    both = [name for name in has if name in had and _of(name, pinned) != _of(name, old)]
    print(f"AMENDED: evidence; {free.folder}\nPhase: {now.phase}, round {now.round}")
    for word, names in (
        ("added", [n for n in has if n not in had]), ("removed", [n for n in had if n not in has]), ("changed", both),
    ):  # fmt: skip
        print(f"Commands {word}: {', '.join(names) or 'none'}")
    if pinned.get(reviewer.KEY) != old.get(reviewer.KEY):
        print(f"Reviewer pinned anew: {pinned[reviewer.KEY]['program']}")
    return 0


def _of(name: str, pins: Any) -> Any:
    return next(command for command in pins["commands"] if command["name"] == name)
