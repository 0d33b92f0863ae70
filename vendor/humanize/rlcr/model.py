"""What the loop knows: its state, the events that change it, and what a change asks of the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from rlcr.records import Check, Course, Failure, Finding, Known, Opinion, Problem, sha256

__all__ = [
    "COURSES", "EXITS", "KINDS", "REVIEWERS", "RULES", "TERMINALS", "Adopt", "Amend", "Ask", "Cancel", "Check",
    "Course", "Decide", "Done", "Effect", "Event", "Failure", "Finding", "Gathered", "Halt", "Known", "Opinion",
    "Outcome", "Phase", "Problem", "Resume", "Reviewed", "Setup", "State", "Stop", "Tamper", "build", "plain", "sha256",
]  # fmt: skip

Phase = Literal[
    "NONE", "BUILD", "CODE_REVIEW", "FINALIZE", "PARKED", "COMPLETE", "CANCEL", "MAXITER", "STOP", "UNEXPECTED"
]
Outcome = Literal["block", "allow", "COMPLETE", "MAXITER", "STOP", "PARKED"]
TERMINALS = ("COMPLETE", "CANCEL", "MAXITER", "STOP", "UNEXPECTED")
REVIEWERS = ("evidence-only", "codex", "claude")
EXITS = ("stalled", "blocked", "user", "plan-conflict")
"""Why a loop may end as STOP; the reason in words begins with one of these."""
COURSES = ("on", "widen", "decide", "finish")
RULES = 2
"""Version of ``step``'s decisions: a journal replays only under the rules that wrote it."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A loop begins."""

    loop: str
    max: int
    plan: str
    plan_sha256: str
    branch: str
    base_commit: str
    base_branch: str
    reviewer: str
    session_sha256: str
    evidence: Mapping[str, Any]
    model: str = ""
    effort: str = ""
    timeout_s: int = 5400
    full_review_round: int = 5
    plan_tracked: bool = False
    skip_impl: bool = False
    """Straight to code review; ``plan`` and ``plan_sha256`` may then be empty."""
    start_commit: str = ""
    """HEAD at set-up where that is not ``base_commit``."""
    rules: int = RULES
    at: str = ""


@dataclass(frozen=True, kw_only=True)
class Stop:
    """The worker stopped; everything that was looked at, in one record."""

    round: int
    phase: str
    head: str
    tree: str
    """Fingerprint of HEAD's tree and of whatever is uncommitted."""
    summary_sha256: str
    message_sha256: str = ""
    """Of the worker's last message, whose text is never kept."""
    problems: tuple[Problem, ...] = ()
    checks: tuple[Check, ...] = ()
    noop: str = ""
    """The reason given for a round without a commit."""
    failure: Failure | None = None
    verdict: Opinion | None = None
    tampered: tuple[str, ...] = ()
    at: str = ""


@dataclass(frozen=True, kw_only=True)
class Reviewed:
    """A reviewer has answered: kept before it is acted on, so that an answer is never bought twice."""

    key: str
    verdict: Opinion


@dataclass(frozen=True, kw_only=True)
class Tamper:
    """A file of the runtime's was changed by another hand."""

    what: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Cancel:
    """The user ends the loop."""

    why: str = "cancelled by the user"


@dataclass(frozen=True, kw_only=True)
class Resume:
    """The user lets a parked loop go on."""

    why: str = "resumed by the user"


@dataclass(frozen=True, kw_only=True)
class Adopt:
    """Another session takes the loop over."""

    session_sha256: str


@dataclass(frozen=True, kw_only=True)
class Halt:
    """The user ends the loop and keeps what it reached."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Amend:
    """The user changes what the loop is judged by: the ``plan``, or the ``evidence`` commands."""

    what: str
    why: str
    sha256: str
    """Of the new plan, or of the new evidence file."""
    text: str = ""
    """The new plan, word for word."""
    evidence: Mapping[str, Any] | None = None
    """The newly pinned commands."""


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Evidence that was run ahead of a Stop: believed at one whose HEAD, tree, phase and pins give the same key."""

    key: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, kw_only=True)
class Done:
    """The files of a transition are in place: name to SHA-256, empty for those that the worker fills in."""

    id: str
    files: Mapping[str, str] = field(default_factory=dict)


