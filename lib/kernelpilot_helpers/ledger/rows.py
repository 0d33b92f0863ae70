"""Lineage rows: read, append, and the questions every command asks of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.ledger.model import FORMAT, VERSION, Row

LINEAGE_PATH = "artifacts/lineage.jsonl"
LINEAGE: records.Owner[Row] = records.Owner(
    format=FORMAT, version=VERSION, type=Row, fix="git checkout -- artifacts/lineage.jsonl"
)

LABEL = re.compile(r"v(\d{3,})_([a-z0-9][a-z0-9_-]*)\Z")
SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
BASELINE = "v000_baseline"
SELECT = "select:"
"""How the reason of a decision begins that makes an earlier version current again."""
TUNE = "tune:"
"""How the reason of a decision begins that stands behind a performance map; the only decision with runs."""
DISPATCH = "dispatch:"
"""How the reason of a decision begins that stands behind a dispatcher."""


def load(data: bytes, at: str = LINEAGE_PATH) -> tuple[tuple[Row, ...], tuple[records.Fault, ...]]:
    """Every readable row in order, and a fault for each line or chain link that is not sound."""
    log = records.parse_log(data, LINEAGE, at=at, chained=True)
    return log.rows, log.faults


def append(repo: Path, row: Row) -> None:
    """Add a row to the chain, durably; ``row.prev`` is replaced by the hash of the line before.

    Raises BadRecord when the log is not one this tool may append to, KernelPilotError when the disk refuses.
    """
    records.append(repo / LINEAGE_PATH, row, LINEAGE, chained=True)


def number_of(version: str) -> int | None:
    """The counter in a label: 3 for ``v003_tiled``; None when it is no label.

    >>> number_of("v003_tiled"), number_of("3_tiled")
    (3, None)
    """
    match = LABEL.match(version)
    return int(match.group(1)) if match else None


def next_version(rows: Sequence[Row], slug: str) -> str:
    """The next label. Raises BadRecord when the slug is no directory name of ours.

    >>> next_version([], "tiled")
    'v001_tiled'
    """
    if not SLUG.match(slug):
        raise BadRecord(
            f"slug {slug!r}: want lower-case letters, digits, '_' or '-', at most 64",
            where="--slug",
            fix="rename the variant directory, or give --slug NAME",
        )
    taken = [n for n in (number_of(row.version) for row in rows) if n is not None]
    return f"v{max(taken, default=0) + 1:03d}_{slug}"


def _judged(row: Row) -> bool:
    return row.kind in ("baseline", "attempt", "recheck")


def find(rows: Sequence[Row], version: str) -> Row:
    """The baseline, attempt or recheck row of a label, or of its number alone (``v003``); of baselines the newest.

    Raises Refused when there is none.
    """
    named = [row for row in rows if _judged(row) and version in (row.version, row.version.partition("_")[0])]
    if not named:
        known = ", ".join(row.version for row in rows[-4:] if _judged(row)) or "none"
        raise Refused(
            f"no row for version {version!r}; the latest are {known}",
            where=LINEAGE_PATH,
            fix="see artifacts/attempt-ledger.md",
        )
    return named[-1]


def best(rows: Sequence[Row], epoch: int) -> Row:
    """The attempt selected last in this epoch, by its own verdict or by a ``select:`` decision; else the baseline.

    Raises Refused when the epoch has neither.
    """
    mine = [row for row in rows if row.epoch == epoch]
    for row in reversed(mine):
        if row.kind == "attempt" and row.status == "selected":
            return row
        if row.kind == "decision" and row.reason.startswith(SELECT):
            return find(mine, row.version)
    for row in reversed(mine):
        if row.kind == "baseline":
            return row
    raise Refused(f"epoch {epoch} has no baseline row", where=LINEAGE_PATH, fix="kernelpilot lock")


def by_tree(rows: Sequence[Row], tree: str, epoch: int) -> tuple[Row, ...]:
    """The rows that judged this very tree under this contract, oldest first; none for an empty id."""
    return tuple(row for row in rows if tree and row.tree == tree and row.epoch == epoch and _judged(row))
