"""The committed index on disk: records.jsonl and vocabulary.json below the bundle's knowledge/data."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord, ToolMissing
from kernelpilot_helpers.knowledge import facts
from kernelpilot_helpers.knowledge.model import FIX, RECORDS, VOCABULARY, Record, Vocabulary

FACTS_VARIABLE = "KERNELPILOT_FACTS"
"""A folder of mined facts to use in place of the bundle's."""
NEAR_NAME = 0.7
LONG_NUMBER = 4


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """Every record, in the order of the file, and the vocabulary."""

    records: tuple[Record, ...]
    vocabulary: Vocabulary


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of an index, where they came from, and their common sha256."""

    records_path: str
    records: bytes
    vocabulary_path: str
    vocabulary: bytes
    sha256: str
    facts: tuple[tuple[str, bytes], ...] = ()
    """Path and bytes of each file of mined facts."""


def bundle_folder() -> Path:
    """The bundle's ``knowledge`` folder, seen from this package: the tool is installed in place."""
    return Path(__file__).resolve().parents[3] / "knowledge"


def read(folder: Path | None = None, mined: Path | None = None) -> Source:
    """The files of an index, unparsed; facts from another folder when one is given, or named by the environment.

    Raises ToolMissing when there is no index.
    """
    data = (bundle_folder() if folder is None else folder) / "data"
    paths = data / "records.jsonl", data / "vocabulary.json"
    for path in paths:
        if not path.is_file():
            fix = f"{FIX} in the bundle, or clone KernelPilot again and run ./install.sh"
            raise ToolMissing("the knowledge index is missing", where=str(path), fix=fix)
    found = [records.read_bytes(path, fix=FIX) for path in paths]
    named = os.environ.get(FACTS_VARIABLE, "") if folder is None else ""
    mined = mined or (Path(named) if named else data / "facts")
    files = tuple((str(path), records.read_bytes(path, fix=FIX)) for path in sorted(mined.glob("*.jsonl.gz")))
    parts = [*found, *(part for _, part in files)]
    digest = hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    return Source(
        records_path=str(paths[0]),
        records=found[0],
        vocabulary_path=str(paths[1]),
        vocabulary=found[1],
        sha256=digest,
        facts=files,
    )


def load(source: Source) -> Corpus:
    """Parse an index; a record of ours is laid over the mined one of the same id.

    Raises BadRecord that names the file and the line of the first fault.
    """
    log = records.parse_log(source.records, RECORDS, at=source.records_path)
    for fault in log.faults:
        raise BadRecord(fault.what, where=fault.where, fix=FIX)
    vocabulary = records.parse(source.vocabulary, VOCABULARY, at=source.vocabulary_path)
    mined = {record.id: record for path, data in source.facts for record in facts.rows(data, at=path)}
    merged = mined | {ours.id: _laid_over(mined.get(ours.id), ours) for ours in log.rows}
    return Corpus(records=tuple(merged[name] for name in sorted(merged)), vocabulary=vocabulary)


def _laid_over(mined: Record | None, ours: Record) -> Record:
    if mined is None:
        return ours
    return msgspec.structs.replace(
        ours, dtypes=mined.dtypes, context=mined.context, n_files=mined.n_files, knet=mined.knet, words=mined.words
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
