"""``goal-tracker.md``: the plan's goal and criteria above, the worker's tables below, and what these name. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rlcr import criteria, markdown_table, said
from rlcr.criteria import Ids, Span, covered, lines
from rlcr.forms import GOAL, criteria_of, criteria_text, section
from rlcr.markdown_table import Row

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
LIFT_CAP = 200
"""Tasks that are taken over from a plan."""
ROW_CAP = 4000
"""Rows of one table that are looked at."""
ID_CAP = 20_000
"""Ids and ranges of one table that are looked at."""
_AC = ("ac", "acs", "criterion", "criteria")
_SAYS = {ACTIVE: (), DONE: ("evidence", "proof"), DEFERRED: ("justification", "reason", "why")}
_MARK = re.compile(r"^ {0,3}#{1,6}[ \t]{1,9}MUTABLE[ \t_-]{1,9}SECTION\b", re.IGNORECASE | re.MULTILINE)
_VERSION = re.compile(r"^(#{1,6} Plan Version:[ \t]{0,9})([0-9]{1,6})(?=[ \t]*$)", re.IGNORECASE | re.MULTILINE)


def fixed(plan: str) -> str:
    """The part that only the plan decides: goal and all criteria word for word, up to the heading of the rest.

    A plan without a section on criteria is quoted whole: no line of it may be lost to a heading that is named oddly.
    """
    goal, wanted = section(plan, GOAL), criteria_text(plan)
    if not plan.strip():
        goal, wanted = "Code that passes its review.", "None are written down: there is no plan."
    if not wanted:
        goal = goal or "As the plan says, which is quoted below."
        wanted = "\n".join(f"> {line}".rstrip() for line in lines(plan.strip()))
    return (
        "# Goal Tracker\n\n## IMMUTABLE SECTION\n\n### Ultimate Goal\n\n"
        f"{goal or 'What the criteria below ask for.'}\n\n### Acceptance Criteria\n\n{wanted}\n\n---\n\n{MUTABLE}"
    )


def page(plan: str) -> str:
    """The tracker at set-up: the plan's own tasks are taken over as pending ones."""
    made = []
    for heading, columns in TABLES:
        rows = lifted(plan) if heading.endswith(ACTIVE) else ()
        table = [
            f"| {' | '.join(columns)} |",
            f"|{'---|' * len(columns)}",
            *(markdown_table.line(*row) for row in rows),
        ]
        made.append(f"{heading}\n\n" + "\n".join(table))
    return f"{fixed(plan)}\n\n### Plan Version: 1\n\n" + "\n\n".join(made) + "\n"


def lifted(plan: str) -> tuple[tuple[str, ...], ...]:
    """Rows of Active Tasks that a plan's table of tasks (Task ID, Description, Target AC, Tag, Depends On) gives."""
    out = []
    for row in islice(markdown_table.rows(markdown_table.plain(plan)), ROW_CAP):
        task, aim = row.cell("task"), row.cell(*_AC)
        if task and aim and (row.has("description") or row.has("target")):
            words = ": ".join(part for part in (task, row.cell("description")) if part)
            after = row.cell("depends", "dependencies")
            notes = f"after {after}" if re.search(r"\w", after) else ""
            out.append((words[:400], aim[:400], "pending", row.cell("tag")[:40], "", notes[:200]))
    return tuple(out[:LIFT_CAP])


def decoded(raw: bytes) -> tuple[str, bool]:
    """A tracker's text with plain line ends, and whether other bytes than UTF-8 were found: UTF-16, or neither."""
    wide = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(raw[:2], "")
    if not wide and raw[:200].count(0) > 50:
        wide = "utf-16-le" if raw[1:200:2].count(0) > raw[:200:2].count(0) else "utf-16-be"
    text = raw.decode(wide or "utf-8", "replace")
    return "\n".join(lines(text)), bool(wide) or "\ufffd" in text


def renewed(text: str, plans: Sequence[str]) -> tuple[str, bool]:
    """A tracker under the newest of the plans, and whether it stood under none of them as it was found.

    Of the worker's part only the line with the plan's version follows, upwards.
    """
    head, rest = fixed(plans[-1]), None
    for plan in reversed(plans):
        rest = _under(text, fixed(plan)) if rest is None else rest
    strange = rest is None
    rest = _marked(text, head) if rest is None else rest
    rest = page(plans[-1])[len(head) :] if rest is None else rest
    told = _VERSION.search(rest)
    if told and int(told[2]) < len(plans):
        rest = f"{rest[: told.start()]}{told[1]}{len(plans)}{rest[told.end() :]}"
    return head + rest, strange


def parts(text: str, plan: str) -> tuple[str, str]:
    """What stands above the heading of the worker's part, and the worker's part; neither is checked."""
    text = "\n".join(lines(text))
    rest = below(text, plan)
    return text[: len(text) - len(rest)] if rest else text, rest


def below(text: str, plan: str) -> str:
    """The worker's part of a tracker; all of it when what stands above is not the plan's."""
    text, head = "\n".join(lines(text)), fixed(plan)
    found = _under(text, head)
    return (_marked(text, head) or "") if found is None else found


