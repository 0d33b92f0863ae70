"""Everything the gate needs to know, read once: the gate itself touches no disk, git or clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelpilot_helpers.attempt.job import JobCase
from kernelpilot_helpers.autotune import PerformanceMap
from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.contract.model import Case, Checkout, Contract, Lock
from kernelpilot_helpers.correctness import Verification
from kernelpilot_helpers.dispatcher import Table
from kernelpilot_helpers.evidence.digest_facts import DigestFacts
from kernelpilot_helpers.evidence.gpu_run import GpuRun
from kernelpilot_helpers.ledger import Idea, Row
from kernelpilot_helpers.records import Fault

MISSING = "missing"
"""``what`` of the fault that stands for a file that is not there at all."""
TERMINALS = ("COMPLETE", "CANCEL", "MAXITER", "STOP", "UNEXPECTED")
"""Phases in which a loop has ended."""


def row_key(row: Row) -> str:
    """What a row names in git: its commit and variant (labels repeat: a baseline has a row in each epoch)."""
    return f"{row.commit}:{row.variant}"


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitFacts:
    """One commit, oldest first in ``GitFacts.commits``; ``trees`` maps variant name to tree id where it changed."""

    commit: str
    paths: tuple[str, ...]
    """Files that it added or changed."""
    trees: Mapping[str, str] = field(default_factory=dict)
    subject: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GitFacts:
    """What git says of the repo."""

    head: str
    """Empty before the first commit."""
    commits: tuple[CommitFacts, ...] = ()
    """``git log --topo-order --reverse``."""
    dirty: tuple[str, ...] = ()
    """Paths with uncommitted changes, untracked ones included."""
    removed: tuple[str, ...] = ()
    """Paths below ``artifacts/`` that some commit holds and the worktree lacks."""
    nested: tuple[str, ...] = ()
    """Folders below the root with a ``.git`` of their own."""
    above: str = ""
    """Root of an enclosing repository, where there is one."""
    humanize_ignored: bool = True
    humanize_tracked: tuple[str, ...] = ()
    current_tree: str = ""
    """Tree id of the variant that ``src/<task>/current`` names, as HEAD holds it."""
    row_trees: Mapping[str, str] = field(default_factory=dict)
    """``row_key`` -> tree id of the variant in that commit; empty text when git has no such commit or path."""
    head_variants: Mapping[str, str] = field(default_factory=dict)
    """Variant -> tree id, as HEAD holds it."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Variant -> tree id of its folder as it is in the worktree, ignored files left out."""
    hidden: tuple[str, ...] = ()
    """Tracked paths whose changes git was told not to show (assume-unchanged, skip-worktree)."""
    tracked: frozenset[str] = frozenset()
    """Paths in the index."""
    cut: str = ""
    """Why the history that git shows is not the whole one (shallow, grafts); empty when it is."""
    filtered: tuple[str, ...] = ()
    """Tracked paths of evidence and code that a git filter rewrites between the worktree and the history."""
    ideas_held: Mapping[str, int] = field(default_factory=dict)
    """Commit -> how many source ideas the log held in it, for each commit that changed that log."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StopFacts:
    """One Stop of the loop, or its set-up (round 0), as the loop's journal tells it."""

    round: int
    head: str
    at: str = ""
    passed: bool | None = None
    """What the gate said at that Stop; None at set-up and where it could not run."""
    findings: tuple[str, ...] = ()
    """Ids (``rule:where``) of that gate's findings."""
    outcome: str = ""
    """``block``, ``allow`` or the terminal state."""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopFacts:
    """One RLCR loop, from its hash-chained journal (the views beside it are never believed)."""

    directory: str
    phase: str
    """BUILD, CODE_REVIEW, FINALIZE, PARKED, or a terminal: COMPLETE, CANCEL, MAXITER, STOP, UNEXPECTED."""
    round: int
    max_rounds: int
    reviewer: str
    base_commit: str
    plan_sha256: str
    """Of the plan as amended."""
    stops: tuple[StopFacts, ...]
    summaries: Mapping[int, str] = field(default_factory=dict)
    """Text of ``round-N-summary.md``."""
    faults: tuple[Fault, ...] = ()
    """What is wrong with the journal itself."""
    contracts: Mapping[int, str] = field(default_factory=dict)
    """Text of ``round-N-contract.md``."""
    tampered: tuple[str, ...] = ()
    """What the loop's runtime noted as edited by hand."""
    finalized: bool = False
    """Whether ``finalize-summary.md`` holds words beside its form."""
    amends: tuple[str, ...] = ()
    """``plan: why`` or ``evidence: why``, for each time that what the loop is judged by was changed on purpose."""

    @property
    def start(self) -> str:
        """HEAD when the loop was set up; the base commit where the set-up does not say."""
        return (self.stops[0].head if self.stops else "") or self.base_commit

    @property
    def active(self) -> bool:
        """Whether the loop has not ended."""
        return self.phase not in TERMINALS


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFacts:
    """One run directory as read."""

    run: str
    role: str = ""
    bench: Bench | None = None
    verification: Verification | None = None
    env: Mapping[str, object] = field(default_factory=dict)
    limits: bool = True
    """Whether its job carried a limit on every step."""
    problems: tuple[str, ...] = ()
    label: str = ""
    """Version label that its intent was written for."""
    tree: str = ""
    cases: tuple[str, ...] = ()
    """Case ids of its job, in order."""
    timed: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    seeds: int = 0
    """Seeds a case of the verify phase; 0 when the job does not verify."""
    recheck_share: float = 0.0
    """Share of timed blocks whose outputs were compared; 0 when the job does not time."""
    gpu: GpuRun = GpuRun()  # noqa: RUF009 - frozen
    inventory: Mapping[tuple[str, str], tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """(arm, case) -> (kernel, launches) of one watched call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckoutFacts:
    """One framework's checkout on this machine."""

    now: Checkout | Fault
    """Its state, or why nobody knows it."""
    path: str = ""
    """Absolute; for what is shown on this machine, never for what is written down."""
    edits: tuple[str, ...] = ()
    """The first of its paths that are not as committed."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Path -> text of what the contract names as the baseline's code, in the locked commit."""
    source_faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TuningFacts:
    """The map, the dispatcher and its files; ``faults`` are what does not hold together among them (pure check)."""

    map: PerformanceMap | None = None
    table: Table | None = None
    map_faults: tuple[Fault, ...] = ()
    """The map against its runs and rows (rule 24)."""
    dispatch_faults: tuple[Fault, ...] = ()
    """Table, generated code, copied trees, guards and held-out cases (rule 25)."""
    regimes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The whole repo as facts. Whatever could not be read is a Fault in its place, never a default."""

    root: str
    contract: Contract | Fault
    lock: Lock | Fault
    written: tuple[Case, ...] = ()
    cases: tuple[JobCase, ...] = ()
    rows: tuple[Row, ...] = ()
    ideas: tuple[Idea, ...] = ()
    audit: tuple[Fault, ...] = ()
    """Every fault of ``kernelpilot ledger check``: chain, git history, seals, verdicts judged again, views, lock."""
    skeleton: tuple[Fault, ...] = ()
    """What the scaffold would want and the repo lacks, in the worktree."""
    base_missing: tuple[str, ...] = ()
    """Required paths that the loop's base commit does not hold."""
    base_is_ancestor: bool = True
    runs: Mapping[str, RunFacts] = field(default_factory=dict)
    git: GitFacts
    loop: LoopFacts | None = None
    tuning: TuningFacts = field(default_factory=TuningFacts)
    files: Mapping[str, str] = field(default_factory=dict)
    """Text of the small files that rules read: README, FINAL.md, research digest, current, ..."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of every file below ``artifacts/`` and ``dispatch/``."""
    secrets: tuple[str, ...] = ()
    """``path: which pattern`` for each evidence file that looks as if it held a credential."""
    faults: tuple[Fault, ...] = ()
    """What the collector itself could not read or found where only plain files belong."""
    earlier: tuple[LoopFacts, ...] = ()
    """Loops before ``loop``, oldest first."""
    base_contract: str = ""
    """What is wrong with the contract at the loop's base commit; empty when nothing is."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Repo-relative path -> text of every file below the variants folder, as it is in the worktree."""
    task: str = ""
    """Folder below ``src/``; empty when neither the contract nor the repo says."""
    checkouts: Mapping[str, CheckoutFacts] = field(default_factory=dict)
    """Framework that the contract names -> its checkout."""
    originals: Mapping[str, str] = field(default_factory=dict)
    """Path -> text of the files below ``baseline/`` that the lock covers."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Name -> code that KernelPilot itself hands out for this contract: nobody took it from the baseline."""
    digests: tuple[DigestFacts, ...] = ()
    """Every folder below ``artifacts/profile-digests/`` that holds a digest."""
