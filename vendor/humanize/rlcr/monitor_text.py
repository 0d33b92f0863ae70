"""The monitor's picture: a list of labels and values, 80 columns wide where the values allow it."""

from __future__ import annotations

from typing import Any

_LISTED = 5
_STATUS = {
    "BUILD": "active: building",
    "CODE_REVIEW": "active: code review",
    "FINALIZE": "active: finalizing",
    "PARKED": "parked: waits for a person",
    "COMPLETE": "ended: complete",
    "CANCEL": "ended: cancelled",
    "MAXITER": "ended: out of rounds",
    "STOP": "ended: stopped",
    "UNEXPECTED": "ended: its state could not be trusted",
}


def render(found: dict[str, Any]) -> str:
    """A snapshot with a loop as text, without a final newline."""
    rows: list[tuple[str, str]] = [
        ("Session", _or_dash(found["loop"])),
        ("Started", _or_dash(found["started"])),
        ("Round", f"{_or_dash(found['round'])} of {_or_dash(found['max'])}"),
        ("Status", _status(found)),
        *([("Reason", found["reason"])] if found["reason"] else []),
        *([("At work", _lease(found["lease"]))] if found["lease"] else []),
        ("Reviewer", _or_dash(found["reviewer"])),
        ("Last gate", _gate(found["gate"])),
        ("Last verdict", _verdict(found)),
        ("Last event", _event(found["last_event"])),
        ("Blocks", _or_dash(found["blocks"])),
        ("Criteria", _criteria(found["criteria"])),
        ("Findings", _pair(found["findings"], "{open} open, {queued} queued")),
        ("Git", _git(found["git"])),
        ("Plan", _or_dash(found["plan"])),
        *(("Amended", text) for text in found["amendments"] or ()),
        ("Folder", _or_dash(found["dir"])),
        ("Log", found["log"] or "- (no reviewer has run)"),
    ]
    rows += [("FAULT", f"{fault['code']}: {fault['what']}") for fault in found["faults"]]
    return "\n".join(f"{label:<13} {_plain(value)}" for label, value in rows)


def _plain(value: str) -> str:
    """Without control characters: the values come from files that others may have written."""
    return "".join(c if c.isprintable() else "?" for c in value)


def _or_dash(value: object) -> str:
    return "-" if value is None or value == "" else str(value)


def _pair(value: dict[str, int] | None, form: str) -> str:
    return form.format(**value) if value else "-"


def _lease(lease: dict[str, Any]) -> str:
    return f"{lease['doing']} since {lease['since']}, at most {lease['left_s']} s more (process {lease['pid']})"


def _status(found: dict[str, Any]) -> str:
    phase = found["phase"]
    word = _STATUS.get(phase, "unknown phase")
    if phase == "COMPLETE" and found["reviewer"] == "evidence-only":
        word = "ended: accepted by the evidence"
    text = "-" if phase is None else f"{phase} ({word})"
    return text + ("; a transition is under way" if found["unfinished"] else "")


def _gate(gate: dict[str, Any] | None) -> str:
    if gate is None:
        return "- (has not run)"
    count, listed = len(gate["findings"]), ", ".join(gate["findings"][:_LISTED])
    more = f", and {count - _LISTED} more" if count > _LISTED else ""
    text = f"{'pass' if gate['pass'] else 'FAIL'}, {'done' if gate['done'] else 'not done'}, {_findings(count)}"
    return text + (f": {listed}{more}" if count else "")


def _findings(count: int) -> str:
    return "1 finding" if count == 1 else f"{count} findings"


def _criteria(criteria: dict[str, Any] | None) -> str:
    if criteria is not None and not criteria["kept"]:
        return f"{criteria['total']} (tracker not kept)"
    return _pair(criteria, "{met} of {total} verified")


def _verdict(found: dict[str, Any]) -> str:
    verdict = found["verdict"]
    if verdict is None:
        alone = found["reviewer"] == "evidence-only"
        return "- (no reviewer: the evidence alone decides)" if alone else "- (none yet)"
    mainline = verdict["mainline"]
    return f"{_or_dash(verdict['verdict'])}" + (f", mainline {mainline}" if mainline else "")


def _event(event: dict[str, Any] | None) -> str:
    if event is None:
        return "-"
    what = event["kind"]
    if what == "stop":
        what = f"Stop of round {event['round']}: {event['outcome']} ({event['reason']})"
    return f"{what}, {_ago(event['age_s'])}"


def _ago(seconds: int | None) -> str:
    if seconds is None:
        return "at an unreadable time"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def _git(git: dict[str, Any] | None) -> str:
    if git is None:
        return "- (git status failed)"
    counts = "~{changed} +{added} -{deleted} ?{untracked}".format(**git)
    return f"{git['head'][:12] or 'no commit'} {counts}"
