"""``goal-tracker.md``: the plan's goal and criteria above, the worker's tables below, and what these name. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlcr.criteria import covered, named
from rlcr.forms import CRITERIA, GOAL, bare, section

NAME = "goal-tracker.md"
MUTABLE = "## MUTABLE SECTION"
ACTIVE, DONE, DEFERRED = "Active Tasks", "Completed and Verified", "Explicitly Deferred"
TABLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("#### Plan Evolution Log", ("Round", "Change", "Reason", "Impact on AC")),
    (f"#### {ACTIVE}", ("Task", "Target AC", "Status", "Tag", "Owner", "Notes")),
    ("### Blocking Side Issues", ("Issue", "Discovered Round", "Blocking AC", "Resolution Path")),
    ("### Queued Side Issues", ("Issue", "Discovered Round", "Why Not Blocking", "Revisit Trigger")),
    (f"### {DONE}", ("AC", "Task", "Completed Round", "Verified Round", "Evidence")),
    (f"### {DEFERRED}", ("Task", "Original AC", "Deferred Since", "Justification", "When to Reconsider")),
)
CAP = 1 << 22
"""Bytes of the file."""
CELL_CAP = 2000
"""Characters of a cell that are looked at."""
LIFT_CAP = 200
"""Tasks that are taken over from a plan."""
_AC = ("ac", "acs", "criterion", "criteria")
_EMPTY = ("", "tbd", "todo", "none", "na", "n/a", "pending", "unknown")


def fixed(plan: str) -> str:
    """The part that only the plan decides: goal and all criteria word for word, up to the heading of the rest.

    A plan without a section on criteria is quoted whole: no line of it may be lost to a heading that is named oddly.
    """
    goal, wanted = section(plan, GOAL), section(plan, CRITERIA)
    if not plan.strip():
        goal, wanted = "Code that passes its review.", "None are written down: there is no plan."
    if not wanted:
        goal = goal or "As the plan says, which is quoted below."
        wanted = "\n".join(f"> {line}".rstrip() for line in plan.strip().splitlines())
    return (
        "# Goal Tracker\n\n## IMMUTABLE SECTION\n\n### Ultimate Goal\n\n"
        f"{goal or 'What the criteria below ask for.'}\n\n### Acceptance Criteria\n\n{wanted}\n\n---\n\n{MUTABLE}"
    )


def page(plan: str) -> str:
    """The tracker at set-up: the plan's own tasks are taken over as pending ones."""
    made = []
    for heading, columns in TABLES:
        rows = lifted(plan) if heading.endswith(ACTIVE) else ()
        lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(_line(row) for row in rows)]
        made.append(f"{heading}\n\n" + "\n".join(lines))
    return f"{fixed(plan)}\n\n### Plan Version: 1\n\n" + "\n\n".join(made) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def lifted(plan: str) -> tuple[tuple[str, ...], ...]:
    """Rows of Active Tasks that a plan's table of tasks (Task ID, Description, Target AC, Tag, Depends On) gives."""
    out = []
    for row in _rows(plan):
        task, aim = row.cell("task"), row.cell(*_AC)
        if task and aim and (row.has("description") or row.has("target")):
            words = ": ".join(part for part in (task, row.cell("description")) if part)
            after = row.cell("depends", "dependencies")
            notes = f"after {after}" if re.search(r"\w", after) else ""
            out.append((words[:400], aim[:400], "pending", row.cell("tag")[:40], "", notes[:200]))
    return tuple(out[:LIFT_CAP])


def renewed(text: str, plans: Sequence[str]) -> tuple[str, bool]:
    """A tracker under the newest of the plans, and whether it stood under none of them as it was found."""
    head = fixed(plans[-1])
    for plan in reversed(plans):
        old = fixed(plan)
        if text.startswith(old):
            return head + text[len(old) :], False
    marks = head.count(f"\n{MUTABLE}")
    parts = text.split(f"\n{MUTABLE}", marks)
    return (head + parts[marks] if len(parts) > marks else page(plans[-1])), True


def below(text: str, plan: str) -> str:
    """The worker's part of a tracker; all of it when what stands above is not the plan's."""
    head = fixed(plan)
    return text[len(head) :] if text.startswith(head) else text.partition(f"\n{MUTABLE}")[2]


