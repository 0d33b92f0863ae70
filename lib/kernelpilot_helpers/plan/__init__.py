"""The plan of a kernel task: from the contract to acceptance criteria and tasks, in the gen-plan layout. Pure."""

from kernelpilot_helpers.plan.check import check
from kernelpilot_helpers.plan.document import parse
from kernelpilot_helpers.plan.model import PATH, SECTIONS, TASK_COLUMNS, TOPICS, Criterion, Plan, Task
from kernelpilot_helpers.plan.render import render

__all__ = [
    "PATH",
    "SECTIONS",
    "TASK_COLUMNS",
    "TOPICS",
    "Criterion",
    "Plan",
    "Task",
    "check",
    "parse",
    "render",
]
