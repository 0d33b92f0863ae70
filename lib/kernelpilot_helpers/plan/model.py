"""A plan as records: acceptance criteria, and tasks that each aim at one or more of them."""

from __future__ import annotations

import msgspec

PATH = ".humanize/kernel-agent/refined-plan.md"

SECTIONS = (
    "Goal Description",
    "Acceptance Criteria",
    "Path Boundaries",
    "Feasibility Hints",
    "Dependencies and Sequence",
    "Task Breakdown",
    "Deliberation",
    "Pending User Decisions",
    "Implementation Notes",
)
"""Headings of level 2, in this order."""

TOPICS = (
    "repo",
    "framework",
    "language",
    "provenance",
    "from_scratch",
    "krw",
    "correctness",
    "benchmark",
    "research",
    "baseline_profile",
    "digests",
    "attempts",
    "optimizations",
    "lineage",
    "sources",
    "dispatch",
    "inventory",
    "stall",
    "reassess",
    "bringup",
    "stop",
)
"""What every kernel plan must hold a criterion for."""

TAGS = ("coding", "analyze")
TASK_COLUMNS = ("Task ID", "Description", "Target AC", "Tag (coding|analyze)", "Depends On")
CONVERGENCE = ("converged", "partially_converged")


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One acceptance criterion. ``id`` is ``AC-3``, or ``AC-3.1`` for a part of it, which has no topic of its own."""

    id: str
    topic: str = ""
    text: str
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the task table."""

    id: str
    description: str
    targets: tuple[str, ...]
    tag: str
    depends: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan as parsed: nothing is judged yet, ``check`` does that."""

    at: str
    title: str
    sections: dict[str, str]
    """Heading of level 2 -> its text, in file order; a heading that comes twice keeps both texts."""
    repeated: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    tasks: tuple[Task, ...]
    columns: tuple[str, ...]
    """Head of the task table as found; empty without a table."""
    decisions: tuple[str, ...]
    convergence: str
