"""Acceptance criteria by their ids, in a plan and in the tables of the goal tracker. Pure.

A criterion is a line of the plan's section on criteria (``forms.section``) that opens with ``AC-<number>``, behind
whatever marks a list item, a heading, bold text or a table cell.
"""

from __future__ import annotations

import re

ID = re.compile(r"\bAC[-_ ]?(\d+(?:\.\d+)*)\b", re.IGNORECASE)
RANGE = re.compile(r"\bAC[-_ ]?(\d{1,6})\s*(?:-|\u2013|\.\.|to)\s*(?:AC[-_ ]?)?(\d{1,6})\b", re.IGNORECASE)
_LINE = re.compile(r"^[\s>|*#_\[\]`x-]*(?:\d+[.)]\s*)?[*_`\[]*AC[-_ ]?(\d+(?:\.\d+)*)\b", re.IGNORECASE)


def ids(text: str) -> tuple[str, ...]:
    """``AC-1``, ``AC-2.1`` ... of a section on criteria, in its order, each once; fenced text is passed over."""
    out: dict[str, None] = {}
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and (found := _LINE.match(line)):
            out[f"AC-{found[1]}"] = None
    return tuple(out)


def named(text: str) -> set[str]:
    """Every id that a text names, a range ``AC-2 to AC-5`` counted through."""
    out = {f"AC-{number}" for number in ID.findall(text)}
    for first, last in RANGE.findall(text):
        if int(first) <= int(last) <= int(first) + 500:
            out |= {f"AC-{n}" for n in range(int(first), int(last) + 1)}
    return out


def covered(criterion: str, by: set[str]) -> bool:
    """Whether an id, or the criterion that it is a part of, is among others."""
    parts = criterion.split(".")
    return any(".".join(parts[:n]) in by for n in range(1, len(parts) + 1))
