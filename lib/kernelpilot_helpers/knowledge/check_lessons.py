"""Are the lessons ours, readable, and about records that exist?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge import page_parts
from kernelpilot_helpers.knowledge.check_foreign import in_facts
from kernelpilot_helpers.knowledge.check_speed import GPU, figure_of
from kernelpilot_helpers.knowledge.model import LESSONS, Lesson
from kernelpilot_helpers.records import Fault

LABEL = range(30, 121)
"""Characters of a label."""
LESSON = range(200, 701)
OLDER = "general.jsonl"
"""Holds lessons that were notes before; they may be shorter."""
OLDER_LESSON = range(60, 701)
EDIT = "edit the line, then run kernelpilot knowledge check"
MOST_LISTED = 40
"""Files that a row of the facts lists; a change of more names only some."""


class Mined(msgspec.Struct, frozen=True, kw_only=True):
    """What a lesson is held against."""

    sha: str
    files: frozenset[str]
    """Empty where the record does not list all of them."""


def faults(
    files: tuple[tuple[str, bytes], ...], mined: Mapping[str, Mined], techniques: frozenset[str], *, folder: str
) -> list[Fault]:
    """Faults of every file of lessons: lines, order, records, lengths, paths, pages; and of there being none."""
    out: list[Fault] = []
    seen: dict[str, str] = {}
    for path, data in files:
        try:
            log = records.parse_log(data, LESSONS, at=path)
        except BadRecord as error:
            out.append(Fault(where=error.where, what=error.what, fix=error.fix))
            continue
        out += [Fault(where=fault.where, what=fault.what, fix=EDIT) for fault in log.faults]
        if not log.rows:
            out.append(Fault(where=path, what="holds no lesson", fix=f"git checkout -- {path}"))
        names = [lesson.id for lesson in log.rows]
        if names != sorted(names):
            out.append(Fault(where=path, what="lessons are not sorted by id", fix=f"sort {path}, the header first"))
        older = PurePath(path).name == OLDER
        for lesson in log.rows:
            where = f"{path} ({lesson.id})"
            if lesson.id in seen:
                what = f"id: stands in {seen[lesson.id]} too"
                out.append(Fault(where=where, what=what, fix="keep the better one"))
            seen[lesson.id] = path
            whats = [*_record(lesson, mined), *_texts(lesson, OLDER_LESSON if older else LESSON)]
            out += [Fault(where=where, what=what, fix=EDIT) for what in whats]
        out += _techniques(path, log.rows, techniques)
    if not files:
        out.append(Fault(where=folder, what="no lessons (*.jsonl)", fix="git checkout -- knowledge/data/lessons"))
    return out


def _techniques(path: str, rows: Sequence[Lesson], techniques: frozenset[str]) -> Iterator[Fault]:
    """One fault for each page that is not there, however many lessons name it."""
    named = [(name, lesson.id) for lesson in rows for name in lesson.techniques if name not in techniques]
    first = dict(reversed(named))
    for name, count in sorted(Counter(name for name, _ in named).items()):
        what = f"techniques: no page techniques/{name}.md, which {count} of its lessons name"
        yield Fault(where=f"{path} ({first[name]})", what=what, fix=EDIT)


def _record(lesson: Lesson, mined: Mapping[str, Mined]) -> Iterator[str]:
    yield from _listed(lesson)
    if not re.fullmatch("[0-9a-f]{40}", lesson.sha):
        yield f"sha: want 40 hex digits, got {lesson.sha!r}"
        return
    record = mined.get(lesson.id)
    if record is None:
        yield "id: no mined record has it"
        return
    if record.sha != lesson.sha:
        yield f"sha: read at {lesson.sha}, the record is at {record.sha}; read it again"
    if record.files:
        yield from (f"read: {path} is no file of that change" for path in lesson.read if path not in record.files)


def _listed(lesson: Lesson) -> Iterator[str]:
    if not lesson.read:
        yield "read: name the paths that were opened"
    for path in lesson.read:
        if re.match(r"[/~]|\w+:", path) or {"", ".", ".."} & set(path.split("/")) or in_facts(path) or "\\" in path:
            yield f"read: want a path relative to the repository, got {path!r}"
    for path, count in Counter(lesson.read).items():
        if count > 1:
            yield f"read: {path} stands twice"
    for slug, count in Counter(lesson.techniques).items():
        if count > 1:
            yield f"techniques: {slug} stands twice"


def _texts(lesson: Lesson, length: range) -> Iterator[str]:
    for name, text, want in (("label", lesson.label, LABEL), ("lesson", lesson.lesson, length)):
        if len(text) not in want or text != text.strip() or "\n" in text:
            yield f"{name}: want one line of {want[0]} to {want[-1]} characters, got {len(text)}"
        if what := in_facts(text):
            yield f"{name}: holds {what}"
    figure = figure_of(lesson.label) or figure_of(lesson.lesson)
    there = (
        ("source", bool(page_parts.ids(lesson.lesson) or page_parts.refs(lesson.lesson))),
        ("GPU", bool(GPU.search(lesson.lesson))),
    )
    missing = [name for name, found in there if not found]
    if figure and missing:
        yield f"lesson: figure of speed {figure!r} without its {' and '.join(missing)}"
