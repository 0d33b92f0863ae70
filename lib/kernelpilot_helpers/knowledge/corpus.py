"""The committed index on disk: records.jsonl and vocabulary.json below the bundle's knowledge/data."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord, ToolMissing
from kernelpilot_helpers.knowledge.model import FIX, RECORDS, VOCABULARY, Record, Vocabulary, url

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


def bundle_folder() -> Path:
    """The bundle's ``knowledge`` folder, seen from this package: the tool is installed in place."""
    return Path(__file__).resolve().parents[3] / "knowledge"


def read(folder: Path | None = None) -> Source:
    """The files of an index, unparsed. Raises ToolMissing when there is none."""
    data = (bundle_folder() if folder is None else folder) / "data"
    paths = data / "records.jsonl", data / "vocabulary.json"
    for path in paths:
        if not path.is_file():
            fix = f"{FIX} in the bundle, or clone KernelPilot again and run ./install.sh"
            raise ToolMissing("the knowledge index is missing", where=str(path), fix=fix)
    found = [records.read_bytes(path, fix=FIX) for path in paths]
    digest = hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in found)).hexdigest()
    return Source(
        records_path=str(paths[0]),
        records=found[0],
        vocabulary_path=str(paths[1]),
        vocabulary=found[1],
        sha256=digest,
    )


def load(source: Source) -> Corpus:
    """Parse an index. Raises BadRecord that names the file and the line of the first fault."""
    log = records.parse_log(source.records, RECORDS, at=source.records_path)
    for fault in log.faults:
        raise BadRecord(fault.what, where=fault.where, fix=FIX)
    vocabulary = records.parse(source.vocabulary, VOCABULARY, at=source.vocabulary_path)
    return Corpus(records=log.rows, vocabulary=vocabulary)


def find(corpus: Corpus, name: str) -> Record:
    """The record of an id, a short id (``DeepGEMM#86``), an address, or a commit. Raises BadRecord."""
    wanted = name.strip().lower().rstrip("/")
    for record in corpus.records:
        forms = {record.id, record.id.split("/")[-1], url(record), record.sha}
        if wanted in {form.lower() for form in forms}:
            return record
        if re.fullmatch("[0-9a-f]{8,40}", wanted) and record.sha.startswith(wanted):
            return record
    near = next((record.id for record in corpus.records if _slip(wanted, record.id.lower())), "")
    fix = f"kernelpilot knowledge show {shlex.quote(near)}" if near else "kernelpilot knowledge search TEXT"
    what = f"no record {name[:120]!r}: the index holds {len(corpus.records)} pull requests"
    raise BadRecord(what, where="knowledge", fix=fix)


def _slip(typed: str, known: str) -> bool:
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
