"""What the monitor knows of a loop: its journal as the loop itself replays it, and two views beside it."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rlcr import journal, registry, tracker
from rlcr.criteria import covered, ids
from rlcr.files import TooBig, read_regular
from rlcr.forms import criteria_of
from rlcr.journal import Journal
from rlcr.model import State
from rlcr.process import same
from rlcr.views import CAP, state_name

_LOOP_NAME = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\S*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Something in the loop's files that is not as it must be; ``code`` is stable, ``what`` is for people."""

    code: str
    what: str


def newest_loop(project: Path) -> Path | None:
    """The loop directory with the greatest name below ``project``, or None."""
    try:
        found = [p for p in (project / ".humanize" / "rlcr").iterdir() if _LOOP_NAME.fullmatch(p.name) and p.is_dir()]
    except OSError:
        return None
    return max(found, key=lambda path: path.name, default=None)


def read(loop: Path) -> tuple[Journal, list[Fault]]:
    """The journal up to its first fault, and the faults. Raises nothing for what is found there."""
    path = loop / journal.NAME
    try:
        found = journal.read(path)
        if found.torn:
            time.sleep(0.1)  # a line may be on its way
            found = journal.read(path)
    except (RecursionError, ArithmeticError) as bad:
        return Journal(), [Fault(code="journal", what=f"{journal.NAME} cannot be read: {type(bad).__name__}")]
    linked = [Fault(code="link", what=f"{loop.name} is a link: the loop's folder was moved away by hand")]
    faults = linked if loop.is_symlink() else []
    faults += [Fault(code="journal", what=f"{fault.where}: {fault.what}") for fault in found.faults]
    if found.torn:
        faults.append(Fault(code="torn", what=f"{journal.NAME} ends in half a line of {len(found.torn)} bytes"))
    if (loop / f"{journal.NAME}.torn").exists():
        faults.append(Fault(code="torn-before", what=f"half a line was once moved to {journal.NAME}.torn"))
    if found.state.tampers:
        faults.append(Fault(code="tamper", what=f"files changed by another hand: {found.state.tampers}"))
    return found, faults


def lease(loop: Path, now: datetime) -> dict[str, Any] | None:
    """What a Stop that is being decided does now, from ``lease.json``; None once its process is gone."""
    try:
        data = json.loads(read_regular(loop / "lease.json", 4096) or b"")
        since = datetime.strptime(data["since"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
        left = int(data["left_s"]) - int((now - since).total_seconds())
        if not same(data["pid"], data["mark"]):
            return None
        return {"doing": str(data["doing"]), "since": data["since"], "left_s": max(0, left), "pid": data["pid"]}
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError, TooBig):
        return None


def parked(session: str, loop: Path) -> str:
    """Why the hook lets go of a loop although its journal cannot say so, from the registry."""
    entry = registry.load(session) if session else None
    return entry.parked if entry is not None and entry.loop_dir == str(loop) else ""


def last_with(found: Journal, key: str) -> tuple[str, dict[str, Any]] | None:
    """When, and what, of the newest line that has ``key`` (``gate`` or ``verdict``)."""
    for entry in reversed(found.entries):
        value = entry.record["data"].get(key) if entry.record["event"] in ("intent", "review") else None
        if isinstance(value, dict):
            return str(entry.record.get("at", "")), value
    return None


def last_event(found: Journal) -> dict[str, Any] | None:
    """The newest line that tells something: a Stop with its outcome, or another kind; not that files are in place."""
    entry = next((e for e in reversed(found.entries) if e.record["event"] != "done"), None)
    if entry is None:
        return None
    record, data = entry.record, entry.record["data"]
    told: dict[str, Any] = {"kind": record["event"], "at": str(record.get("at", ""))}
    if told["kind"] != "intent":
        return {**told, "round": record["round"], "outcome": None, "reason": None}
    return {
        **told, "kind": "stop", "round": data["cause"]["round"], "outcome": data["outcome"], "reason": data["reason"],
    }  # fmt: skip


def criteria(loop: Path) -> tuple[int, int, bool]:
    """Acceptance criteria in goal-tracker.md: completed and verified, all, and whether the worker ever wrote there."""
    first = _text(loop / "plan.md")
    amended = sorted(loop.glob("plan-*.md"), key=lambda path: (len(path.name), path.name))
    plan = _text(amended[-1]) if amended else first
    above, tables = tracker.parts(_text(loop / tracker.NAME), plan)
    named = criteria_of(plan) or ids(above)
    form = set(tracker.parts(tracker.page(first), first)[1].splitlines())
    written = (line for line in tables.splitlines() if line not in form and not line.startswith("### Plan Version:"))
    done = tracker.completed(tables)
    return sum(covered(name, done) for name in named), len(named), any(re.search(r"\w", line) for line in written)


def _text(path: Path) -> str:
    try:
        return tracker.decoded(read_regular(path, CAP) or b"")[0]
    except TooBig:
        return ""


def view_fault(loop: Path, state: State) -> Fault | None:
    """A fault when the state file's name tells another phase than the journal."""
    wanted = state_name(state)
    if (loop / wanted).is_file():
        return None
    return Fault(code="view", what=f"the journal says {state.phase}, but there is no {wanted}")
