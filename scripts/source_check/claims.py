"""What a knowledge tree says of others' code, as a list of things to look up."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord, Refused, ToolMissing
from kernelpilot_helpers.knowledge import check_facts, page_parts
from kernelpilot_helpers.knowledge.model import FIX, LESSONS, Lesson
from kernelpilot_helpers.knowledge.page_parts import Ref


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A source reference and where it stands."""

    where: str
    ref: Ref


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """What looks like a claim and cannot be read as one: a failure, never passed over."""

    kind: str
    """``ref`` or ``lesson``."""
    where: str
    what: str
    why: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson, where it stands, and what its record is called upstream."""

    where: str
    lesson: Lesson

    @property
    def repo(self) -> str:
        """``owner/name`` of its id."""
        return self.lesson.id.split("#")[0].split("@")[0]


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A page: its lines, and the commits and records that it cites."""

    where: str
    text: str
    shas: tuple[tuple[str, str], ...]
    """(repository, commit) of every reference and record id in it."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """Everything to look up."""

    refs: tuple[Said, ...]
    lessons: tuple[Told, ...]
    pages: tuple[Written, ...]
    unread: tuple[Unread, ...]
    open_files: dict[str, frozenset[str]]
    """Id of an open candidate -> its files: its head alone does not show the whole change."""


class _File(msgspec.Struct, frozen=True):
    path: str


class _Row(msgspec.Struct, frozen=True):
    id: str
    sha: str
    how: str = ""
    files: tuple[_File, ...] = ()


def read(tree: Path, facts: Path) -> Claims:
    """Collect from pages and lessons. Raises BadRecord for a file that cannot be read, Refused where none is."""
    if not tree.is_dir():
        raise Refused("no such folder", where=str(tree), fix="python scripts/verify_sources.py --knowledge knowledge")
    shas, open_files = _mined(facts)
    refs: list[Said] = []
    unread: list[Unread] = []
    pages = []
    for path in sorted(tree.rglob("*.md")):
        where, text = path.relative_to(tree).as_posix(), _text(path)
        page = page_parts.parse(where, text)
        for number, written, ref, _ in page_parts.references(text):
            at = f"{where}:{number}"
            if ref is None:
                why = "no source reference: want owner/name@SHA12:path#symbol"
                unread.append(Unread(kind="ref", where=at, what=written, why=why))
            else:
                refs.append(Said(where=at, ref=ref))
        if not page.generated:
            pages.append(Written(where=where, text=text, shas=_cited(text, shas)))
    lessons = _lessons(tree / "data" / "lessons", unread)
    if not refs and not lessons and not unread:
        raise Refused("no reference and no lesson to look up", where=str(tree), fix="git checkout -- knowledge")
    return Claims(
        refs=tuple(refs), lessons=tuple(lessons), pages=tuple(pages), unread=tuple(unread), open_files=open_files
    )


def _text(path: Path) -> str:
    try:
        return records.read_bytes(path, fix=FIX).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRecord(f"not UTF-8: {error}", where=str(path), fix=f"git checkout -- {path}, or mend it") from None


def _lessons(folder: Path, unread: list[Unread]) -> list[Told]:
    """Lessons that can be looked up; the others go to ``unread``."""
    out = []
    for path in sorted(folder.glob("*.jsonl")):
        log = records.parse_log(records.read_bytes(path, fix=FIX), LESSONS, at=f"data/lessons/{path.name}")
        for fault in log.faults:
            unread.append(Unread(kind="lesson", where=fault.where, what="a line", why=fault.what))
        for row in log.rows:
            where, why = f"data/lessons/{path.name} ({row.id})", ""
            if not re.fullmatch(r"[\w.-]+/[\w.-]+(?:#[1-9][0-9]*|@[0-9a-f]{12})", row.id):
                why = "id: want owner/name#number or owner/name@sha12"
            elif not re.fullmatch("[0-9a-f]{40}", row.sha):
                why = "sha: want 40 hex digits"
            if why:
                unread.append(Unread(kind="lesson", where=where, what=row.sha[:40], why=why))
            else:
                out.append(Told(where=where, lesson=row))
    return out


def _cited(text: str, shas: dict[str, str]) -> tuple[tuple[str, str], ...]:
    found = [(ref.repo, ref.sha12) for ref in page_parts.refs(text)]
    for name in page_parts.ids(text):
        repo, at, sha12 = name.partition("@")
        found.append((repo, sha12) if at else (name.split("#")[0], shas.get(name, "")))
    return tuple(dict.fromkeys((repo, sha) for repo, sha in found if sha))


def _mined(folder: Path) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """Sha of every record, and the files of those that are open. Raises BadRecord, ToolMissing without facts."""
    shas: dict[str, str] = {}
    open_files: dict[str, frozenset[str]] = {}
    decoder = msgspec.json.Decoder(_Row)
    found = sorted(folder.glob("*.jsonl.gz"))
    if not found:
        raise ToolMissing("no mined facts (*.jsonl.gz)", where=str(folder), fix=FIX)
    for path in found:
        lines = check_facts.lines_of(records.read_bytes(path, fix=FIX), at=str(path))
        for number, line in enumerate(lines, start=2):
            try:
                row = decoder.decode(line)
            except (msgspec.MsgspecError, ValueError) as error:
                raise BadRecord(f"row: {error}", where=f"{path}:{number}", fix=FIX) from None
            shas[row.id] = row.sha
            if row.how == "open":
                open_files[row.id] = frozenset(file.path for file in row.files)
    return shas, open_files
