"""Whether a plan is one that the loop can follow: every fault at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from kernelpilot_helpers.plan.model import CONVERGENCE, SECTIONS, TAGS, TASK_COLUMNS, TOPICS, Criterion, Plan
from kernelpilot_helpers.records import Fault

_PARTS = {
    "Path Boundaries": ("Upper Boundary", "Lower Boundary", "Allowed Choices", "Can use:", "Cannot use:"),
    "Dependencies and Sequence": ("Milestone",),
}
Found = tuple[str, str]


def check(plan: Plan) -> list[Fault]:
    """One fault each; an empty list is a plan that holds together."""
    found = [*_sections(plan), *_criteria(plan), *_tasks(plan), *_rest(plan)]
    fix = "edit the plan, or write a new one: kernelpilot plan"
    return [Fault(where=f"{plan.at}: {where}", what=what, fix=fix) for where, what in found]


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _sections(plan: Plan) -> Iterator[Found]:
    for name in SECTIONS:
        if name not in plan.sections:
            yield name, "section missing"
        elif not plan.sections[name]:
            yield name, "section empty"
    for name in plan.repeated:
        yield name, "section comes twice"
    here = [name for name in plan.sections if name in SECTIONS]
    want = [name for name in SECTIONS if name in plan.sections]
    if here != want:
        yield (
            next(a for a, b in zip(here, want, strict=True) if a != b),
            f"sections out of order: want {' > '.join(want)}",
        )
    for name, parts in _PARTS.items():
        for part in parts:
            if plan.sections.get(name) and part not in plan.sections[name]:
                yield name, f"{part.rstrip(':')!r} missing"


def _criteria(plan: Plan) -> Iterator[Found]:
    at = "Acceptance Criteria"
    for name in _twice(c.id for c in plan.criteria):
        yield at, f"{name} comes twice"
    topics = {c.topic for c in plan.criteria}
    for topic in TOPICS:
        if topic not in topics:
            yield at, f"no criterion for {topic!r}: write it as AC-n ({topic}): ..."
    for item in plan.criteria:
        yield from _criterion(item, plan.criteria, at)


def _criterion(item: Criterion, every: tuple[Criterion, ...], at: str) -> Iterator[Found]:
    if not item.text:
        yield at, f"{item.id} says nothing"
    if "." in item.id:
        if item.id.partition(".")[0] not in {c.id for c in every}:
            yield at, f"{item.id} is a part of a criterion that does not exist"
        return
    if item.topic and item.topic not in TOPICS:
        yield at, f"{item.id}: unknown topic {item.topic!r}"
    for kind, tests in (("Positive", item.positive), ("Negative", item.negative)):
        if not tests:
            yield at, f"{item.id} has no {kind} Tests"


def _tasks(plan: Plan) -> Iterator[Found]:
    at = "Task Breakdown"
    if not plan.sections.get(at):
        return
    if plan.columns != TASK_COLUMNS:
        yield at, f"want a table with the columns {' | '.join(TASK_COLUMNS)}"
        return
    for name in _twice(t.id for t in plan.tasks):
        yield at, f"{name} comes twice"
    known, tasks = {c.id for c in plan.criteria}, {t.id for t in plan.tasks}
    for task in plan.tasks:
        if not task.targets:
            yield at, f"{task.id} targets no criterion"
        if task.tag not in TAGS:
            yield at, f"{task.id}: tag {task.tag!r}, want {' or '.join(TAGS)}"
        yield from (
            (at, f"{task.id} targets {name}, which does not exist") for name in task.targets if name not in known
        )
        yield from (
            (at, f"{task.id} depends on {name}, which does not exist") for name in task.depends if name not in tasks
        )
    aimed = {target.partition(".")[0] for task in plan.tasks for target in task.targets}
    for item in plan.criteria:
        if item.id.partition(".")[0] not in aimed:
            yield at, f"no task targets {item.id}"
    ring = _ring({t.id: t.depends for t in plan.tasks})
    if ring:
        yield at, f"tasks wait for each other: {', '.join(ring)}"


def _ring(depends: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Tasks that can never start, in table order; empty for an acyclic table."""
    done = {name for names in depends.values() for name in names if name not in depends}
    waiting = dict(depends)
    while ready := [name for name, needs in waiting.items() if done.issuperset(needs)]:
        done.update(ready)
        waiting = {name: needs for name, needs in waiting.items() if name not in done}
    return list(waiting)


def _rest(plan: Plan) -> Iterator[Found]:
    if plan.sections.get("Deliberation") and plan.convergence not in CONVERGENCE:
        got = plan.convergence or "none"
        yield "Deliberation", f"Convergence Status {got!r}, want {' or '.join(CONVERGENCE)}"
    for name in _twice(plan.decisions):
        yield "Pending User Decisions", f"{name} comes twice"
    text = plan.sections.get("Pending User Decisions", "")
    if text and not plan.decisions and not text.startswith("None"):
        yield "Pending User Decisions", "want DEC-n entries, or the word None"