Event = Setup | Stop | Reviewed | Tamper | Cancel | Halt | Resume | Adopt | Amend | Gathered | Done
KINDS: dict[str, type[Any]] = {
    "setup": Setup, "stop": Stop, "review": Reviewed, "tamper": Tamper, "cancel": Cancel, "halt": Halt,
    "resume": Resume, "adopt": Adopt, "amend": Amend, "gathered": Gathered, "done": Done,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Effect: a reviewer's verdict is needed before anything can be decided."""

    phase: str
    full: bool
    since: str
    """HEAD at the last review; what changed after it is what a review that is not ``full`` looks at."""


@dataclass(frozen=True, kw_only=True)
class Decide:
    """Effect: tell the client, and move. ``page`` names the file that the worker is sent to (empty: none)."""

    outcome: Outcome
    phase: Phase
    round: int
    headline: str
    items: tuple[str, ...] = ()
    page: str = ""
    drift: bool = False
    course: Course | None = None


Effect = Ask | Decide


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that the journal says, folded."""

    setup: Setup | None = None
    """As amended."""
    first_setup: Setup | None = None
    phase: Phase = "NONE"
    round: int = 0
    session_sha256: str = ""
    blocks: int = 0
    intents: int = 0
    red_key: str = ""
    red_count: int = 0
    infra_kind: str = ""
    infra_count: int = 0
    noops: int = 0
    round_head: str = ""
    """HEAD when the round began."""
    round_tree: str = ""
    """Fingerprint of the worktree then; empty in the first round."""
    work_expected: bool = True
    """False right after a phase change that asks for nothing but another Stop."""
    reviewed_head: str = ""
    """HEAD at the last verdict that found nothing left to do."""
    review_head: str = ""
    """HEAD at the last verdict of any kind; empty before the first."""
    review_phase: str = ""
    open: tuple[Finding, ...] = ()
    queued: tuple[Finding, ...] = ()
    findings: tuple[Known, ...] = ()
    """Every finding that a reviewer ever made, by its first round."""
    stalls: int = 0
    repeats: int = 0
    """Verdicts in a row that left the same findings open."""
    mainline: str = "unknown"
    amends: tuple[Amend, ...] = ()
    parked_from: Phase = "BUILD"
    exit_reason: str = ""
    last: Decide | None = None
    last_stop: Stop | None = None
    review_key: str = ""
    review: Opinion | None = None
    gathered: Gathered | None = None
    pending: str = ""
    """Id of a transition whose files may not be in place yet."""
    tampers: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    """Every file that the runtime has put in place, as ``Done`` recorded it."""

    @property
    def active(self) -> bool:
        """Whether the loop still holds its session."""
        return self.phase not in ("NONE", *TERMINALS)

    @property
    def stuck(self) -> int:
        """Verdicts in a row that saw no progress, by their words or by what they left open."""
        return max(self.stalls, self.repeats)

    @property
    def begun(self) -> Setup:
        """The set-up record; raises LookupError before there is one."""
        if self.setup is None:
            raise LookupError("no set-up in the journal")
        return self.setup


_NESTED: dict[str, tuple[type[Any], bool]] = {
    "problems": (Problem, True), "checks": (Check, True), "findings": (Finding, True),
    "failure": (Failure, False), "verdict": (Opinion, False), "course": (Course, False),
}  # fmt: skip


def build(cls: type[Any], data: Mapping[str, Any]) -> Any:
    """A record from its JSON object. Raises TypeError or KeyError when a field is missing or has another shape."""
    known = {f.name: f for f in fields(cls)}
    out: dict[str, Any] = {}
    for name, value in data.items():
        if name not in known:
            continue
        inner = _NESTED.get(name)
        if inner is not None and value is not None and not isinstance(value, str):
            out[name] = tuple(build(inner[0], v) for v in value) if inner[1] else build(inner[0], value)
        else:
            out[name] = tuple(value) if isinstance(value, list) else value
    for name, value in out.items():
        kind = str(known[name].type)
        if kind in ("int", "str", "bool") and type(value).__name__ != kind:
            raise TypeError(f"{cls.__name__}.{name} is not {kind}")
    return cls(**out)


def plain(record: Any) -> dict[str, Any]:
    """The JSON object of a record."""
    return asdict(record)
