"""What the gate says: findings with their rule, severity and remedy, and whether the work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec

from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.policy import Policy

Severity = Literal["block", "repair", "trend"]
Phase = Literal["always", "final"]
Direction = Literal["on", "widen", "decide", "finish"]


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that is not as a rule wants it."""

    rule: str
    """Number of the rule, as text: ``"12"``."""
    severity: Severity
    where: str
    what: str
    fix: str
    """The command or edit that mends it."""


class Done(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether the task's end is reached; ``missing`` lists what is still to be made."""

    met: bool
    why: str
    missing: tuple[str, ...] = ()


class Course(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the ledger's numbers lead.

    ``on``: nothing special. ``widen``: weak rounds, so read before the next attempt; that is no finding. ``decide``: a
    plateau, which blocks until a decision is on record. ``finish``: the target is met, or a stop decision stands.
    """

    kind: Direction
    weak: int
    """Weak rounds in a row at the end."""
    why: str
    lines: tuple[str, ...] = ()
    """What to do, in order; each is a command, or words that end in one."""
    have: int = 0
    """New sources noted since the weak rounds began; 0 unless ``want`` is more."""
    want: int = 0


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything at once. ``passed`` is: no block and no repair. A rule in ``not_evaluated`` is not a pass of it."""

    passed: bool
    done: Done
    findings: tuple[Finding, ...] = ()
    not_evaluated: tuple[str, ...] = ()
    """``rule: why``, for each rule whose inputs are missing."""
    course: Course = Course(kind="on", weak=0, why="")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One check. ``check`` yields (where, what, fix), or raises NotEvaluated when its inputs are missing."""

    id: str
    title: str
    severity: Severity
    phase: Phase
    check: Callable[[Evidence, Policy], Iterable[tuple[str, str, str]]]


class NotEvaluated(Exception):
    """A rule's input is missing: the reason, in words. Never a pass."""
