"""The lock: hashes of everything that says what correct and fast mean. Pure; ``referee`` runs the audit before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kernelpilot_helpers.contract.model import Contract, Lock
from kernelpilot_helpers.contract.owners import CASES_PATH, CONTRACT_PATH, LOCK_PATH
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.records import Fault, sha256

FOLDERS = ("baseline/", "tests/", "benchmarks/")
AMEND = 'kernelpilot lock --amend --why "..."'


def required_paths(contract: Contract) -> tuple[str, ...]:
    """Files without which there is nothing to lock."""
    specs = [contract.reference.fn, contract.reference.check, *(b.fn for b in contract.baseline)]
    files = {spec.partition(":")[0] for spec in specs if spec}
    return tuple(sorted({CONTRACT_PATH, CASES_PATH, *files}))


def locked_paths(contract: Contract, listing: Iterable[str]) -> list[str]:
    """Repo-relative paths the lock covers, sorted. ``listing`` is what the repo holds (``git ls-files``).

    The required files are named even where the listing lacks them, so that their absence shows.
    """
    below = {p for p in listing if p.startswith(FOLDERS) and "__pycache__" not in p and not p.endswith(".pyc")}
    return sorted(below | set(required_paths(contract)))


def make(
    files: Mapping[str, bytes],
    *,
    epoch: int,
    locked_at: str,
    why: str,
    mutation_score: str,
    survivors: Sequence[str] = (),
    not_applicable: Sequence[str] = (),
    previous: str = "",
) -> Lock:
    """A lock over these bytes. Raises Refused for an amendment without a reason or a first lock with a past."""
    if epoch > 1 and not (why.strip() and previous):
        what = f"epoch {epoch} needs a reason and the hash of the lock before it"
        raise Refused(what, where=LOCK_PATH, fix='kernelpilot lock --amend --why "..."')
    if epoch < 1 or (epoch == 1 and previous):
        raise Refused(f"epoch {epoch} with previous {previous!r}: 1 is the first", where=LOCK_PATH, fix=AMEND)
    missing = [path for path in (CONTRACT_PATH, CASES_PATH) if path not in files]
    if missing:
        fix = "kernelpilot scaffold DIR makes them"
        raise Refused(f"nothing to lock: {', '.join(missing)} missing", where=LOCK_PATH, fix=fix)
    return Lock(
        epoch=epoch,
        files={path: sha256(files[path]) for path in sorted(files)},
        locked_at=locked_at,
        why=why,
        previous=previous,
        mutation_score=mutation_score,
        survivors=tuple(survivors),
        not_applicable=tuple(not_applicable),
    )


def compare(lock: Lock, files: Mapping[str, bytes]) -> list[Fault]:
    """One fault for each locked file that changed or is gone, and each new file the lock would cover."""
    out: list[Fault] = []
    for path in sorted({*lock.files, *files}):
        if path not in files:
            what = "locked, and missing"
        elif path not in lock.files:
            what = "not in the lock, and in a place that it covers"
        elif sha256(files[path]) != lock.files[path]:
            what = f"changed since lock epoch {lock.epoch}"
        else:
            continue
        out.append(Fault(where=path, what=what, fix=f"git checkout -- {path}  # or, for a new epoch: {AMEND}"))
    return out
