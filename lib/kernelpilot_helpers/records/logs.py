"""JSON Lines logs: one write a row, torn tails moved aside and reported, an optional hash chain."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.records.codec import Fault, Owner, convert, encode, parse_json, sha256, upgrade
from kernelpilot_helpers.records.disk import crash_point, refusals, sync_dir, write_all, write_bytes

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Log(Generic[T]):
    """A JSON Lines log as read: good rows in order, their raw lines, and every fault."""

    rows: tuple[T, ...]
    lines: tuple[bytes, ...]
    faults: tuple[Fault, ...]


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    with refusals(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def header(owner: Owner[Any]) -> bytes:
    """A log's first line."""
    return encode({"format": owner.format, "version": owner.version})


def append(path: Path, record: object, owner: Owner[Any], *, chained: bool = False) -> None:
    """Add one row with one write and fsync; a torn tail is moved aside first, a new log gets its header.

    With ``chained`` the row's ``prev`` becomes the sha256 of the line before it. Rows hold one ``\\n`` at the end.
    When this returns, the row is on disk. Raises BadRecord when the log is another format's or of another version
    (then it stays as it is), KernelPilotError when the disk refuses; a row that was cut short is taken back.
    """
    with _locked(path) as fd, refusals(path):
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            data = _repair(path, fd, data)
        if not data:
            data = header(owner) + b"\n"
            write_all(fd, data)
            sync_dir(path.parent)
        _same_header(data, owner, at=f"{path}:1")
        if chained:
            last = data.rstrip(b"\n").rsplit(b"\n", 1)[-1]
            record = {**msgspec.to_builtins(record), "prev": sha256(last)}
        line = encode(record, at=path.name) + b"\n"
        if os.environ.get("KP_CRASH_AT") == "append.torn":
            write_all(fd, line[: len(line) // 2])
            crash_point("append.torn")
        if os.write(fd, line) != len(line):
            os.ftruncate(fd, len(data))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(fd)
    crash_point("append.done")


def append_all(path: Path, records: Sequence[object], owner: Owner[Any]) -> None:
    """Add several rows or none of them: the file is replaced as a whole, so nobody finds the first half of them.

    For a log without a chain whose writers hold a lock of their own, because a file that is replaced has no lock.
    Raises as ``append``.
    """
    data = path.read_bytes() if path.exists() else b""
    if data and not data.endswith(b"\n"):
        repair(path)
        data = path.read_bytes()
    data = data or header(owner) + b"\n"
    _same_header(data, owner, at=f"{path}:1")
    write_bytes(path, data + b"".join(encode(record, at=path.name) + b"\n" for record in records))


def _same_header(data: bytes, owner: Owner[Any], *, at: str) -> None:
    head = parse_json(data.split(b"\n", 1)[0], at=at, fix=owner.fix)
    version = _log_version(head, owner, at=at)
    if version != owner.version:
        # Rows of two versions under one header would be upgraded twice by the next reader.
        what = f"the log is of version {version}, this tool appends version {owner.version}"
        raise BadRecord(what, where=at, fix="kernelpilot ledger import")


def _repair(path: Path, fd: int, data: bytes) -> bytes:
    keep = data.rfind(b"\n") + 1
    torn = path.with_name(path.name + ".torn")
    with torn.open("ab") as aside:
        aside.write(data[keep:] + b"\n")
        aside.flush()
        os.fsync(aside.fileno())
    os.ftruncate(fd, keep)
    os.fsync(fd)
    return data[:keep]


def repair(path: Path) -> bool:
    """Move a torn last line to ``<name>.torn``; True when there was one. The torn bytes are kept, never guessed."""
    if not path.exists():
        return False
    with _locked(path) as fd:
        data = path.read_bytes()
        if not data or data.endswith(b"\n"):
            return False
        _repair(path, fd, data)
        return True


def read_log(path: Path, owner: Owner[T], *, chained: bool = False) -> Log[T]:
    """Every good row, and a fault for every line that is not. An absent file is an empty log with one fault."""
    if not path.exists():
        return Log(rows=(), lines=(), faults=(Fault(where=str(path), what="no such file", fix=owner.fix),))
    return parse_log(path.read_bytes(), owner, at=str(path), chained=chained)


def parse_log(data: bytes, owner: Owner[T], *, at: str, chained: bool = False) -> Log[T]:
    """The same for bytes. Line numbers in faults start at 1 and count the header line."""
    faults: list[Fault] = []
    lines = data.split(b"\n")
    if lines and lines[-1] == b"":
        lines.pop()
    elif lines:
        torn = f"{at}:{len(lines)}"
        faults.append(Fault(where=torn, what="torn last line (no final newline)", fix="kernelpilot ledger render"))
        lines.pop()
    if not lines:
        faults.append(Fault(where=at, what="empty: not even a header line", fix=owner.fix))
        return Log(rows=(), lines=(), faults=tuple(faults))
    try:
        head = parse_json(lines[0], at=f"{at}:1", fix=owner.fix)
        version = _log_version(head, owner, at=f"{at}:1")
    except BadRecord as error:
        return Log(rows=(), lines=(), faults=(*faults, Fault(where=error.where, what=error.what, fix=error.fix)))
    rows, good = _log_rows(lines[1:], owner, version, at, faults)
    if chained:
        faults += chain_faults(lines, at=at, fix=owner.fix)
    return Log(rows=tuple(rows), lines=tuple(good), faults=tuple(faults))


def _log_version(head: object, owner: Owner[Any], *, at: str) -> int:
    if not isinstance(head, dict) or set(head) != {"format", "version"}:
        want = header(owner).decode()
        raise BadRecord(f"the first line must be {want}", where=at, fix=owner.fix)
    upgrade(
        head,
        Owner(
            format=owner.format,
            version=max(owner.version, 1),
            type=dict,
            fix=owner.fix,
            upgrades={n: lambda d: d for n in range(1, owner.version)},
        ),
        at=at,
    )
    return int(head["version"])


def _log_rows(
    lines: Sequence[bytes], owner: Owner[T], version: int, at: str, faults: list[Fault]
) -> tuple[list[T], list[bytes]]:
    rows: list[T] = []
    good: list[bytes] = []
    for number, line in enumerate(lines, start=2):
        where = f"{at}:{number}"
        try:
            doc = parse_json(line, at=where, fix=owner.fix)
            if not isinstance(doc, dict):
                raise BadRecord("want a JSON object", where=where, fix=owner.fix)
            for step in range(version, owner.version):
                doc = owner.upgrades[step](doc)
            rows.append(convert(doc, owner.type, at=where, fix=owner.fix))
            good.append(line)
        except BadRecord as error:
            faults.append(Fault(where=error.where, what=error.what, fix=error.fix))
    return rows, good


def chain_faults(lines: Sequence[bytes], *, at: str, fix: str) -> list[Fault]:
    """Rows whose ``prev`` is not the sha256 of the line before: an edit, a removal or a reordering."""
    out: list[Fault] = []
    for number in range(1, len(lines)):
        try:
            prev = json.loads(lines[number]).get("prev")
        except (ValueError, AttributeError, RecursionError):
            continue  # reported as an unreadable row already
        if prev != sha256(lines[number - 1]):
            what = f"prev does not match line {number}: a row was edited, removed or reordered"
            out.append(Fault(where=f"{at}:{number + 1}", what=what, fix=fix))
    return out
