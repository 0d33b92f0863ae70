"""Lessons: our own words, one file a part, laid over the mined record of the same id."""

from __future__ import annotations

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge.model import FIX, LESSONS, Lesson, Record

Files = tuple[tuple[str, bytes], ...]
"""Path and bytes of each file."""


def parsed(files: Files) -> list[tuple[str, Lesson]]:
    """Every lesson with ``file:line``. Raises BadRecord that names the file and the line of the first fault."""
    out: list[tuple[str, Lesson]] = []
    for path, data in files:
        log = records.parse_log(data, LESSONS, at=path)
        for fault in log.faults:
            raise BadRecord(fault.what, where=fault.where, fix=FIX)
        out += [(f"{path}:{line}", lesson) for line, lesson in enumerate(log.rows, start=2)]
    return out


def lay_over(mined: dict[str, Record], files: Files) -> dict[str, Record]:
    """The mined records by id, with label and lesson of ours where one was read at the same commit.

    A lesson without its record, or read at another commit, says nothing about this one: it is left out, and
    ``check`` names it. Raises BadRecord.
    """
    out = dict(mined)
    for _, lesson in parsed(files):
        record = mined.get(lesson.id)
        if record is not None and record.sha == lesson.sha:
            out[lesson.id] = msgspec.structs.replace(
                record, label=lesson.label, lesson=lesson.lesson, read=lesson.read, techniques=lesson.techniques
            )
    return out
