"""What the ``kernelpilot ledger`` commands do to a repo, under the repo lock."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kernelpilot_helpers import ledger, proc, records
from kernelpilot_helpers.errors import BadRecord, KernelPilotError, Refused
from kernelpilot_helpers.ledger import Idea
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee import derived, history, recover, runs, seals, views, workspace
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.workspace import Workspace

LEFT = re.compile(r"\..+\.(\d+)\.tmp")
"""A temporary file of ``records``, with its process."""


@contextmanager
def _writing(start: Path, clock: Clock) -> Iterator[tuple[Workspace, list[str]]]:
    ws = workspace.open_repo(start, need_lock=False)
    with workspace.held(ws):
        _sweep(ws.root / "artifacts")
        notes = recover.recover(ws, clock)
        yield workspace.open_repo(start, need_lock=False), notes


def _sweep(folder: Path) -> None:
    """Remove what a process killed while it replaced a file left beside it; else it is committed as evidence."""
    for left in folder.rglob(".*.tmp"):
        if (named := LEFT.fullmatch(left.name)) and not Path("/proc", named[1]).exists():
            left.unlink(missing_ok=True)


def check(start: Path) -> list[Fault]:
    """Every fault of the lineage and of the files rendered from it; nothing is changed."""
    ws = workspace.open_repo(start, need_lock=False)
    ideas, idea_faults = _ideas(ws)
    files = {path: views.text_of(ws.root / path) for path in views.rendered(ws)}
    found = [*ws.faults, *idea_faults, *history.all_faults(ws.root)]
    faults = ledger.check(ws.rows, found, files, views.bench_facts(ws), ideas)
    fix = "kernelpilot ledger render  # records or reports it"
    for run in runs.orphans(ws.root, ws.rows):
        faults.append(Fault(where=f"{workspace.RUNS}/{run}", what="no row cites this run", fix=fix))
    if ws.lock is not None:
        faults += [*workspace.lock_faults(ws), *workspace.lock_edits(ws)]
    for row in ws.rows:
        found = seals.faults(ws, row)
        faults += found or seals.rejudged(ws, row)
    return [*faults, *derived.stored_faults(ws)]


def _ideas(ws: Workspace) -> tuple[tuple[Idea, ...], tuple[Fault, ...]]:
    path = ws.root / ledger.IDEAS_PATH
    return ledger.parse_ideas(path.read_bytes()) if path.exists() else ((), ())


def render(start: Path, clock: Clock) -> tuple[list[str], list[str]]:
    """(files written, notes); an edited file is first put aside. Raises BadRecord for an unsound lineage."""
    with _writing(start, clock) as (ws, notes):
        workspace.require_sound(ws)
        changed = views.render(ws, put_aside=True)
        if changed:
            proc.commit(ws.root, "ledgers rendered", ["artifacts"])
        return changed, notes


def add_idea(start: Path, idea: Idea, clock: Clock) -> Idea:
    """Note a source idea, and render its ledger. Raises Refused for a source noted before."""

    def first(refused: Sequence[tuple[int, KernelPilotError]]) -> None:
        raise refused[0][1]

    return add_ideas(start, [idea], clock, refuse=first)[1][0]


def add_ideas(
    start: Path,
    ideas: Sequence[Idea],
    clock: Clock,
    *,
    refuse: Callable[[Sequence[tuple[int, KernelPilotError]]], None],
) -> tuple[tuple[Idea, ...], tuple[Idea, ...]]:
    """Note source ideas in one commit, or none of them: (those noted before, the new ones with their keys).

    ``refuse`` is given the place and fault of each that may not be noted, and raises. Raises BadRecord: a garbled log.
    """
    with _writing(start, clock) as (ws, _):
        workspace.require_sound(ws)
        known, faults = _ideas(ws)
        for fault in faults:
            raise BadRecord(fault.what, where=fault.where, fix=fault.fix)
        added: list[Idea] = []
        refused: list[tuple[int, KernelPilotError]] = []
        for at, idea in enumerate(ideas):
            try:
                added.append(ledger.add((*known, *added), idea))
            except KernelPilotError as error:
                refused.append((at, error))
        if refused:
            refuse(refused)
        records.append_all(ws.root / ledger.IDEAS_PATH, added, ledger.IDEAS)
        views.render(workspace.open_repo(start, need_lock=False), put_aside=True)
        proc.commit(ws.root, f"source idea {', '.join(idea.key[:12] for idea in added[:8])}", ["artifacts"])
        return known, tuple(added)


def import_old(start: Path, layout: Path, clock: Clock) -> tuple[int, int, tuple[Fault, ...]]:
    """Take over an older layout: (rows, ideas, faults). Raises Refused when the lineage holds attempts already."""
    files = {
        str(p.relative_to(layout)): p.read_bytes()
        for folder in ("ledgers", "artifacts")
        for p in sorted((layout / folder).glob("*"))
        if p.is_file() and p.suffix in (".jsonl", ".md")
    }
    if not files:
        raise Refused(
            "no ledgers/ or artifacts/ with .jsonl or .md files", where=str(layout), fix="name the old repo's folder"
        )
    with _writing(start, clock) as (ws, _):
        workspace.require_sound(ws)
        if any(row.kind == "attempt" for row in ws.rows):
            raise Refused("the lineage holds attempts already", where=str(ws.root), fix="import into a fresh scaffold")
        rows, ideas, faults = ledger.import_old(files)
        for row in rows:
            records.append(ws.root / ledger.LINEAGE_PATH, row, ledger.LINEAGE, chained=True)
        for idea in ideas:
            ledger.append_idea(ws.root, idea)
        views.render(workspace.open_repo(start, need_lock=False), put_aside=True)
        proc.commit(ws.root, f"imported {len(rows)} rows ({stamp(clock)})", ["artifacts"])
        return len(rows), len(ideas), faults
