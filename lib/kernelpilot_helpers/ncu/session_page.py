"""The session page, tables stacked under titles, as the session."""

from __future__ import annotations

from kernelpilot_helpers.ncu import rep_session, sheet, sniff
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import File, Report, Session

_TABLES = ("Launch Attribute", "Session Attribute", "Device Attribute")
MAX_TEXT = 64 * 1024


def parse(data: bytes, *, name: str, sha256: str) -> Report:
    """The session of a session page; it has no launches. Raises RefusedInput with what was found instead."""
    sniff.binary(data[:4096])
    text = sniff.decode(data)
    found: dict[str, str] = {}
    table = ignored = 0
    for _, record in sheet.records(text):
        cells = sheet.split(record, ",") or []
        if cells and cells[0] in _TABLES:
            table += 1
        elif table and len(cells) > 1:
            found.setdefault(cells[0].strip(), cells[1].strip()[:MAX_TEXT])
        elif table and record.startswith("=="):
            ignored += 1
    if not table:
        raise sniff.no_table(text)
    if not found:
        raise RefusedInput("session.truncated", "a session page without an attribute")
    command = found.get("Profiler Command Line", "")
    major, minor = found.get("compute_capability_major", ""), found.get("compute_capability_minor", "")
    session = Session(
        gpu=found.get("display_name", ""),
        cc=f"{major}.{minor}" if major and minor else "",
        driver=found.get("Display Driver Version", ""),
        cuda=found.get("CUDA Version", ""),
        ncu=found.get("Nsight Compute Target", "").split(" ", 1)[0],
        clocks=rep_session.option(command, "clock-control"),
        cache=rep_session.option(command, "cache-control"),
        replay=rep_session.option(command, "replay-mode"),
        command=command,
        host=found.get("Target Name", "") or found.get("Host Name", ""),
    )
    file = File(name=name, bytes=len(data), sha256=sha256, form="session")
    return Report(files=(file,), launches=(), session=session, ignored_lines=ignored)


def is_header(record: str) -> bool:
    """Whether a line is the head line of one of the page's tables."""
    return record.startswith(tuple(f'"{name}","' for name in _TABLES))
