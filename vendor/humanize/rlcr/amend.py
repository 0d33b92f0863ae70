"""``rlcr plan``: show the plan as it stands, or judge by another one from here on, said aloud and with a reason."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from rlcr import forms, plan_file, tracker
from rlcr.command import here, idle, move, take, why
from rlcr.loop import Loop
from rlcr.model import Amend, State, sha256
from rlcr.step import Illegal


def plan(words: list[str]) -> int:
    """``show`` or ``amend --why TEXT``: 0 done, 1 no loop here, 3 anything else."""
    verbs = {"show": _show, "amend": _amend}
    if not words or words[0] not in verbs:
        raise ValueError("say rlcr plan show, or rlcr plan amend --why TEXT")
    return verbs[words[0]](words[1:])


def _show(words: list[str]) -> int:
    take(words)
    found = here()
    if found.state.setup is None:
        raise Illegal("the journal holds no set-up, see rlcr status")
    text = found.plan()
    if text is None:
        raise Illegal(f"the plan's words at set-up are gone from {found.state.begun.plan} and from {found.folder}")
    print(text or "the loop has no plan\n", end="")
    return 0


def _amend(words: list[str]) -> int:
    reason = why(take(words, "--why"))
    found = here()
    with idle(found) as free:
        begun, before = free.state.begun, free.state
        if not begun.plan:
            raise Illegal("the loop has no plan: it reviews what is there; cancel it, and set up with a plan")
        raw = plan_file.read(free.worktree, begun.plan, track=begun.plan_tracked)
        if sha256(raw) == begun.plan_sha256 and found.state.pending.startswith("amend-"):
            print(f"AMENDED: plan; an interrupted amendment was completed; {free.folder}")
            return 0
        if sha256(raw) == begun.plan_sha256:
            raise Illegal(f"{begun.plan} is as the loop has it: edit it first, then amend")
        old, new = free.plan(), raw.decode()
        move(free, Amend(what="plan", why=reason, sha256=sha256(raw), text=new))
        print("\n".join(_told(free, before, old, new)))
    return 0


def _told(free: Loop, before: State, old: str | None, new: str) -> Iterator[str]:
    now = free.state
    number = sum(1 for amend in now.amends if amend.what == "plan")
    yield f"AMENDED: plan, version {number + 1}; {free.folder}"
    yield f"Phase: {before.phase} -> {now.phase}" if before.phase != now.phase else f"Phase: {now.phase}, as before"
    if now.phase == "PARKED":
        yield f"       the loop stays parked; rlcr resume goes on in {now.parked_from}"
    yield f"Round: {now.round}"
    yield from tracker.told(new)
    if old is None:
        yield "Changed: unknown; the words of the plan before are gone"
        return
    had, has = forms.criteria_of(old), forms.criteria_of(new)
    yield f"Criteria added: {', '.join(c for c in has if c not in had) or 'none'}"
    yield f"Criteria removed: {', '.join(c for c in had if c not in has) or 'none'}"
    lines = [line[0] for line in difflib.ndiff(old.splitlines(), new.splitlines())] if _small(old, new) else []
    if lines:
        yield f"Lines: {lines.count('+')} added, {lines.count('-')} removed"


def _small(old: str, new: str) -> bool:
    """Whether a line by line comparison is quick."""
    return len(old) + len(new) < 64 * 1024
