"""Is the candidate right? Pure judgement of ``raw.json``: data in, Correct, Wrong or Broken out."""

from .limits import Fault, Shape, faults
from .mutation import AuditReport, audit
from .outcome import Blame, Broken, Correct, Expectation, Finding, Outcome, Worst, Wrong, expect
from .verdict import judge
from .verification import FORMAT, OWNER, VERSION, Verification, dump, parse, record, to_outcome
from .words import explain

__all__ = [
    "FORMAT",
    "OWNER",
    "VERSION",
    "AuditReport",
    "Blame",
    "Broken",
    "Correct",
    "Expectation",
    "Fault",
    "Finding",
    "Outcome",
    "Shape",
    "Verification",
    "Worst",
    "Wrong",
    "audit",
    "dump",
    "expect",
    "explain",
    "faults",
    "judge",
    "parse",
    "record",
    "to_outcome",
]