def _under(text: str, head: str) -> str | None:
    """What follows a fixed part; blanks at the ends of its lines and the case of its last heading do not count."""
    if text.startswith(head):
        return text[len(head) :]
    wanted = head.split("\n")
    *above, rest = [*text.split("\n", len(wanted)), ""][: len(wanted) + 1]
    same = [line.rstrip() for line in above[:-1]] == [line.rstrip() for line in wanted[:-1]]
    return f"\n{rest}" if same and above[-1].strip().casefold() == MUTABLE.casefold() else None


def _marked(text: str, head: str) -> str | None:
    """What follows the heading of the worker's part, which the plan itself may quote before."""
    found = next(islice(_MARK.finditer(text), len(_MARK.findall(head)) - 1, None), None)
    return text[found.end() :] if found else None


def told(plan: str) -> Iterator[str]:
    """How many criteria a plan has, and which ids are named in it without being one."""
    ids = criteria_of(plan)
    yield f"Criteria: {len(ids)} ({listed(ids)})" if ids else "Criteria: none are numbered (no line opens with AC-1)"
    if loose := criteria.loose(plan, ids):
        many = len(loose) > 1
        names = listed(loose[:20]) + (f" and {len(loose) - 20} more" if len(loose) > 20 else "")
        yield f"Note: {names} {'are' if many else 'is'} named and {'are' if many else 'is'} no criterion line"
        yield f"      a criterion opens a line below '## Acceptance Criteria', outside fences: - {loose[0]}: ..."


@dataclass(frozen=True, kw_only=True)
class _Table:
    """What one of the worker's tables names, row by row, with the words beside it; and what is wrong with its form."""

    rows: tuple[tuple[tuple[Span, ...], str], ...]
    faults: tuple[str, ...]

    @property
    def ids(self) -> Ids:
        return Ids(spans=(span for names, _ in self.rows for span in names))


def _table(page: Sequence[str], title: str) -> _Table:
    rows: list[tuple[tuple[Span, ...], str]] = []
    seen: Row | None = None
    faults, count = [], 0
    for n, row in enumerate(markdown_table.rows(page, title)):
        if n == ROW_CAP or count > ID_CAP:
            faults.append(f"{title} is too long: nothing after its row {n} is looked at")
            break
        seen = row if seen is None or row.has(*_AC) else seen
        names = criteria.spans(row.cell(*_AC))
        count += len(names)
        rows.append((tuple(names), row.cell(*_SAYS[title])))
    if seen is not None and not seen.has(*_AC):
        faults.append(f"{title} has no column whose heading says AC")
    if seen is not None and _SAYS[title] and not seen.has(*_SAYS[title]):
        faults.append(f"{title} has no column {_SAYS[title][0].capitalize()}")
    if seen is None and not any(
        one.startswith(markdown_table.title_of(title)) for one in markdown_table.headings(page)
    ):
        faults.append(f"no heading {title} was found")
    return _Table(rows=tuple(rows), faults=tuple(faults))


def completed(tables: str) -> Ids:
    """The criteria that the worker's part names as completed and verified."""
    return _table(markdown_table.plain(tables), DONE).ids


def unnamed(tables: str, ids: Sequence[str]) -> tuple[str, ...]:
    """The criteria that no row of a worker's part names: neither active, nor completed, nor deferred."""
    page = markdown_table.plain(tables)
    by = [_table(page, title).ids for title in _SAYS]
    return tuple(one for one in ids if not any(covered(one, names) for names in by))


def unproved(tables: str, ids: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The criteria that are neither completed nor deferred, and those that are so with no word of evidence or why."""
    page = markdown_table.plain(tables)
    seen: list[Ids] = []
    proved: list[Ids] = []
    for title, says in ((DONE, said.evidence), (DEFERRED, said.reason)):
        found = _table(page, title)
        seen.append(found.ids)
        proved.append(Ids(spans=(span for names, words in found.rows if names and says(words) for span in names)))
    absent = tuple(one for one in ids if not any(covered(one, names) for names in seen))
    out = set(absent)
    bare = (one for one in ids if one not in out and not any(covered(one, names) for names in proved))
    return absent, tuple(bare)


def held(tables: str, ids: Sequence[str], *, final: bool) -> tuple[str, str] | None:
    """What stands against a worker's part, and the remedy; ``final``: every criterion must have arrived."""
    if final:
        absent, bare = unproved(tables, ids)
        what = [f"neither completed nor deferred: {listed(absent)}"] if absent else []
        what += [f"no evidence or justification: {listed(bare)}"] if bare else []
        fix = f"a row in {DONE} with its Evidence, or in {DEFERRED} with its Justification, for each"
        fix += f"; evidence names {said.RULE}" if bare else ""
    else:
        absent = unnamed(tables, ids)
        what = [f"no row names {listed(absent)}"] if absent else []
        fix = f"a row in {ACTIVE} (Target AC), {DONE} (AC) or {DEFERRED} (Original AC) for each"
    if not what:
        return None
    page, titles = markdown_table.plain(tables), (DONE, DEFERRED) if final else _SAYS
    faults = [fault for title in titles for fault in _table(page, title).faults]
    return "; ".join(what), "; ".join([fix, *faults])


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
