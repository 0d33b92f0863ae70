"""``kernelpilot dispatch``: rules, code and frozen trees from the performance map, behind one decision row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from kernelpilot_helpers import autotune, dispatcher, ledger, records
from kernelpilot_helpers.dispatcher import Table
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.ledger.model import Row
from kernelpilot_helpers.referee import derived, recover, tuning, workspace
from kernelpilot_helpers.referee.floor import Clock
from kernelpilot_helpers.referee.workspace import Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class Dispatched:
    """The table and its row; ``row`` is an earlier one when nothing had to be written."""

    table: Table
    row: Row
    changed: bool
    notes: tuple[str, ...] = ()


def dispatch(start: Path, *, clock: Clock) -> Dispatched:
    """Choose and generate. Raises Refused without a map that covers W and the versions of now."""
    with tuning.deciding(start, clock) as (ws, notes):
        found = _map(ws)
        made = derived.generated(ws, found)
        if wrong := dispatcher.check(made.table, found):
            raise BadRecord("; ".join(wrong), where=dispatcher.TABLE_PATH, fix="kernelpilot tune")
        sealed = derived.evidence(made.files)
        earlier = next((r for r in reversed(ws.rows) if derived.kind(r) == "dispatch"), None)
        if earlier is not None and earlier.evidence == sealed and not derived.stored_faults(ws):
            return Dispatched(table=made.table, row=earlier, changed=False, notes=tuple(notes))
        reason = f"{ledger.DISPATCH} {made.table.kind}, {len(made.table.rules)} rules"
        row = msgspec.structs.replace(tuning.decision(ws, reason, clock), evidence=sealed)
        records.append(ws.root / ledger.LINEAGE_PATH, row, ledger.LINEAGE, chained=True)
        records.crash_point("derived.row")
        recover.finish(workspace.open_repo(start), row)
    return Dispatched(table=made.table, row=row, changed=True, notes=tuple(notes))


def _map(ws: Workspace) -> autotune.PerformanceMap:
    if not (ws.root / autotune.MAP_PATH).exists():
        raise Refused("there is no performance map", where=autotune.MAP_PATH, fix="kernelpilot tune")
    found = derived.load_map(ws)
    cases = autotune.cases_of(ws.contract, ws.cases)
    lacks = autotune.coverage(found, epoch=ws.epoch, wanted=autotune.selected(ws.rows, ws.epoch), cases=cases)
    if lacks:
        raise Refused("; ".join(lacks), where=autotune.MAP_PATH, fix="kernelpilot tune")
    return found
