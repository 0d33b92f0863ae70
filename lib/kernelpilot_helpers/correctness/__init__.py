"""Is the candidate right? Pure judgement of ``raw.json``: data in, Correct, Wrong or Broken out."""

from .device import UNFINISHED
from .limits import Fault, Shape, faults, rms_allowed
from .mutation import AuditReport, audit
from .outcome import Blame, Broken, Correct, Expectation, Finding, Outcome, Worst, Wrong, expect
from .traces import own as own_frames
from .verdict import judge
from .verification import FORMAT, OWNER, VERSION, Verification, dump, parse, record, to_outcome
from .words import explain

__all__ = [
    "FORMAT",
    "OWNER",
    "UNFINISHED",
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
    "own_frames",
    "parse",
    "record",
    "rms_allowed",
    "to_outcome",
]
