"""The rules over the evidence: pure, all findings at once, nothing skipped in silence."""

from kernelpilot_helpers.gate.decide import RULES, decide, refused
from kernelpilot_helpers.gate.model import Course, Done, Finding, NotEvaluated, Report, Rule
from kernelpilot_helpers.gate.next_step import next_step

__all__ = [
    "RULES",
    "Course",
    "Done",
    "Finding",
    "NotEvaluated",
    "Report",
    "Rule",
    "decide",
    "next_step",
    "refused",
]
