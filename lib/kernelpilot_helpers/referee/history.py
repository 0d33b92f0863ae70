"""The lineage against git: rows are only ever appended, so every committed version is a prefix of the next."""

from __future__ import annotations

from pathlib import Path

from kernelpilot_helpers import ledger, proc
from kernelpilot_helpers.records import Fault


def head_faults(root: Path) -> list[Fault]:
    """The lineage in the worktree must begin with the one that HEAD holds."""
    path = root / ledger.LINEAGE_PATH
    now = path.read_bytes() if path.exists() else b""
    return _compare(_blob(root, "HEAD"), now, "HEAD")


def all_faults(root: Path) -> list[Fault]:
    """What the worktree no longer holds of any commit that touched it, side branches included; the newest loss.

    A version whose own chain is broken was a slip of the hand: undone, it is forgiven.
    """
    path = root / ledger.LINEAGE_PATH
    now = path.read_bytes() if path.exists() else b""
    log = proc.git(root, "log", "--topo-order", "--full-history", "--format=%H", "--", ledger.LINEAGE_PATH, check=False)
    for commit in log.out.split() if log.code == 0 else []:
        before = _blob(root, commit)
        lost = _compare(before, now, commit[:12])
        if lost and not ledger.load(before)[1]:
            return lost
    return []


def _blob(root: Path, commit: str) -> bytes:
    """Bytes of the lineage in a commit; empty when it is not there."""
    return proc.blob(root, f"{commit}:{ledger.LINEAGE_PATH}") or b""


def _compare(before: bytes, after: bytes, commit: str) -> list[Fault]:
    if after.startswith(before):
        return []
    cut = before.startswith(after)
    what = f"rows that {commit} holds were {'cut off' if cut else 'edited'}"
    fix = (
        f"git checkout {commit} -- {ledger.LINEAGE_PATH}"
        if commit != "HEAD"
        else f"git checkout -- {ledger.LINEAGE_PATH}"
    )
    return [Fault(where=ledger.LINEAGE_PATH, what=what, fix=fix)]
