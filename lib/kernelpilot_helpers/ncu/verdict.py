"""What a rule may answer: it holds, it does not, or the numbers that would decide are missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelpilot_helpers.ncu.facts import Facts


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """The rule holds. Confidence is counted from clear margins, independent families and contradictions."""

    name: str
    why: str
    bound: float
    """Upper bound on the share of time that the class can give back, 0 to 1."""
    clear: bool
    """Ten points beyond the threshold, or half of what is shared out."""
    supports: tuple[str, ...]
    """Roles of independent families that say the same; two are wanted."""
    contradicts: tuple[str, ...] = ()
    roof: float | None = None
    """Where the step may be to stop: what is left below the roof for the same work."""
    weak: bool = False
    """At most low confidence: the evidence only hints."""
    sure: bool = False
    """Holds whatever a rule says that could not be decided before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class No:
    """The rule does not hold, and why."""

    name: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """The rule might hold: these roles are missing. Whatever wins after it has low confidence."""

    name: str
    missing: tuple[str, ...]
    unlikely: bool = False
    """What else is known speaks against it: a class behind it stands, with low confidence and a capture."""


Answer = Hit | No | Unknown
Rule = Callable[[Facts], Answer | None]
"""None: it is not this rule's turn."""


def beside(busy: float, *others: float | None) -> float:
    """What can be won where work is taken off the busiest unit: until the next busiest one is the limit."""
    rest = max((one for one in others if one is not None), default=0.0)
    return max(0.0, min(1.0, 1.0 - rest / busy)) if busy > 0 else 1.0


def room(busy: float) -> float:
    """What is left below the roof, as a share."""
    return max(0.0, min(1.0, 1.0 - busy / 100.0))
