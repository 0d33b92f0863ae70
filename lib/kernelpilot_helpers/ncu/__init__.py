"""Digest of Nsight Compute reports: one bottleneck class and exactly one next step, with every number's place.

What is missing is never taken for 0. Names are imported when they are used: start-up time is part of the promise.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelpilot_helpers.ncu.examine import Examined, digest, digest_of, refuse
    from kernelpilot_helpers.ncu.model import (
        FORMAT,
        INSUFFICIENT,
        OWNER,
        REFUSED,
        VERSION,
        Digest,
        Given,
        Group,
        Input,
        NextStep,
        Reading,
        Refusal,
        RefusedInput,
        Rejected,
        Target,
    )
    from kernelpilot_helpers.ncu.reader import Source, read
    from kernelpilot_helpers.ncu.render import text
    from kernelpilot_helpers.ncu.render_page import markdown

__all__ = [
    "FORMAT",
    "INSUFFICIENT",
    "OWNER",
    "REFUSED",
    "VERSION",
    "Digest",
    "Examined",
    "Given",
    "Group",
    "Input",
    "NextStep",
    "Reading",
    "Refusal",
    "RefusedInput",
    "Rejected",
    "Source",
    "Target",
    "digest",
    "digest_of",
    "markdown",
    "read",
    "refuse",
    "text",
]
_ELSEWHERE = {
    "Examined": "examine",
    "digest": "examine",
    "digest_of": "examine",
    "refuse": "examine",
    "Source": "reader",
    "read": "reader",
    "text": "render",
    "markdown": "render_page",
}


def __getattr__(name: str) -> Any:
    """A public name, from the module that holds it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_ELSEWHERE.get(name, 'model')}"), name)
