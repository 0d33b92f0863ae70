"""Sources that somebody says were read, as ideas of the ledger: each with the bytes that show it."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord, KernelPilotError, Refused
from kernelpilot_helpers.knowledge import clones, listing, reading
from kernelpilot_helpers.knowledge.model import Record
from kernelpilot_helpers.ledger import Idea

COLUMNS = 4
FIX = "write lines ID<TAB>HYPOTHESIS[<TAB>PATH[<TAB>SYMBOL]]"


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One source that is said to have been read."""

    id: str
    hypothesis: str
    where: str
    """How a fault names it: the id, or ``file:line``."""
    path: str = ""
    """Empty: the record's first kernel."""
    symbol: str = ""
    also: tuple[str, ...] = ()
    """``PATH``, or ``PATH=FILE`` with the content by hand."""
    content: Path | None = None
    result: str = ""
    reread_reason: str = ""


def parsed(data: bytes, *, at: str) -> tuple[Claim, ...]:
    """The claims of a file. Raises BadRecord that names every line at fault."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise BadRecord("is no text", where=at, fix=FIX) from None
    out, faults = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if not 2 <= len(cells) <= COLUMNS or not (cells[0] and cells[1]):
            faults.append(f"line {number}: want 2 to {COLUMNS} cells between tabs, an id and a hypothesis at the least")
            continue
        path, symbol, *_ = (*cells[2:], "", "")
        out.append(Claim(id=cells[0], hypothesis=cells[1], where=f"{at}:{number}", path=path, symbol=symbol))
    if faults or not out:
        raise BadRecord("\n  ".join(faults) or "holds no line", where=at, fix=FIX)
    return tuple(out)


def again(claim: Claim, reason: str) -> Claim:
    """The claim with a reason for reading its source again."""
    return msgspec.structs.replace(claim, reread_reason=reason)


def ideas(tables: sqlite3.Connection, claims: Sequence[Claim], clone: Path | None, at: str) -> tuple[Idea, ...]:
    """An idea for each claim, noted ``at`` a time. Raises KernelPilotError that names all which nothing shows."""
    out: list[Idea] = []
    refused: list[tuple[Claim, KernelPilotError]] = []
    for claim in claims:
        try:
            out.append(_idea(listing.find(tables, claim.id), claim, clone, at))
        except KernelPilotError as error:
            refused.append((claim, error))
    refuse(refused, len(claims))
    return tuple(out)


def refuse(refused: Sequence[tuple[Claim, KernelPilotError]], count: int) -> None:
    """Raise the fault of the one claim, or all faults of several; nothing for none."""
    if refused and count == 1:
        raise refused[0][1]
    if refused:
        told = [f"{claim.where}: {error.what}; {error.fix}" for claim, error in refused]
        what = f"{len(refused)} of {count} sources are at fault, and none was noted:"
        fix = "mend or leave out these, then give all of them again"
        raise Refused("\n  ".join([what, *told]), where="mark-read", fix=fix)


def _idea(record: Record, claim: Claim, clone: Path | None, at: str) -> Idea:
    path = claim.path or record.kernel_files[0]
    found = clones.clone_of(record, clone)
    changed = [change.path for change in clones.changes(found, record)] if found is not None else []
    reading.path_among(record, path, changed)
    held = clones.file_at(found, record, path) if found is not None else None
    opened = [*_opened(record, path, claim.content, held, claim.symbol)]
    for also in claim.also:
        known = {*changed, *record.kernel_files, *record.test_files, *record.bench_files}
        name, _, file = (also, "", "") if also in known else also.partition("=")
        reading.path_among(record, name, changed)
        beside = clones.file_at(found, record, name) if found is not None else None
        opened += _opened(record, name, Path(file) if file else None, beside, "")
    return Idea(
        repo=record.repo,
        commit=record.sha,
        path=path,
        symbol=claim.symbol,
        pr=str(record.pr or ""),
        opened=tuple(opened),
        hypothesis=claim.hypothesis,
        result=claim.result,
        at=at,
        reread_reason=claim.reread_reason,
    )


def _opened(record: Record, path: str, content: Path | None, held: bytes | None, symbol: str) -> list[str]:
    """What the ledger keeps of a file: its sha256, and that its content was given by hand where no clone shows it."""
    given = records.read_bytes(content, fix="give a FILE that is there") if content is not None else None
    if held is not None:
        if given is not None:
            reading.same(record, path, given, held)
        reading.fit(record, path, held, symbol, by_hand=False)
        return [clones.opened_note(path, held)]
    if given is None:
        link = clones.link(record, path)
        option = "--content FILE" if path in ("", *record.kernel_files) else f"--also {shlex.quote(path)}=FILE"
        fix = f"open {link}, save the file, and give {option} (or --clone DIR)"
        raise Refused(f"nothing shows what was read: {path}", where=record.id, fix=fix)
    reading.fit(record, path, given, symbol, by_hand=True)
    return [clones.opened_note(path, given), f"{path}: {reading.BY_HAND}"]
