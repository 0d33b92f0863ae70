"""Does the index hold facts and our own words only? Every finding at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge import check_facts, check_lessons, check_repos
from kernelpilot_helpers.knowledge.check_facts import MOST_FAULTS, Counts
from kernelpilot_helpers.knowledge.check_lessons import Mined
from kernelpilot_helpers.knowledge.check_tree import check_pages
from kernelpilot_helpers.knowledge.corpus import Source
from kernelpilot_helpers.knowledge.model import VOCABULARY, Vocabulary
from kernelpilot_helpers.records import Fault

__all__ = ["Checked", "check", "check_pages", "checked"]

MINE = "scripts/refresh_pr_knowledge.py --help  # mine the facts anew"


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole check found."""

    faults: tuple[Fault, ...]
    records: int
    """Ids among the rows that can be read; where there is no fault, the records that a search has."""


def checked(source: Source) -> Checked:
    """Every fault of the index and of its pages; the corpus is not loaded to be counted."""
    mined: dict[str, Mined] = {}
    faults = (*_faults(source, mined), *check_pages(source))
    return Checked(faults=faults, records=len(mined))


def check(source: Source) -> list[Fault]:
    """Every fault of vocabulary, mined facts and lessons; an empty list is a sound index. Pages: ``check_pages``."""
    return _faults(source, {})


def _faults(source: Source, mined: dict[str, Mined]) -> list[Fault]:
    out: list[Fault] = []
    try:
        vocabulary: Vocabulary | None = records.parse(source.vocabulary, VOCABULARY, at=source.vocabulary_path)
    except BadRecord as error:
        vocabulary = None
        out.append(Fault(where=error.where, what=error.what, fix=error.fix))
    if vocabulary is not None:
        out += [Fault(where=source.vocabulary_path, what=w, fix="edit it") for w in _vocabulary_faults(vocabulary)]
    out += _mined_faults(source, vocabulary, mined)
    paths = (PurePosixPath(path.replace("\\", "/")) for path, _ in source.pages)
    techniques = frozenset(path.stem for path in paths if path.parent == PurePosixPath("techniques"))
    where = str(Path(source.folder) / "data" / "lessons")
    return [*out, *check_lessons.faults(source.lessons, mined, techniques, folder=where)]


def _mined_faults(source: Source, vocabulary: Vocabulary | None, mined: dict[str, Mined]) -> Iterator[Fault]:
    """Faults of the mined facts, at most ``MOST_FAULTS`` a file, and of their counts. Fills ``mined``."""
    counts: dict[str, Counts] = {}
    cases: dict[str, str] = {}
    for path, data in source.facts:
        try:
            found = check_facts.read(path, data, vocabulary)
        except BadRecord as error:
            yield Fault(where=error.where, what=error.what, fix=MINE)
            continue
        whats = list(found.faults)
        for name in found.mined:
            other = cases.setdefault(name.casefold(), name)
            if name in mined:
                whats.append((name, "id: stands in another file too"))
            elif other != name:
                whats.append((name, f"id: {other} differs from it only in upper and lower case"))
        for name, what in whats[:MOST_FAULTS]:
            yield Fault(where=f"{path}:{name}" if name.isdigit() else f"{path} ({name})", what=what, fix=MINE)
        if len(whats) > MOST_FAULTS:
            yield Fault(where=path, what=f"{len(whats) - MOST_FAULTS} more findings", fix=MINE)
        mined.update(found.mined)
        counts[found.repo] = found.counts
    if source.facts:
        folder = Path(source.facts[0][0]).parent
        for what, fix in check_repos.faults(folder, counts):
            yield Fault(where=str(folder / check_repos.NAME), what=what, fix=fix)


def _vocabulary_faults(vocabulary: Vocabulary) -> Iterator[str]:
    for symptom in vocabulary.symptoms:
        if not symptom.says or not (symptom.look_for or symptom.topics):
            yield f"symptoms: {symptom.why!r} says nothing or leads nowhere"
        for name in symptom.look_for:
            if name not in vocabulary.mechanisms:
                yield f"symptoms: {symptom.says[0] if symptom.says else ''!r} looks for unknown mechanism {name!r}"
        yield from (f"symptoms: unknown topic {name!r}" for name in symptom.topics if name not in vocabulary.topics)
