"""Digest of an Nsight Compute export: one bottleneck class and exactly one next step, with every number's column.

Pure but for ``read``: the same bytes give the same digest. What is missing is never taken for 0.
"""

from kernelpilot_helpers.ncu.digest import digest, refuse
from kernelpilot_helpers.ncu.model import (
    FORMAT,
    INSUFFICIENT,
    OWNER,
    REFUSED,
    VERSION,
    Digest,
    Group,
    Input,
    NextStep,
    Reading,
    Refusal,
    RefusedInput,
    Rejected,
)
from kernelpilot_helpers.ncu.reader import Source, read
from kernelpilot_helpers.ncu.render import markdown, text

__all__ = [
    "FORMAT",
    "INSUFFICIENT",
    "OWNER",
    "REFUSED",
    "VERSION",
    "Digest",
    "Group",
    "Input",
    "NextStep",
    "Reading",
    "Refusal",
    "RefusedInput",
    "Rejected",
    "Source",
    "digest",
    "markdown",
    "read",
    "refuse",
    "text",
]
