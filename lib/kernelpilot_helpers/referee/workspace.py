"""The standalone repo as the referee sees it: contract, cases, lock, lineage, and where things are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kernelpilot_helpers import contract as contracts
from kernelpilot_helpers import ledger, policy, proc, records
from kernelpilot_helpers.attempt.job import JobCase
from kernelpilot_helpers.attempt.resolve import resolve
from kernelpilot_helpers.contract.model import Case, Contract, Lock
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.executors import absent
from kernelpilot_helpers.ledger.model import Row
from kernelpilot_helpers.referee import history

CONTRACT = "contract.toml"
CASES = "workloads/cases.jsonl"
LOCK = "artifacts/contract.lock.json"
RUNS = "artifacts/runs"
LOCAL = ".kernelpilot"
ON_GPU = "contract.toml: target.gpu"
AMEND = "kernelpilot lock --amend --why TEXT"
MEASURED_THERE = (
    'kernelpilot job export --out FILE.tar.gz --motivation "why it should be faster"  '
    "# run that on a machine with an NVIDIA GPU and import it here; or git clone this repo there and work there"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Workspace:
    """A standalone repo, parsed. ``cases`` holds the written cases followed by the generated edges."""

    root: Path
    contract: Contract
    cases: tuple[Case, ...]
    resolved: tuple[JobCase, ...]
    lock: Lock | None
    rows: tuple[Row, ...]
    faults: tuple[records.Fault, ...]

    @property
    def task(self) -> str:
        """Name of the task: the folder below ``src/``."""
        return self.contract.task.name

    @property
    def variants(self) -> str:
        """Repo-relative folder of the variants."""
        return f"src/{self.task}/variants"

    @property
    def epoch(self) -> int:
        """Contract epoch, 0 before the first lock."""
        return self.lock.epoch if self.lock else 0

    @property
    def device(self) -> policy.DevicePolicy:
        """What the target's noise allows, with the contract's own margin where it is tighter."""
        usual = policy.DEVICES[contracts.device(self.contract.target)]
        own = self.contract.objective.noninferiority_pct
        return usual if own is None else replace(usual, noninferiority=min(own / 100, usual.noninferiority))

    def tier(self, name: str) -> policy.Tier:
        """The tier of that name on the contract's device. Raises KeyError for a name that no tier has."""
        return policy.tiers(self.device.kind)[name]

    @property
    def timed(self) -> tuple[str, ...]:
        """Ids of the cases that are timed, in order."""
        return tuple(c.case_id for c in self.resolved if c.timed)

    @property
    def required(self) -> frozenset[str]:
        """Ids of the timed cases that no improvement may make slower."""
        return frozenset(c.case_id for c in self.resolved if c.timed and c.required)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the tensors that are written, in call order."""
        return tuple(n for n, t in self.contract.tensors.items() if t.role in ("out", "inout"))

    @property
    def weights(self) -> dict[str, float] | None:
        """Weight of each timed case for objective ``total_time``; None for the geomean."""
        if self.contract.objective.metric == "geomean":
            return None
        return {c.case_id: float(c.calls) for c in self.cases if c.case_id in self.timed}

    @property
    def numerics(self) -> policy.Numerics:
        """The contract's limits; the parser has refused looser ones than the policy's."""
        given = self.contract.numerics
        return policy.Numerics(
            rms_ratio=given.rms_ratio,
            tile_ratio=given.tile_ratio,
            max_ratio=given.max_ratio,
            bias_sigma=given.bias_sigma,
        )

    def best(self) -> Row:
        """The incumbent of this epoch. Raises Refused before the lock."""
        require_lock(self)
        return ledger.best(self.rows, self.epoch)

    def baseline(self) -> Row:
        """The baseline row of this epoch. Raises Refused when it is missing."""
        for row in self.rows:
            if row.kind == "baseline" and row.epoch == self.epoch:
                return row
        raise Refused(
            "the lineage holds no baseline row for this lock", where=ledger.LINEAGE_PATH, fix="kernelpilot lock"
        )


def open_repo(start: Path, *, need_lock: bool = True) -> Workspace:
    """Parse the standalone repo around ``start``. Raises Refused or BadRecord, each naming the command that helps."""
    root = proc.toplevel(start)
    if not (root / CONTRACT).exists():
        fix = "cd into the standalone repo, or make one: kernelpilot scaffold DIR --task NAME"
        raise Refused(f"no {CONTRACT} here", where=str(root), fix=fix)
    contract = contracts.parse((root / CONTRACT).read_bytes(), at=CONTRACT)
    path = root / CASES
    written = contracts.parse_cases(
        records.read_bytes(path, fix=f"write {CASES}; see docs/formats/cases.md"), contract, at=CASES
    )
    cases = (*written, *contracts.edges(contract, written))
    lock = records.load(root / LOCK, contracts.LOCK) if (root / LOCK).exists() else None
    log = records.read_log(root / ledger.LINEAGE_PATH, ledger.LINEAGE, chained=True)
    workspace = Workspace(
        root=root,
        contract=contract,
        cases=cases,
        resolved=tuple(resolve(contract, case) for case in cases),
        lock=lock,
        rows=log.rows,
        faults=log.faults,
    )
    if need_lock:
        require_lock(workspace)
    return workspace


def require_ready(start: Path, *, need_lock: bool = True) -> Workspace:
    """What a measuring command is refused for before a Python is looked for: no lock, then no GPU for a GPU target.

    Without ``need_lock`` it is the lock that is to be made: one that stands is only told of, which needs no GPU.
    Raises Refused or BadRecord.
    """
    workspace = open_repo(start, need_lock=need_lock)
    if workspace.device.kind != "gpu":
        return workspace
    if need_lock:
        absent.require_here(where=ON_GPU, fix=MEASURED_THERE)
    elif workspace.lock is None or lock_faults(workspace):
        fix = absent.elsewhere(workspace.root, "kernelpilot plan", "kernelpilot lock")
        absent.require_here(where=ON_GPU, fix=fix)
    return workspace


@contextmanager
def held(workspace: Workspace) -> Iterator[None]:
    """Hold this repo's lock: one writing command at a time. Raises Busy naming the process that holds it."""
    path = workspace.root / LOCAL / "repo.lock"
    with proc.file_lock(path, timeout_s=policy.POLICY.lock_s, what="this repo's referee"):
        yield


