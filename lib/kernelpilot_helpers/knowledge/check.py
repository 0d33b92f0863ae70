"""Does the index hold facts and our own words only? Every finding at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge.corpus import Source
from kernelpilot_helpers.knowledge.model import FIX, RECORDS, VOCABULARY, Record, Vocabulary
from kernelpilot_helpers.records import Fault

LONGEST_TEXT = 300
"""Characters that a label or a lesson stays below."""
UTC = r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z"
CLAIM = r"[0-9]+(\.[0-9]+)?(x|%)"
EDIT = "edit scripts/knowledge_notes.json, then run scripts/pick_knowledge.py"


def check(source: Source) -> list[Fault]:
    """Every fault of schema, order, length and spelling; an empty list is a sound index."""
    log = records.parse_log(source.records, RECORDS, at=source.records_path)
    out = [Fault(where=f.where, what=f.what, fix=FIX) for f in log.faults]
    try:
        vocabulary: Vocabulary | None = records.parse(source.vocabulary, VOCABULARY, at=source.vocabulary_path)
    except BadRecord as error:
        vocabulary = None
        out.append(Fault(where=error.where, what=error.what, fix=error.fix))
    seen: set[str] = set()
    for record in log.rows:
        where = f"{source.records_path} ({record.id})"
        if record.id in seen:
            out.append(Fault(where=where, what="id: stands twice", fix=EDIT))
        seen.add(record.id)
        out += [Fault(where=where, what=what, fix=EDIT) for what in _record_faults(record)]
        if vocabulary is not None:
            out += [Fault(where=where, what=what, fix=EDIT) for what in _unknown(record, vocabulary)]
    if [r.id for r in log.rows] != sorted(r.id for r in log.rows):
        out.append(Fault(where=source.records_path, what="records are not sorted by id", fix=EDIT))
    if vocabulary is not None:
        out += [Fault(where=source.vocabulary_path, what=w, fix="edit it") for w in _vocabulary_faults(vocabulary)]
    return out


def _record_faults(record: Record) -> Iterator[str]:
    if record.id != f"{record.repo}#{record.pr}" or not re.fullmatch(r"[\w.-]+/[\w.-]+#[1-9][0-9]*", record.id):
        yield f"id: want owner/name#number of repo and pr, got {record.id!r}"
    if not re.fullmatch("[0-9a-f]{40}", record.sha):
        yield f"sha: want 40 hex digits, got {record.sha!r}"
    if not re.fullmatch(UTC, record.merged_at):
        yield f"merged_at: want UTC like 2025-01-31T23:59:59Z, got {record.merged_at!r}"
    for name in ("label", "lesson"):
        text = getattr(record, name)
        if not text.strip() or len(text) >= LONGEST_TEXT or "\n" in text:
            yield f"{name}: want one line of 1 to {LONGEST_TEXT - 1} characters, got {len(text)}"
    yield from _foreign(record)


def _foreign(record: Record) -> Iterator[str]:
    """What could carry somebody's sentence, name or machine."""
    if list(record.words) != sorted(set(record.words)):
        yield "words: not sorted and unique; words in the order of a sentence are somebody's sentence"
    for name in ("words", "symbols", "kinds", "archs", "families"):
        for item in getattr(record, name):
            if not item or re.search(r"[\s@]", item):
                yield f"{name}: want single words without '@', got {item!r}"
    for path in (*record.kernel_files, *record.test_files, *record.bench_files):
        if path.startswith("/") or ".." in path.split("/") or re.search(r"[\n\\]", path):
            yield f"path: want one relative to the repository, got {path!r}"
    if not record.kernel_files:
        yield "kernel_files: a record without a kernel is no evidence"
    yield from (
        f"claims: want a number like 1.5x or 20%, got {c!r}" for c in record.claims if not re.fullmatch(CLAIM, c)
    )


def _unknown(record: Record, vocabulary: Vocabulary) -> Iterator[str]:
    for name, known in (
        ("diff_terms", vocabulary.mechanisms),
        ("families", vocabulary.families),
        ("archs", vocabulary.archs),
    ):
        for item in getattr(record, name):
            if item not in known:
                yield f"{name}: {item!r} does not stand in the vocabulary"


def _vocabulary_faults(vocabulary: Vocabulary) -> Iterator[str]:
    for symptom in vocabulary.symptoms:
        if not symptom.says or not symptom.look_for:
            yield f"symptoms: {symptom.why!r} says nothing or leads nowhere"
        for name in symptom.look_for:
            if name not in vocabulary.mechanisms:
                yield f"symptoms: {symptom.says[0] if symptom.says else ''!r} looks for unknown mechanism {name!r}"
