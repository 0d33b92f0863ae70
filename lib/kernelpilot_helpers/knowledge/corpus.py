"""The committed index on disk: mined facts, lessons, vocabulary and pages below the bundle's knowledge folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import ToolMissing
from kernelpilot_helpers.knowledge import facts, lessons, page
from kernelpilot_helpers.knowledge.lessons import Files
from kernelpilot_helpers.knowledge.model import FIX, VOCABULARY, Record, Vocabulary
from kernelpilot_helpers.knowledge.page import Page

FACTS_VARIABLE = "KERNELPILOT_FACTS"
"""A folder of mined facts to use in place of the bundle's."""
NEAR_NAME = 0.7
LONG_NUMBER = 4


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """Every record by id, the pages by path, and the vocabulary."""

    records: tuple[Record, ...]
    vocabulary: Vocabulary
    pages: tuple[Page, ...] = ()


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of an index, where they came from, and their common sha256."""

    folder: str
    vocabulary_path: str
    vocabulary: bytes
    sha256: str
    facts: Files
    lessons: Files
    pages: Files
    """Paths below the folder."""


def bundle_folder() -> Path:
    """The bundle's ``knowledge`` folder, seen from this package: the tool is installed in place."""
    return Path(__file__).resolve().parents[3] / "knowledge"


def read(folder: Path | None = None, mined: Path | None = None) -> Source:
    """The files of an index, unparsed; facts from another folder when one is given, or named by the environment.

    Raises ToolMissing when there is no index, or no facts.
    """
    named = os.environ.get(FACTS_VARIABLE, "") if folder is None else ""
    folder = bundle_folder() if folder is None else folder
    data = folder / "data"
    vocabulary = data / "vocabulary.json"
    mined = mined or (Path(named) if named else data / "facts")
    if not vocabulary.is_file():
        raise _missing("the knowledge index is missing", vocabulary)
    found = _files(mined, "*.jsonl.gz")
    if not found:
        raise _missing("the knowledge index has no mined facts (*.jsonl.gz)", mined)
    ours = _files(data / "lessons", "*.jsonl")
    written = tuple((str(Path(path).relative_to(folder)), text) for path, text in _files(folder, "**/*.md"))
    words = records.read_bytes(vocabulary, fix=FIX)
    named_parts = [*((Path(path).name, part) for path, part in (*found, *ours)), *written]
    parts = [words, *(part for name, data in named_parts for part in (name.encode(), data))]
    digest = hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    return Source(
        folder=str(folder),
        vocabulary_path=str(vocabulary),
        vocabulary=words,
        sha256=digest,
        facts=found,
        lessons=ours,
        pages=written,
    )


def _missing(what: str, where: Path) -> ToolMissing:
    return ToolMissing(
        what, where=str(where), fix=f"{FIX} in the bundle, or clone KernelPilot again and run ./install.sh"
    )


def _files(folder: Path, glob: str) -> Files:
    return tuple((str(path), records.read_bytes(path, fix=FIX)) for path in sorted(folder.glob(glob)) if path.is_file())


def load(source: Source) -> Corpus:
    """Parse an index; a lesson of ours is laid over the mined record of the same id and commit.

    Raises BadRecord that names the file and the line of the first fault.
    """
    vocabulary = records.parse(source.vocabulary, VOCABULARY, at=source.vocabulary_path)
    mined = {record.id: record for path, data in source.facts for record in facts.rows(data, at=path)}
    merged = lessons.lay_over(mined, source.lessons)
    return Corpus(
        records=tuple(merged[name] for name in sorted(merged)),
        vocabulary=vocabulary,
        pages=tuple(page.parsed(path, data) for path, data in source.pages),
    )


def slip(typed: str, known: str) -> bool:
    """True when ``typed`` is this id with one slip: a digit of a long number, or a few letters of the repository.

    A neighbour in number is another pull request, so a short number is never taken for one.
    """
    import difflib  # noqa: PLC0415 - only on the way out

    (repo, _, number), (known_repo, _, known_number) = typed.partition("#"), known.partition("#")
    if number == known_number:
        return difflib.SequenceMatcher(None, repo.split("/")[-1], known_repo.split("/")[-1]).ratio() >= NEAR_NAME
    if repo not in (known_repo, known_repo.split("/")[-1]) or min(len(number), len(known_number)) < LONG_NUMBER:
        return False
    if len(number) == len(known_number):
        return sum(a != b for a, b in zip(number, known_number, strict=True)) == 1
    short, long = sorted((number, known_number), key=len)
    return any(long[:i] + long[i + 1 :] == short for i in range(len(long)))
