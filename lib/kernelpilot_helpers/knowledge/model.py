"""What is known of a change, the words that lead to it, and what a search answers."""

from __future__ import annotations

import msgspec

from kernelpilot_helpers.records import Owner

FIX = "git checkout -- knowledge/data"
"""The index is committed: the bundle's git brings it back."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One pull request or direct commit: facts from its diff, and two sentences of our own where we read it."""

    id: str
    """``owner/name#number``; of a direct commit ``owner/name@`` and twelve digits of its sha."""
    repo: str
    pr: int
    """0 for a direct commit."""
    sha: str
    """Merge commit, 40 hex digits."""
    merged_at: str
    """UTC, ``2025-01-21T14:21:54Z``."""
    tier: str
    """A: the title speaks of speed and a kernel changes; B: it names a mechanism; C: a new kernel with mechanisms; D: a
    number is claimed; E: a diff full of mechanisms; P: a fix in device code; empty: touches kernels, no more."""
    label: str
    """One line of our own: the mechanism; generated from the facts where nobody wrote one."""
    lesson: str
    """Sentences of our own: what changes, when to try it, what to measure; empty where nobody read it."""
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
    dtypes: tuple[str, ...] = ()
    """Data types that title, symbols, paths or added lines name."""
    context: tuple[str, ...] = ()
    """Functions around the changes, where the facts keep them apart from ``symbols``."""
    state: str = "merged"
    """``merged``, ``direct`` (a push without a pull request), or ``open`` (seen at ``merged_at``; check before use)."""
    n_files: int = 0
    """Files changed; 0 where it was not counted."""
    knet: int = 0
    """Lines added to kernels beyond those moved or removed."""
    read: tuple[str, ...] = ()
    """Paths of the diff that the lesson was written from."""
    techniques: tuple[str, ...] = ()
    """Pages below ``techniques`` that the lesson belongs to."""


class Lesson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our own words about one record, laid over what was mined of it."""

    id: str
    """Of the record."""
    sha: str
    """Of the record when it was read, 40 hex digits; at any other one the lesson is left out."""
    label: str
    """One line: mechanism and kernel."""
    lesson: str
    """What changes, when it applies, what to check in the profile, what can go wrong."""
    read: tuple[str, ...]
    """Paths of the diff that were opened."""
    techniques: tuple[str, ...]
    """Names of pages below ``techniques``."""


class Symptom(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a user sees, and the mechanisms that are worth a look then."""

    says: tuple[str, ...]
    look_for: tuple[str, ...]
    why: str
    topics: tuple[str, ...] = ()
    """Topics of the vocabulary that it leads to as well."""


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other words for the facts: mechanisms, families and architectures, each with the names people give them."""

    format: str
    version: int
    mechanisms: dict[str, tuple[str, ...]]
    families: dict[str, tuple[str, ...]]
    archs: dict[str, tuple[str, ...]]
    symptoms: tuple[Symptom, ...]
    dtypes: dict[str, tuple[str, ...]] = {}
    kinds: dict[str, tuple[str, ...]] = {}
    """Other names of kernel languages."""
    topics: dict[str, tuple[str, ...]] = {}
    """What kernels are about, finer than a family: a name, and what people and code call it."""
    words: dict[str, tuple[str, ...]] = {}
    """A word -> others that mean nearly the same in this field; looked for with less weight."""


LESSONS = Owner(format="kernelpilot.lessons", version=1, type=Lesson, fix=FIX)
VOCABULARY = Owner(format="kernelpilot.vocabulary", version=1, type=Vocabulary, fix=FIX)


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Only records with these facts; empty means any."""

    repo: str = ""
    arch: str = ""
    """Records that name no architecture stay, after those that name it."""
    family: str = ""
    dtype: str = ""
    """Records that name no data type stay, after those that name it."""
    dsl: str = ""
    tier: str = ""
    state: str = ""
    since: str = ""
    """First day, ``2025-01-31``."""
    until: str = ""
    has_test: bool = False
    has_bench: bool = False
    symbol: str = ""
    """A part of a kernel's or function's name."""
    path: str = ""
    """A glob over the paths of kernels."""
    tokens: tuple[str, ...] = ()
    """``mechanism>=lines`` or a mechanism: added lines that hold it."""
    seen: frozenset[str] = frozenset()
    """Ids that were read already."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, with the reason for it."""

    record: Record
    why: str
    """Fields that matched, with the words that did."""
    score: float
    """Larger is better; comparable within one search only."""


class PageHit(msgspec.Struct, frozen=True, kw_only=True):
    """A page of our own that speaks of what was asked."""

    path: str
    """Below the knowledge folder."""
    title: str
    kind: str
    why: str
    """Words and concepts that it holds."""
    first: bool = False
    """Worth reading before any record: it is named like what was asked for, or holds every word of the question."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Hits, best first; without a hit, at most six suggestions; beside them at most two pages."""

    hits: tuple[Hit, ...]
    suggestions: tuple[str, ...]
    pages: tuple[PageHit, ...] = ()
    kind: str = ""
    """``filters`` to leave out, ``near`` words of the index, ``families`` where nothing is near; ``stop``."""


def url(record: Record) -> str:
    """Where the pull request is discussed, or the commit is shown."""
    kind, name = ("commit", record.sha) if record.state == "direct" else ("pull", str(record.pr))
    return f"https://github.com/{record.repo}/{kind}/{name}"


def open_first(record: Record) -> tuple[str, ...]:
    """Files in reading order: two of code, one test, one benchmark, then the rest of the code."""
    head = (*record.kernel_files[:2], *record.test_files[:1], *record.bench_files[:1])
    return (*head, *record.kernel_files[2:])
