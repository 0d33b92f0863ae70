"""``kernelpilot select``: bring back an earlier version after a rejected try."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from kernelpilot_helpers import ledger, proc, records
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.ledger.model import Motivation, Row
from kernelpilot_helpers.referee import recover, workspace
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.workspace import LOCAL

BAD = ("WRONG", "BROKEN")


def select(start: Path, version: str, *, why: str, clock: Clock) -> Row:
    """Make a recorded version current again: its tree in the worktree, ``current``, and a decision row.

    Raises Refused for a version that was never shown correct, or when the directory holds uncommitted work.
    """
    ws = workspace.open_repo(start)
    with workspace.held(ws):
        recover.recover(ws, clock)
        ws = workspace.open_repo(start)
        workspace.require_sound(ws)
        row = ledger.find(ws.rows, version)
        if row.verdict in BAD or row.epoch != ws.epoch:
            what = f"{row.version} is {row.verdict or row.kind} of epoch {row.epoch}"
            raise Refused(f"{what}: only a correct version of this epoch can be selected", fix=_selectable(ws))
        commit = row.commit
        if row.kind != "baseline":
            commit = _restore(ws, row)
        decision = msgspec.structs.replace(
            row,
            kind="decision",
            at=stamp(clock),
            motivation=Motivation(kind="review", text=why),
            commit=commit,
            runs=(),
            verdict=None,
            gain=None,
            vs_baseline=None,
            confirmed_by=None,
            partial=False,
            reason=f"select: {why}",
            status="selected",
            at_head=proc.head(ws.root) or "",
        )
        records.append(ws.root / ledger.LINEAGE_PATH, decision, ledger.LINEAGE, chained=True)
        recover.finish(workspace.open_repo(start), decision)
    return decision


def _selectable(ws: workspace.Workspace) -> str:
    """The command that selects the newest version that may be."""
    mine = [row for row in ws.rows if row.kind == "attempt" and row.epoch == ws.epoch]
    right = [row for row in mine if not {r.verdict for r in ledger.by_tree(ws.rows, row.tree, ws.epoch)} & {*BAD}]
    return f"kernelpilot select {right[-1].version if right else ws.baseline().version}"


def _restore(ws: workspace.Workspace, row: Row) -> str:
    path = f"{ws.variants}/{row.variant}"
    edited = proc.dirty(ws.root, path)
    if edited:
        raise Refused(
            f"uncommitted work would be lost: {', '.join(edited)}",
            where=path,
            fix=f"kernelpilot attempt {row.variant} --motivation TEXT  # records it; git stash puts it aside",
        )
    staged = ws.root / LOCAL / "select"
    shutil.rmtree(staged, ignore_errors=True)
    proc.archive(ws.root, row.tree, staged)
    commit = proc.commit_tree(ws.root, path, row.tree, f"{row.version.split('_')[0]} select")
    replaced = ws.root / LOCAL / "replaced" / row.variant  # ignored files of the folder are kept here
    shutil.rmtree(replaced, ignore_errors=True)
    replaced.parent.mkdir(parents=True, exist_ok=True)
    if (ws.root / path).exists():
        (ws.root / path).rename(replaced)
    staged.rename(ws.root / path)
    return commit
