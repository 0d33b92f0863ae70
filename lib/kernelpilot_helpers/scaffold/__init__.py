"""Make, commit and re-check the standalone repo that one kernel is tuned in."""

from kernelpilot_helpers.scaffold.advice import notes, stubs
from kernelpilot_helpers.scaffold.content import EVIDENCE_PATH, evidence, files
from kernelpilot_helpers.scaffold.given import given
from kernelpilot_helpers.scaffold.repo import (
    REQUIRED_FILES,
    RESEARCH_SECTIONS,
    Scaffolded,
    check,
    make,
    required_files,
    write_evidence,
)
from kernelpilot_helpers.scaffold.request import Request, example, parse_request

__all__ = [
    "EVIDENCE_PATH",
    "REQUIRED_FILES",
    "RESEARCH_SECTIONS",
    "Request",
    "Scaffolded",
    "check",
    "evidence",
    "example",
    "files",
    "given",
    "make",
    "notes",
    "parse_request",
    "required_files",
    "stubs",
    "write_evidence",
]
