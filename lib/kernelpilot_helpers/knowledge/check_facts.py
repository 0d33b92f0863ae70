"""Mined facts: does each row hold what docs/formats/knowledge-facts.md promises, and is every row still there?"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge.check_foreign import in_facts
from kernelpilot_helpers.knowledge.check_lessons import MOST_LISTED, Mined
from kernelpilot_helpers.knowledge.facts import FORMAT, VERSION
from kernelpilot_helpers.knowledge.mined import Facts
from kernelpilot_helpers.knowledge.model import Vocabulary

LONGEST_TEXT = 300
"""Characters that a mined label stays below."""
MOST_FAULTS = 20
MOST_NAMES, MOST_KERNELS = 16, 24
TIERS = ("A", "B", "C", "D", "E", "P", "")
HOW = ("squash", "merge", "direct", "open", "api")
LANDED = ("squash", "merge", "api")
ARCHS = frozenset(
    f"sm{number}"
    for number in (
        *(10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 73, 75, 80, 86, 87, 88, 89, 90),
        *(100, 101, 103, 110, 120, 121),
    )
)
"""Compute capabilities that CUDA has had, and 73, which code names though no product has it."""
_WORDS = re.compile(r"(?:[a-z0-9_.+*-]+(?:\n|$))*")
_NAMES = re.compile(r"(?:[A-Za-z_~][\w.:~()]*(?:\n|$))*")
_PATHS = re.compile(
    r"(?:(?![/~]|[A-Za-z]:|\w+:/)(?!(?:[^\n]*/)?\.\.?(?:/|\n|$))[^\n\\\x00-\x1f\x7f@]*[^\n\\\x00-\x1f\x7f@/](?:\n|$))*"
)
_CLAIM = re.compile(r"\d{1,4}(?:\.\d{1,3})?(?:x|%|TFLOPS|GB/s|TB/s)")
_EVIDENCE = re.compile(r"(?:(?:arch:sm\d+|(?:dtype|family|dsl):[a-z0-9-]+)(?:\n|$))*")
_SAYS = frozenset(("paths", "symbols", "title", "lines", "files", "around", "mechanisms", "texts"))


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Of one repository: what repos.json must say of it."""

    records: int
    how: dict[str, int]
    tiers: dict[str, int]
    selected_prs: int


class File(msgspec.Struct, kw_only=True):
    """What was found in one file of facts."""

    faults: list[tuple[str, str]]
    """(id or line, what)."""
    mined: dict[str, Mined]
    repo: str = ""
    counts: Counts = Counts(records=0, how={}, tiers={}, selected_prs=0)


class _Names(msgspec.Struct, frozen=True):
    id: str
    repo: str


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int


_ROW = msgspec.json.Decoder(Facts)
_NAMED = msgspec.json.Decoder(_Names)