def completed(tables: str) -> set[str]:
    """The criteria that the worker's part names as completed and verified."""
    return {name for row in _rows(tables, DONE) for name in named(row.cell(*_AC))}


def unnamed(tables: str, ids: Sequence[str]) -> tuple[str, ...]:
    """The criteria that no row of a worker's part names: neither active, nor completed, nor deferred."""
    by = {name for title in (ACTIVE, DONE, DEFERRED) for row in _rows(tables, title) for name in named(row.cell(*_AC))}
    return tuple(one for one in ids if not covered(one, by))


def unproved(tables: str, ids: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The criteria that are neither completed nor deferred, and those that are so with no word of evidence or why."""
    seen: set[str] = set()
    proved: set[str] = set()
    for title, words in ((DONE, ("evidence", "proof")), (DEFERRED, ("justification", "reason", "why"))):
        for row in _rows(tables, title):
            names = named(row.cell(*_AC))
            seen |= names
            proved |= names if _says(row.cell(*words)) else set()
    absent = tuple(one for one in ids if not covered(one, seen))
    return absent, tuple(one for one in ids if one not in absent and not covered(one, proved))


def listed(ids: Sequence[str]) -> str:
    """Ids in words, four or more that follow each other as a range.

    >>> listed(("AC-1", "AC-2", "AC-3", "AC-4", "AC-6.1"))
    'AC-1 to AC-4, AC-6.1'
    """
    runs: list[list[str]] = []
    due = ""
    for one in ids:
        if one == due:
            runs[-1].append(one)
        else:
            runs.append([one])
        number = re.fullmatch(r"AC-([0-9]{1,9})", one)
        due = f"AC-{int(number[1]) + 1}" if number else ""
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 3 else ", ".join(run) for run in runs)


def _says(cell: str) -> bool:
    return re.search(r"\w", cell) is not None and cell.strip(" \t*_`.-").casefold() not in _EMPTY


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row under its header; a column is known by a word of its heading, wherever it stands."""

    header: tuple[frozenset[str], ...]
    cells: tuple[str, ...]

    def has(self, *words: str) -> bool:
        """Whether a column has one of the words in its heading."""
        return any(name & set(words) for name in self.header)

    def cell(self, *words: str) -> str:
        """The cell of the first such column; empty when there is none."""
        found = (n for n, name in enumerate(self.header) if name & set(words))
        at = next(found, len(self.cells))
        return self.cells[at][:CELL_CAP] if at < len(self.cells) else ""


def _rows(text: str, title: str = "") -> Iterator[_Row]:
    """Rows of every table, or of those below a heading; blank lines within a table are passed over."""
    lines = list(_plain(bare(text)))
    header: tuple[frozenset[str], ...] = ()
    level = 0 if title else 9  # of the heading that we are below; 0 is outside
    for n, line in enumerate(lines):
        heading = re.match(r" {0,3}(#{1,6})\s+(.*)", line)
        if heading and title and len(heading[1]) <= (level or 9):
            words = " ".join(re.findall(r"\w+", heading[2].casefold()))
            level, header = len(heading[1]) if words.startswith(title.casefold()) else 0, ()
        elif level and "|" in line and not _is_rule(line):
            if n + 1 < len(lines) and _is_rule(lines[n + 1]):
                header = tuple(frozenset(re.findall(r"[a-z]+", cell.casefold())) for cell in _cells(line))
            elif header:
                yield _Row(header=header, cells=_cells(line))


def _plain(text: str) -> Iterator[str]:
    """The lines that stand in no fence."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield line


def _cells(line: str) -> tuple[str, ...]:
    """Cells of a row, with or without pipes at its edges; an escaped pipe belongs to its cell."""
    parts = re.split(r"(?<!\\)\|", line.strip())
    if not parts[0].strip():
        parts = parts[1:]
    if parts and not parts[-1].strip():
        parts = parts[:-1]
    return tuple(part.strip().replace("\\|", "|") for part in parts)


def _is_rule(line: str) -> bool:
    cells = _cells(line) if "-" in line and "|" in line else ()
    return bool(cells) and all(re.fullmatch(r":?-+:?", cell) for cell in cells)