def require_lock(workspace: Workspace) -> Lock:
    """The lock, checked against the files of now. Raises Refused when absent or when a locked file changed."""
    if workspace.lock is None:
        raise Refused("the contract is not locked", where=str(workspace.root), fix="kernelpilot lock")
    faults = [*lock_faults(workspace), *lock_edits(workspace)]
    if faults:
        what = "; ".join(f"{f.where}: {f.what}" for f in faults)
        paths = dict.fromkeys(f.where for f in faults)
        what = f"a locked file changed, so nothing measured now would be comparable: {what}"
        raise Refused(what, where=LOCK, fix=_back(workspace, list(paths)))
    return workspace.lock


def _back(workspace: Workspace, paths: list[str]) -> str:
    """How locked files come to be as they were locked; a lock that git and lineage do not know is made anew."""
    root = workspace.root
    held = proc.git_out(root, "ls-files", "-z", "--", *paths).split("\0")
    used = any(row.kind == "baseline" for row in workspace.rows)
    if not used and proc.git(root, "cat-file", "-e", f"HEAD:{LOCK}", check=False).code != 0:
        return f"rm {LOCK} && kernelpilot lock  # git holds no lock yet, so nothing rests on this one"
    known = [path for path in paths if path in held]
    if known:
        return f"git checkout -- {' '.join(known)}  # or keep the change: {AMEND}"
    return f"{AMEND}  # or move away what was not there when it was locked"


def require_sound(workspace: Workspace) -> None:
    """Refuse to add to a lineage that does not hold together. Raises BadRecord with every fault."""
    faults = [*workspace.faults, *history.head_faults(workspace.root)]
    if faults:
        what = "; ".join(f"{f.where}: {f.what}" for f in faults)
        raise BadRecord(
            what,
            where=ledger.LINEAGE_PATH,
            fix=f"git checkout -- {ledger.LINEAGE_PATH}  # kernelpilot ledger check names what is wrong",
        )


def locked_files(workspace: Workspace) -> dict[str, bytes]:
    """Bytes of every file that the lock covers, as they are in the worktree."""
    root = workspace.root
    listing = proc.git_out(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    present = [name for name in listing if name and (root / name).is_file()]
    paths = contracts.locked_paths(workspace.contract, present)
    return {path: (root / path).read_bytes() for path in paths}


def lock_edits(workspace: Workspace) -> list[records.Fault]:
    """The lock file itself must be the one that the baseline row of its epoch was written with."""
    row = next((r for r in workspace.rows if r.kind == "baseline" and r.epoch == workspace.epoch), None)
    if row is None or row.evidence.get(LOCK) == records.file_sha256(workspace.root / LOCK):
        return []
    return [
        records.Fault(
            where=LOCK, what=f"not the lock that {row.version} was written with", fix=_back(workspace, [LOCK])
        )
    ]


def lock_faults(workspace: Workspace) -> Sequence[records.Fault]:
    """What differs between the lock and the worktree."""
    if workspace.lock is None:
        return ()
    return contracts.lock.compare(workspace.lock, locked_files(workspace))
