"""What the loop knows: its state, the events that change it, and what a change asks of the world."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Phase = Literal[
    "NONE", "BUILD", "CODE_REVIEW", "FINALIZE", "PARKED", "COMPLETE", "CANCEL", "MAXITER", "STOP", "UNEXPECTED"
]
Outcome = Literal["block", "allow", "COMPLETE", "MAXITER", "STOP", "PARKED"]
TERMINALS = ("COMPLETE", "CANCEL", "MAXITER", "STOP", "UNEXPECTED")
REVIEWERS = ("evidence-only", "codex", "claude")
RULES = 1
"""Version of ``step``'s decisions: a journal replays only under the rules that wrote it."""


def sha256(data: bytes | str) -> str:
    """Hex digest of bytes, or of text as UTF-8."""
    return hashlib.sha256(data.encode(errors="surrogatepass") if isinstance(data, str) else data).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that a deterministic check or an evidence command holds against the round."""

    rule: str
    where: str
    what: str
    fix: str = ""
    severity: str = "block"

    @property
    def key(self) -> str:
        """``rule:where``, as readers of the journal know it."""
        return f"{self.rule}:{self.where}"


@dataclass(frozen=True, kw_only=True)
class Check:
    """What one evidence command answered."""

    name: str
    exit: int
    seconds: float
    stdout_sha256: str
    passed: bool
    met: bool
    """Whether the command says that the whole task is done."""
    why: str = ""
    missing: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    not_evaluated: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The machinery failed, not the work: ``kind`` is the class that is counted."""

    kind: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding of a reviewer; P0 and P1 block."""

    id: str
    priority: str
    file: str
    line: int
    claim: str
    locus: str = "in-round"


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """A reviewer's verdict. ``unmet`` are the acceptance criteria it does not hold met."""

    verdict: str
    mainline: str
    unmet: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    text: str = ""


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
class Done:
    """The files of a transition are in place: name to SHA-256, empty for those that the worker fills in."""

    id: str
    files: Mapping[str, str] = field(default_factory=dict)


Event = Setup | Stop | Reviewed | Tamper | Cancel | Resume | Adopt | Done
KINDS: dict[str, type[Any]] = {
    "setup": Setup, "stop": Stop, "review": Reviewed, "tamper": Tamper, "cancel": Cancel, "resume": Resume,
    "adopt": Adopt, "done": Done,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Effect: a reviewer's verdict is needed before anything can be decided."""

    phase: str
    full: bool


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


Effect = Ask | Decide


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that the journal says, folded."""

    setup: Setup | None = None
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
    open: tuple[Finding, ...] = ()
    queued: tuple[Finding, ...] = ()
    stalls: int = 0
    mainline: str = "unknown"
    parked_from: Phase = "BUILD"
    exit_reason: str = ""
    last: Decide | None = None
    last_stop: Stop | None = None
    review_key: str = ""
    review: Opinion | None = None
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
    def begun(self) -> Setup:
        """The set-up record; raises LookupError before there is one."""
        if self.setup is None:
            raise LookupError("no set-up in the journal")
        return self.setup


_NESTED: dict[str, tuple[type[Any], bool]] = {
    "problems": (Problem, True), "checks": (Check, True), "findings": (Finding, True),
    "failure": (Failure, False), "verdict": (Opinion, False),
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
