"""What is known of a pull request, the words that lead to it, and what a search answers."""

from __future__ import annotations

import msgspec

from kernelpilot_helpers.records import Owner

FIX = "git checkout -- knowledge/data"
"""The index is committed: the bundle's git brings it back."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One merged pull request: facts from its diff, and two sentences of our own."""

    id: str
    """``owner/name#number``."""
    repo: str
    pr: int
    sha: str
    """Merge commit, 40 hex digits."""
    merged_at: str
    """UTC, ``2025-01-21T14:21:54Z``."""
    tier: str
    """A: the title speaks of speed and a kernel changes; B: it names a mechanism; C: a new kernel with mechanisms."""
    label: str
    """One line of our own: the mechanism."""
    lesson: str
    """One or two sentences of our own: what changes, when to try it, what to measure."""
    archs: tuple[str, ...]
    """``sm90``; empty where neither path nor diff names one."""
    families: tuple[str, ...]
    kinds: tuple[str, ...]
    """Languages of the kernels: cuda, triton, cute-dsl, cute-cpp, ..."""
    kernel_files: tuple[str, ...]
    """Most added lines first, at most twelve; so are the two below."""
    test_files: tuple[str, ...]
    bench_files: tuple[str, ...]
    symbols: tuple[str, ...]
    """Kernels whose lines changed, then functions around the changes."""
    diff_terms: dict[str, int]
    """Mechanism -> added lines that hold a token of it; moved lines are not counted."""
    claims: tuple[str, ...]
    """Numbers that the pull request names; nobody measured them here."""
    words: tuple[str, ...]
    """Lower-case words of the title, sorted and deduplicated."""


class Symptom(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a user sees, and the mechanisms that are worth a look then."""

    says: tuple[str, ...]
    look_for: tuple[str, ...]
    why: str


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other words for the facts: mechanisms, families and architectures, each with the names people give them."""

    format: str
    version: int
    mechanisms: dict[str, tuple[str, ...]]
    families: dict[str, tuple[str, ...]]
    archs: dict[str, tuple[str, ...]]
    symptoms: tuple[Symptom, ...]


RECORDS = Owner(format="kernelpilot.knowledge", version=1, type=Record, fix=FIX)
VOCABULARY = Owner(format="kernelpilot.vocabulary", version=1, type=Vocabulary, fix=FIX)


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Only records of this repository, architecture, family; empty means any."""

    repo: str = ""
    arch: str = ""
    family: str = ""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, with the reason for it."""

    record: Record
    why: str
    """Fields that matched, with the words that did."""
    score: float
    """Larger is better; comparable within one search only."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Hits, best first; without a hit, at most six near words of the index, none where nothing is near."""

    hits: tuple[Hit, ...]
    suggestions: tuple[str, ...]


def url(record: Record) -> str:
    """Where the pull request is discussed."""
    return f"https://github.com/{record.repo}/pull/{record.pr}"


def open_first(record: Record) -> tuple[str, ...]:
    """Files in reading order: two of code, one test, one benchmark, then the rest of the code."""
    head = (*record.kernel_files[:2], *record.test_files[:1], *record.bench_files[:1])
    return (*head, *record.kernel_files[2:])
