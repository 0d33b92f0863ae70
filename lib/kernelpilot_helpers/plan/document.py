"""A plan's Markdown to a Plan: what is there is read, what is missing is left for ``check`` to tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernelpilot_helpers import tables
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.plan.model import Criterion, Plan, Task

FIX = "kernelpilot plan writes a new one"
_AC = re.compile(r"(AC-\d+(?:\.\d+)?)(?:\s*\((\w+)\))?\s*:\s*(.*)", re.DOTALL)
_TESTS = re.compile(r"(Positive|Negative) Tests\b")
_DECISION = re.compile(r"^\s*[-*#]*\s*(DEC-\d+)\b", re.MULTILINE)
_CONVERGENCE = re.compile(r"Convergence Status\W*(\w+)")


class _Item:
    """A list item: its own first line, and the items below it."""

    def __init__(self) -> None:
        self.text = ""
        self.children: list[_Item] = []


def _items(text: str) -> list[_Item]:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only readers of plans pay for it

    root = _Item()
    stack = [root]
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "list_item_open":
            item = _Item()
            stack[-1].children.append(item)
            stack.append(item)
        elif token.type == "list_item_close":
            stack.pop()
        elif token.type == "inline" and len(stack) > 1 and not stack[-1].text:
            stack[-1].text = " ".join(token.content.split())
    return root.children


def _criteria(items: list[_Item]) -> Iterator[Criterion]:
    for item in items:
        found = _AC.match(item.text.replace("**", ""))
        if found is None:
            continue
        tests: dict[str, tuple[str, ...]] = {"Positive": (), "Negative": ()}
        for child in item.children:
            kind = _TESTS.match(child.text.replace("**", ""))
            if kind:
                tests[kind.group(1)] += tuple(below.text for below in child.children if below.text)
        yield Criterion(
            id=found.group(1),
            topic=found.group(2) or "",
            text=found.group(3),
            positive=tests["Positive"],
            negative=tests["Negative"],
        )
        yield from _criteria(item.children)


def _sections(text: str) -> tuple[str, dict[str, str], tuple[str, ...]]:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - as above

    lines = text.splitlines()
    heads: list[tuple[str, str, int, int]] = []
    tokens = MarkdownIt("commonmark").parse(text)
    for ix, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag in ("h1", "h2") and token.level == 0 and token.map:
            heads.append((token.tag, tokens[ix + 1].content.strip(), token.map[0], token.map[1]))
    title = next((name for tag, name, _, _ in heads if tag == "h1"), "")
    sections: dict[str, str] = {}
    repeated: list[str] = []
    for ix, (tag, name, _, start) in enumerate(heads):
        if tag == "h1":
            continue
        end = heads[ix + 1][2] if ix + 1 < len(heads) else len(lines)
        body = "\n".join(lines[start:end]).strip()
        if name in sections:
            repeated.append(name)
            body = f"{sections[name]}\n\n{body}"
        sections[name] = body
    return title, sections, tuple(repeated)


def _split(cell: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in cell.split(",") if part.strip() not in ("", "-"))


def _tasks(text: str) -> tuple[tuple[str, ...], tuple[Task, ...]]:
    try:
        rows = tables.parse(text, at="Task Breakdown")
    except BadRecord:
        return (), ()
    columns = tuple(rows[0]) if rows else ()
    out = []
    for row in rows:
        cells = [*row.values(), "", "", "", "", ""]
        out.append(
            Task(
                id=cells[0].strip(),
                description=cells[1].strip(),
                targets=_split(cells[2]),
                tag=cells[3].strip(),
                depends=_split(cells[4]),
            )
        )
    return columns, tuple(out)


def parse(text: str, at: str) -> Plan:
    """Read a plan. Raises BadRecord when the text has no heading at all; lesser faults are ``check``'s."""
    title, sections, repeated = _sections(text)
    if not sections:
        raise BadRecord("no section heading found (## ...)", where=at, fix=FIX)
    columns, tasks = _tasks(sections.get("Task Breakdown", ""))
    convergence = _CONVERGENCE.search(sections.get("Deliberation", ""))
    return Plan(
        at=at,
        title=title,
        sections=sections,
        repeated=repeated,
        criteria=tuple(_criteria(_items(sections.get("Acceptance Criteria", "")))),
        tasks=tasks,
        columns=columns,
        decisions=tuple(_DECISION.findall(sections.get("Pending User Decisions", ""))),
        convergence=convergence.group(1) if convergence else "",
    )