def lines_of(data: bytes, *, at: str) -> list[bytes]:
    """Lines of a gzip file without its header. Raises BadRecord for one that is empty, damaged or without header."""
    fix = "git checkout -- knowledge/data"
    if not data:
        raise BadRecord("is an empty file", where=at, fix=fix)
    try:
        lines = gzip.decompress(data).split(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        raise BadRecord(f"is no gzip file: {error}", where=at, fix=fix) from None
    try:
        header = msgspec.json.decode(lines[0], type=_Header)
    except (msgspec.MsgspecError, ValueError):
        raise BadRecord(f"no header: want {FORMAT!r}, version {VERSION}", where=f"{at}:1", fix=fix) from None
    if (header.format, header.version) != (FORMAT, VERSION):
        what = f"header: want {FORMAT!r}, version {VERSION}, got {header.format[:60]!r}, version {header.version}"
        raise BadRecord(what, where=f"{at}:1", fix=fix)
    return [line for line in lines[1:] if line.strip()]


def names(data: bytes, *, at: str) -> list[tuple[str, str]]:
    """(id, repository) of each row that can be read. Raises BadRecord for a file that cannot."""
    out = []
    for line in lines_of(data, at=at):
        try:
            named = _NAMED.decode(line)
        except (msgspec.MsgspecError, ValueError):
            continue
        out.append((named.id, named.repo))
    return out


def read(path: str, data: bytes, vocabulary: Vocabulary | None) -> File:
    """Every fault of one file; a row that cannot be read does not hide the next. Raises BadRecord."""
    out = File(faults=[], mined={})
    how: Counter[str] = Counter()
    tiers: Counter[str] = Counter()
    before: tuple[bool, int, str] = (False, 0, "")
    selected = 0
    called = Path(path).name
    for number, line in enumerate(lines_of(data, at=path), start=2):
        try:
            row = _ROW.decode(line)
        except (msgspec.MsgspecError, ValueError) as error:
            out.faults.append((str(number), f"row: {error}"))
            continue
        order = (row.pr is None, row.pr or 0, row.id)
        if order < before:
            out.faults.append((row.id, "rows are not sorted: pull requests by number, then commits by id"))
        before = order
        if row.id in out.mined:
            out.faults.append((row.id, "id: stands twice"))
        out.repo = out.repo or row.repo
        if row.repo != out.repo or called != f"{row.repo.replace('/', '+')}.jsonl.gz":
            out.faults.append((row.id, f"repo: {row.repo} does not belong in this file"))
        out.faults += [(row.id, what) for what in _row(row, vocabulary)]
        if b"\\" in line and any(in_facts(text) for text in _texts(row)):
            out.faults.append((row.id, "holds a control character"))
        files = frozenset(file.path for file in row.files)
        out.mined[row.id] = Mined(sha=row.sha, files=files if len(files) < MOST_LISTED else frozenset())
        how[row.how] += 1
        tiers[row.tier or "background"] += row.how != "open"
        selected += row.how in LANDED and row.tier in TIERS[:5]
    told = {name: count for name, count in tiers.items() if count}
    out.counts = Counts(records=sum(how.values()), how=dict(how), tiers=told, selected_prs=selected)
    return out


def _texts(row: Facts) -> tuple[str, ...]:
    return (row.id, row.label, row.why, *row.words, *row.symbols, *row.context, *row.claims)


def _row(row: Facts, vocabulary: Vocabulary | None) -> Iterator[str]:
    name = f"{row.repo}#{row.pr}" if row.pr is not None else f"{row.repo}@{row.sha[:12]}"
    if row.id != name or not re.fullmatch(r"[\w.-]+/[\w.-]+", row.repo):
        yield f"id: want owner/name#number or owner/name@sha12, got {row.id!r}"
    if not re.fullmatch("[0-9a-f]{40}", row.sha):
        yield f"sha: want 40 hex digits, got {row.sha!r}"
    if not _is_utc(row.merged_at):
        yield f"merged_at: want a time like 2025-01-21T14:21:54Z, got {row.merged_at!r}"
    if row.tier not in TIERS:
        yield f"tier: want one of A to E, P or empty, got {row.tier!r}"
    if row.how not in HOW:
        yield f"how: want one of {', '.join(HOW)}, got {row.how!r}"
    if (row.pr is None) != (row.how == "direct"):
        yield f"pr: {row.pr} does not go with {row.how!r}"
    if not re.fullmatch("[a-z-]*", row.why):
        yield f"why: want the name of a rule, got {row.why[:80]!r}"
    yield from _foreign(row)
    if len(row.label) >= LONGEST_TEXT or "\n" in row.label or not row.label:
        yield f"label: want one line below {LONGEST_TEXT} characters, got {len(row.label)}"
    yield from (f"claims: want a figure with its unit, got {c!r}" for c in row.claims if not _CLAIM.fullmatch(c))
    if vocabulary is not None:
        yield from _unknown(row, vocabulary)


def _is_utc(stamp: str) -> bool:
    try:
        return len(stamp) == 20 and stamp[-1] == "Z" and bool(datetime.fromisoformat(stamp[:-1]))
    except ValueError:
        return False


def _foreign(row: Facts) -> Iterator[str]:
    """What could carry somebody's sentence, name or machine."""
    alone = "words: want single words without a name or an address, got"
    for listed, pattern in ((row.words, _WORDS), (row.symbols, _NAMES), (row.context, _NAMES)):
        if not pattern.fullmatch("\n".join(listed)) or "" in listed:
            odd = [word for word in listed if not word or "\n" in word or not pattern.fullmatch(word)]
            lower = [word for word in odd if word and _WORDS.fullmatch(word.lower()) and "\n" not in word]
            if listed is row.words and odd == lower:
                yield f"words: want lower case, got {odd[:1]}"
            else:
                yield f"{alone} {next((word for word in odd if word not in lower), odd[0])!r}"
    if list(row.words) != sorted(set(row.words)):
        yield "words: not sorted, or one twice; words in the order of a sentence are somebody's sentence"
    paths = (*(file.path for file in row.files), *row.kernel_files, *row.test_files, *row.bench_files)
    if not _PATHS.fullmatch("\n".join(paths)) or "" in paths:
        odd = [path for path in paths if not path or "\n" in path or not _PATHS.fullmatch(path)]
        yield f"path: want one relative to the repository, got {odd[0] if odd else ''!r}"
    if what := in_facts(row.label):
        yield f"label: holds {what}"
    if not _EVIDENCE.fullmatch("\n".join(row.evidence)) or not all(
        says.keys() <= _SAYS for says in row.evidence.values()
    ):
        yield "evidence: want 'arch:sm90' or the like, and how many paths, symbols, title words, lines or files say so"
    if len(row.symbols) > MOST_NAMES or len(row.context) > MOST_NAMES or len(row.files) > MOST_LISTED:
        yield f"more than {MOST_NAMES} symbols or {MOST_LISTED} files"


def _unknown(row: Facts, vocabulary: Vocabulary) -> Iterator[str]:
    lists: tuple[tuple[str, tuple[str, ...], dict[str, tuple[str, ...]]], ...] = (
        ("diff_terms", tuple(row.diff_terms), vocabulary.mechanisms),
        ("families", row.families, vocabulary.families),
        ("dtypes", row.dtypes, vocabulary.dtypes),
        ("kinds", row.kinds, vocabulary.kinds),
    )
    for name, items, known in lists:
        for item in items:
            if item not in known:
                yield f"{name}: {item!r} does not stand in the vocabulary"
        if len(set(items)) != len(items):
            yield f"{name}: one stands twice"
    odd = [item for item in row.archs if item not in ARCHS]
    yield from (f"archs: want one that exists, like sm90, got {item!r}" for item in odd)
