"""What a review is asked, and the two things it can answer: a verdict, or that there was none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Outcome = Literal["continue", "complete", "blocked"]
Mainline = Literal["advanced", "stalled", "regressed"]
AcStatus = Literal["met", "unmet", "deferred"]
Priority = Literal["P0", "P1", "P2", "P3"]
Locus = Literal["in-round", "plan", "external"]

BLOCKING: tuple[Priority, ...] = ("P0", "P1")
"""Priorities with which a round is never complete; the others are queued."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing wrong.

    ``id`` is ours: kept for a finding handed in as ``prior_open``, else derived from file and claim, so that the same
    complaint has the same id in every round. ``line`` is 1-based, 0 when no line was named.
    """

    id: str
    priority: Priority
    file: str
    line: int
    claim: str
    locus: Locus


@dataclass(frozen=True, kw_only=True, slots=True)
class Ac:
    """One acceptance criterion as the reviewer saw it; ``evidence`` names where a ``met`` can be checked."""

    id: str
    status: AcStatus
    evidence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A finished review. ``text`` is what the worker reads."""

    verdict: Outcome
    mainline: Mainline
    acs: tuple[Ac, ...]
    findings: tuple[Finding, ...]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Infra:
    """No review took place. Never a pass.

    ``kind`` is one of ``KINDS`` and is equal for equal causes, so a caller can count them; ``detail`` is one line.
    """

    kind: str
    detail: str


KINDS = (
    "unknown-reviewer",
    "binary-missing",
    "start-failed",
    "deadline",
    "terminated",
    "exit-nonzero",
    "reviewer-error",
    "empty",
    "error-banner",
    "echo",
    "bad-json",
    "no-verdict",
    "too-large",
    "moved",
)
"""Every ``Infra.kind`` that ``review`` returns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One review to be bought.

    ``deadline_s`` is what the whole call may take, in seconds from its start. ``full`` asks for a look at everything;
    else ``prior_open`` and the diff bound the review. ``base_commit`` and ``head`` are full commit names.
    """

    reviewer: str
    loop_dir: Path
    worktree: Path
    round: int
    phase: str
    base_commit: str
    head: str
    plan_path: Path
    summary_path: Path
    evidence_path: Path
    prior_open: tuple[Finding, ...]
    deadline_s: float
    model: str
    effort: str
    full: bool
    diff_path: Path | None = None
    """Commits and changes as text, for a reviewer that runs no command."""
    since: str = ""
    """Commit of the last review; what changed after it is the scope of a review that is not ``full``."""
    changed: tuple[str, ...] = ()
    """Files that changed since then."""
    queued: tuple[Finding, ...] = ()
    acs: tuple[str, ...] = ()
    """Every acceptance criterion of the plan: each has to be judged."""
    amends: tuple[str, ...] = ()
    """Why the plan or the evidence commands were changed while the loop ran."""
    first_plan: Path | None = None
    """The plan as it was at the start, where it was amended."""
    planned: bool = True
    """Whether there is a plan at all, by whose criteria the work is complete."""
    program: tuple[str, ...] = ()
    """The pinned reviewer, as it is run; empty: whatever PATH has."""
    sha256: Mapping[Path, str] = field(default_factory=dict)
    """Of plan, summary, evidence and diff as they were judged: other bytes under these paths are not reviewed."""
