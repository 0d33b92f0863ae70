"""``kernelpilot attempt``: the transaction whose commit point is one appended row.

Order: repo lock, repair, commit the variant, version, runs (device lock inside the lab), row, ``current``, ledgers,
evidence commit. A command killed between any two of them is finished or reported by the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelpilot_helpers import ledger, proc, records
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.ledger.model import Motivation, Row
from kernelpilot_helpers.referee import measure, recover, rows, sources, views, workspace
from kernelpilot_helpers.referee.decide import Outcome
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.runs import Intent
from kernelpilot_helpers.referee.workspace import Workspace

REPEATABLE = ("interrupted", "harness", "oracle", "incumbent", "machine", "evidence", "suspect", "gpu", "clock")
"""Reason codes that say nothing about the candidate: the same tree may be attempted again without ``--again``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the user asked for."""

    variant: str | None = None
    slug: str | None = None
    motivation: Motivation
    tier: str = "accept"
    again: bool = False
    no_commit: bool = False
    max_pairs: int | None = None
    language: str | None = None
    parent: str | None = None
    tree: str | None = None
    """A tree measured before by ``kernelpilot try``; None takes the directory as it is now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A row, and the outcome when it was measured just now (None: an earlier verdict was found)."""

    row: Row
    outcome: Outcome | None
    notes: tuple[str, ...] = ()


def attempt(start: Path, request: Request, *, lab: Lab, clock: Clock, say: measure.Say) -> Recorded:
    """Measure one variant and record the verdict. Raises KernelPilotError when no verdict can be recorded."""
    ws = workspace.open_repo(start)
    _require_pairs(ws, request)
    variant = sources.choose_variant(ws, request.variant)
    path = f"{ws.variants}/{variant}"
    tree = request.tree or proc.snapshot(ws.root, path)
    with workspace.held(ws):
        require_git_ready(ws)  # under the lock: another attempt's own commits must not look like a stale one
        notes = recover.recover(ws, clock)
        ws = workspace.open_repo(start)
        workspace.require_sound(ws)
        views.require_rendered(ws)
        sources.require_cited(ws, request.motivation)
        earlier = _earlier(ws, tree)
        if earlier is not None and not request.again:
            return Recorded(row=earlier, outcome=None, notes=tuple(notes))
        records.crash_point("attempt.locked")
        intent = intent_for(ws, request, variant, tree, clock, recheck=earlier is not None)
        records.crash_point("attempt.committed")
        bench = measure.Bench(workspace=ws, lab=lab, clock=clock, say=say)
        outcome, intent, made = measure.with_floor(bench, intent)
        row = rows.make_row(ws, intent, outcome, made, clock)
        records.append(ws.root / ledger.LINEAGE_PATH, row, ledger.LINEAGE, chained=True)
        records.crash_point("attempt.row")
        recover.finish(workspace.open_repo(start), row)
    return Recorded(row=row, outcome=outcome, notes=tuple(notes))


def _require_pairs(ws: Workspace, request: Request) -> None:
    """A look that the tier does not have is refused before anything is measured."""
    first = ws.tier(request.tier).looks[0]
    if request.max_pairs is not None and request.max_pairs < first:
        what = f"--max-pairs {request.max_pairs}: the {request.tier} tier's first look has {first} pairs"
        raise Refused(what, fix=f"give --max-pairs {first} or more, or --tier screen")


def require_git_ready(ws: Workspace) -> None:
    """What git could not commit after the measuring is refused before it."""
    for name in ("MERGE_HEAD", "rebase-merge", "rebase-apply", "index.lock"):
        path = Path(proc.git_out(ws.root, "rev-parse", "--git-path", name))
        if (ws.root / path).exists():
            what = f"git is in the middle of something ({path}), so the evidence could not be committed"
            raise Refused(what, where=str(ws.root), fix="finish or abort it (a stale index.lock: remove it)")


def _earlier(ws: Workspace, tree: str) -> Row | None:
    for row in reversed(ledger.by_tree(ws.rows, tree, ws.epoch)):
        if row.verdict is not None and row.reason.split(":", 1)[0].split(".", 1)[0] not in REPEATABLE:
            return row
    return None


def incumbent_of(ws: Workspace, tree: str) -> Row:
    """What a tree is timed against. The incumbent's own tree is timed against the baseline: itself says nothing."""
    best = ws.best()
    return ws.baseline() if tree == best.tree else best


def intent_for(ws: Workspace, request: Request, variant: str, tree: str, clock: Clock, *, recheck: bool) -> Intent:
    """Commit the variant as it was when the command was given, and say what its runs are for."""
    path = f"{ws.variants}/{variant}"
    label = ledger.next_version(ws.rows, request.slug or variant)
    head = proc.head(ws.root)
    if request.no_commit and (head is None or proc.tree(ws.root, head, path) != tree):
        fix = f'git add {path} && git commit -m "{label}"'
        raise Refused("the variant has uncommitted changes", where=path, fix=fix)
    idea = request.motivation.text
    commit = proc.commit_tree(ws.root, path, tree, f"{label.split('_')[0]} try: {idea}")
    best = ws.best()
    return Intent(
        run="",
        role="main",
        kind="recheck" if recheck else "attempt",
        label=label,
        variant=variant,
        tree=tree,
        commit=commit,
        parent=ledger.find(ws.rows, request.parent).version if request.parent else best.version,
        incumbent=incumbent_of(ws, tree).version,
        motivation=request.motivation,
        language=request.language or sources.language(ws, tree),
        provenance=sources.provenance(ws, tree, path),
        tier=request.tier,
        max_pairs=request.max_pairs,
        epoch=ws.epoch,
        at=stamp(clock),
    )
