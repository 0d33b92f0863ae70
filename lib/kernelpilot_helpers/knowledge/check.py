"""Does the index hold facts and our own words only? Every finding at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge import facts
from kernelpilot_helpers.knowledge.corpus import Source
from kernelpilot_helpers.knowledge.model import FIX, RECORDS, VOCABULARY, Record, Vocabulary
from kernelpilot_helpers.records import Fault

LONGEST_TEXT = 300
"""Characters that a label or a lesson stays below."""
UTC = r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z"
CLAIM = r"[0-9]+(\.[0-9]+)?(x|%)"
MINE = "scripts/refresh_pr_knowledge.py --help  # mine the facts anew"
MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[a-z]{2,}")
MOST_FAULTS = 20
PAGE_BYTES = 12_288
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
    return [*out, *_mined_faults(source, vocabulary)]


def _mined_faults(source: Source, vocabulary: Vocabulary | None) -> Iterator[Fault]:
    """Faults of the mined facts, at most ``MOST_FAULTS`` a file; an unreadable line ends its file."""
    seen: set[str] = set()
    for path, data in source.facts:
        told = 0
        try:
            for row in facts.raw(data, at=path):
                for what in _mined_row(row, seen, vocabulary):
                    told += 1
                    if told <= MOST_FAULTS:
                        yield Fault(where=f"{path} ({row.id})", what=what, fix=MINE)
                seen.add(row.id)
        except BadRecord as error:
            yield Fault(where=error.where, what=error.what, fix=MINE)
        if told > MOST_FAULTS:
            yield Fault(where=path, what=f"{told - MOST_FAULTS} more findings", fix=MINE)


def _mined_row(row: facts.Row, seen: set[str], vocabulary: Vocabulary | None) -> Iterator[str]:
    if row.id in seen:
        yield "id: stands twice"
    if not re.fullmatch(r"[\w.-]+/[\w.-]+(#[1-9][0-9]*|@[0-9a-f]{12})", row.id) or not row.id.startswith(row.repo):
        yield f"id: want owner/name#number or owner/name@sha12, got {row.id!r}"
    if not re.fullmatch("[0-9a-f]{40}", row.sha):
        yield f"sha: want 40 hex digits, got {row.sha!r}"
    if [w.casefold() for w in row.words] != sorted(w.casefold() for w in row.words):
        yield "words: not sorted; words in the order of a sentence are somebody's sentence"
    for word in (*row.words, *row.symbols, *row.context):
        if re.search(r"\s", word) or MAIL.search(word) or re.match(r"@\w", word):
            yield f"words: want single words without a name or an address, got {word!r}"
    yield from (_path_fault(path) for path in _paths(row) if _leaves(path))
    if len(row.label) >= LONGEST_TEXT or "\n" in row.label:
        yield f"label: want one line below {LONGEST_TEXT} characters, got {len(row.label)}"
    if vocabulary is not None:
        yield from _unknown(row, vocabulary)


def check_pages(folder: Path) -> list[Fault]:
    """Faults of the pages below an index's folder: too long to read whole, a dead link, somebody's address."""
    out = []
    for page in sorted(folder.rglob("*.md")):
        data = page.read_bytes()
        text = data.decode(errors="replace")
        if len(data) >= PAGE_BYTES:
            what = f"{len(data)} bytes: a page stays below {PAGE_BYTES}, so that it is read whole"
            out.append(Fault(where=str(page), what=what, fix="split it"))
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                out.append(Fault(where=str(page), what=f"link to {target}: nothing there", fix="mend the link"))
        if MAIL.search(text):
            out.append(Fault(where=str(page), what="holds an e-mail address", fix="remove it"))
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
    yield from (_path_fault(path) for path in _paths(record) if _leaves(path))
    if not record.kernel_files:
        yield "kernel_files: a record without a kernel is no evidence"
    yield from (
        f"claims: want a number like 1.5x or 20%, got {c!r}" for c in record.claims if not re.fullmatch(CLAIM, c)
    )


def _paths(record: Record | facts.Row) -> tuple[str, ...]:
    return (*record.kernel_files, *record.test_files, *record.bench_files)


def _leaves(path: str) -> bool:
    return path.startswith("/") or ".." in path.split("/") or bool(re.search(r"[\n\\]", path))


def _path_fault(path: str) -> str:
    return f"path: want one relative to the repository, got {path!r}"


def _unknown(record: Record | facts.Row, vocabulary: Vocabulary) -> Iterator[str]:
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
        yield from (f"symptoms: unknown topic {name!r}" for name in symptom.topics if name not in vocabulary.topics)
