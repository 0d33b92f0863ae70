"""A task's history as one self-contained page: what was tried, what the referee said, and how to check it again."""

from kernelpilot_helpers.report.collect import collect
from kernelpilot_helpers.report.final import (
    FINAL_PATH,
    HEADINGS,
    JOURNAL_PATH,
    FinalFacts,
    check_final,
    final_facts,
    final_text,
)
from kernelpilot_helpers.report.model import FloorFacts, ReportData, RunFacts, with_faults
from kernelpilot_helpers.report.page import REPORT_PATH, render

__all__ = [
    "FINAL_PATH",
    "HEADINGS",
    "JOURNAL_PATH",
    "REPORT_PATH",
    "FinalFacts",
    "FloorFacts",
    "ReportData",
    "RunFacts",
    "check_final",
    "collect",
    "final_facts",
    "final_text",
    "render",
    "with_faults",
]
