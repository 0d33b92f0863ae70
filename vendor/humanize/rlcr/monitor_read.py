"""What the monitor knows of a loop: its journal as the loop itself replays it, and two views beside it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcr import journal, tracker
from rlcr.criteria import covered, ids
from rlcr.files import TooBig, read_regular
from rlcr.journal import Journal
from rlcr.model import State
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
    faults = [Fault(code="journal", what=f"{fault.where}: {fault.what}") for fault in found.faults]
    if found.torn:
        faults.append(Fault(code="torn", what=f"{journal.NAME} ends in half a line of {len(found.torn)} bytes"))
    if (loop / f"{journal.NAME}.torn").exists():
        faults.append(Fault(code="torn-before", what=f"half a line was once moved to {journal.NAME}.torn"))
    if found.state.tampers:
        faults.append(Fault(code="tamper", what=f"files changed by another hand: {found.state.tampers}"))
    return found, faults


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
    text = _text(loop / tracker.NAME)
    above, _, tables = text.partition(f"\n{tracker.MUTABLE}")
    named = ids(above.partition("\n### Acceptance Criteria\n")[2])
    form = tracker.page(_text(loop / "plan.md")).partition(f"\n{tracker.MUTABLE}")[2].splitlines()
    kept = any(re.search(r"\w", line) and line not in form for line in tables.splitlines())
    done = tracker.completed(tables)
    return sum(covered(name, done) for name in named), len(named), kept


def _text(path: Path) -> str:
    try:
        return (read_regular(path, CAP) or b"").decode(errors="replace")
    except TooBig:
        return ""


def view_fault(loop: Path, state: State) -> Fault | None:
    """A fault when the state file's name tells another phase than the journal."""
    wanted = state_name(state)
    if (loop / wanted).is_file():
        return None
    return Fault(code="view", what=f"the journal says {state.phase}, but there is no {wanted}")
