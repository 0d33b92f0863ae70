"""What an attempt has measured so far, what it may ask next, and how it may end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from kernelpilot_helpers import correctness, policy
from kernelpilot_helpers.attempt.job import JobCase, Phase
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.correctness import Broken, Correct, Wrong
from kernelpilot_helpers.ledger.model import Interval, Verdict

QUIET = "busy machine: try again when it is quiet"
"""The way out of every verdict that a disturbed machine left open; such a tree needs no ``--again``."""

RunRole = Literal["main", "more", "confirm", "baseline", "floor", "audit", "tune"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What a verdict depends on besides the raws."""

    tier: policy.Tier
    device: policy.DevicePolicy
    max_pairs: int | None
    numerics: policy.Numerics
    expect: correctness.Expectation
    timed: tuple[str, ...]
    required: frozenset[str]
    weights: dict[str, float] | None
    bias_bound: float
    unfit: str
    """Why this machine's A/A floor allows no verdict on speed; empty when it does."""
    incumbent_is_baseline: bool
    mutation_score: str
    cases: tuple[JobCase, ...] = ()
    """GPU: the resolved cases, for the bytes that a call must move."""
    ceilings: dict[str, float] = field(default_factory=dict)
    """GPU: what this GPU was measured to do at best; they decide nothing."""
    baselines: int = 1
    """How many baselines the contract names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """The raws of one attempt, by the question that each answers."""

    main: Raw | None = None
    more: tuple[Raw, ...] = ()
    confirm: Raw | None = None
    direct: tuple[Raw, ...] = ()
    """Direct runs against the baselines, in the order in which ``step`` asks for them."""

    @property
    def baseline(self) -> Raw | None:
        """The newest direct run against a baseline."""
        return self.direct[-1] if self.direct else None

    def with_raw(self, role: RunRole, raw: Raw) -> Runs:
        """A copy that holds one raw more."""
        if role == "main":
            return replace(self, main=raw)
        if role == "more":
            return replace(self, more=(*self.more, raw))
        return replace(self, confirm=raw) if role == "confirm" else replace(self, direct=(*self.direct, raw))


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """The next job."""

    role: RunRole
    phases: tuple[Phase, ...]
    pairs: int
    first_pair: int
    why: str
    which: int = 0
    """Role ``baseline``: which of the contract's baselines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The end of an attempt: everything that its row and its printed object need."""

    verdict: Verdict
    reason: str
    partial: bool = False
    gain: Interval | None = None
    vs_baseline: Interval | None = None
    confirmed: bool = False
    bench: Bench | None = None
    """The bench that decided: the confirmation's when there was one."""
    verification: Correct | Wrong | Broken | None = None
    build_id: str = ""
    binary_id: str = ""
    notes: tuple[str, ...] = field(default=())
    fastest: dict[str, int] = field(default_factory=dict)
    """Case -> index of the baseline that ``vs_baseline`` is against there; empty where there is but one."""
