"""A task's history as one self-contained page: what was tried, what the referee said, and how to check it again."""

from kernelpilot_helpers.report.collect import collect
from kernelpilot_helpers.report.model import FloorFacts, ReportData, RunFacts
from kernelpilot_helpers.report.page import REPORT_PATH, render

__all__ = ["REPORT_PATH", "FloorFacts", "ReportData", "RunFacts", "collect", "render"]
