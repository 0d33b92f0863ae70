"""The lead table of a page: its fields, and whether the names in it are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Protocol

import msgspec

from kernelpilot_helpers.knowledge import check_files, page_parts
from kernelpilot_helpers.knowledge.model import Vocabulary
from kernelpilot_helpers.knowledge.page_parts import Parts

KINDS = ("technique", "symptom", "hardware", "card", "topic", "framework", "source-guide", "blogs", "index")
FIELDS = ("Kind", "Mechanisms", "Families", "Architectures", "Types", "Classes", "Evidence", "Read at")
SECTIONS = (
    "When it helps",
    "How it is done",
    "Needs",
    "Against it",
    "Check in the profile",
    "Pitfalls",
    "Where to read",
)
"""Of a technique."""
FEWEST_RECORDS = 3
FEWEST_REPOS = 2
FEWEST_PLACES = 3
THIN = "thin:"
FEWEST_WORDS = 3
"""Of a reason."""


class Everything:
    """Stands for names that could not be read: nothing is held against them."""

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())


class Names(Protocol):
    """A set of names, or ``Everything``."""

    def __contains__(self, name: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Names that a page may use."""

    vocabulary: Vocabulary | None
    """None where it could not be read."""
    classes: frozenset[str]
    """Of a digest."""
    ids: Names
    """Of the corpus's records."""
    repos: Names
    """That a source reference may name."""
    latest: str
    """Day after which no source was read."""
    root: Path
    """Folder of our scripts and documents."""


def faults(page: Parts, known: Known) -> Iterator[tuple[str, str]]:
    """(what, fix) of each finding."""
    if not page.title:
        yield "no title", "begin the page with '# Title'"
    if not page.lead:
        yield "no lead table", "put '| Field | Value |', '| --- | --- |', '| Kind | ... |' below the title"
        return
    yield from ((what, "two cells a row, a line '| --- | --- |' below '| Field | Value |'") for what in page.odd_rows)
    yield from _fields(page, known)
    yield from _names(page, known)
    yield from _evidence(page, known)
    if page.kind == "technique":
        yield from _technique(page)


def _evidence(page: Parts, known: Known) -> Iterator[tuple[str, str]]:
    for name in page.evidence:
        if name not in known.ids:
            yield f"Evidence: {name} is no record of the corpus", f"kernelpilot knowledge show '{name}'"
    for name, count in Counter(page.names("Evidence")).items():
        if count > 1:
            yield f"Evidence: {name} stands twice", "name it once"
    value = page.lead.get("Evidence", "")
    if value.startswith(THIN):
        why = re.sub(r"[`,.;\s]+", " ", page_parts.RECORD_ID.sub(" ", value.removeprefix(THIN))).split()
        if len(why) < FEWEST_WORDS:
            yield f"Evidence: '{THIN}' without a reason", f"say in words why there is so little behind '{THIN}'"
        return
    for item in page.names("Evidence"):
        if page_parts.ids(item) != (item,):
            yield f"Evidence: {item!r} is no record id", "write owner/name#number or owner/name@sha12, parted by commas"


def _fields(page: Parts, known: Known) -> Iterator[tuple[str, str]]:
    for name in page.twice:
        yield f"{name}: stands twice in the lead table", "join the rows"
    for name, value in page.lead.items():
        if name not in FIELDS:
            yield f"{name}: no field of the lead table", f"one of: {', '.join(FIELDS)}"
        elif not value:
            yield f"{name}: empty", "leave the row away"
    if page.kind not in KINDS:
        yield f"Kind: want one of {', '.join(KINDS)}, got {page.kind!r}", "name the kind"
    elif page.kind not in (kinds := check_files.kinds_of(page.path)) and kinds:
        yield f"Kind: a page here is {' or '.join(kinds)}, got {page.kind!r}", "move the page, or name its kind"
    at = page.lead.get("Read at", "")
    if at and not _is_date(at):
        yield f"Read at: want a date like 2026-01-31, got {at!r}", "write the date"
    elif at > known.latest:
        yield f"Read at: {at} lies in the future", "write the date"
    if not at and page.kind not in ("index", "", "topic"):
        yield "Read at: missing", "say on which date the sources were read"


def _is_date(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"20\d\d-\d\d-\d\d", text) and date.fromisoformat(text))
    except ValueError:
        return False


def _names(page: Parts, known: Known) -> Iterator[tuple[str, str]]:
    vocabulary = known.vocabulary
    if vocabulary is None:
        return
    lists: dict[str, frozenset[str]] = {
        "Mechanisms": frozenset(vocabulary.mechanisms),
        "Families": frozenset(vocabulary.families),
        "Types": frozenset(vocabulary.dtypes),
        "Classes": known.classes,
    }
    for field, names in lists.items():
        for name in page.names(field):
            if name not in names:
                yield f"{field}: {name!r} is not known", f"one of: {', '.join(sorted(names))}"
    archs = page.lead.get("Architectures", "")
    if archs and not re.match(r"`?sm_?\d", archs):
        yield f"Architectures: want to begin with one such as sm90, got {archs!r}", "name the oldest one first"
    for name in re.findall(r"\bsm_?\d+\w*", archs):
        if re.sub(r"sm_?(\d+)[af]?", r"sm\1", name) not in vocabulary.archs:
            yield f"Architectures: {name!r} is not known", f"one of: {', '.join(sorted(vocabulary.archs))}"


def _technique(page: Parts) -> Iterator[tuple[str, str]]:
    for name in SECTIONS:
        if name not in page.sections:
            yield f"section {name!r} is missing", f"add '## {name}'"
        elif not page.sections[name]:
            yield f"section {name!r} is empty", "write it"
    if not page.lead.get("Evidence", "").startswith(THIN):
        repos = {re.split("[#@]", name)[0] for name in page.evidence}
        if len(page.evidence) < FEWEST_RECORDS or len(repos) < FEWEST_REPOS:
            what = f"Evidence: {len(page.evidence)} records of {len(repos)} repositories; a technique needs"
            fix = f"name more, or begin the value with '{THIN}' and say why"
            yield f"{what} {FEWEST_RECORDS} of {FEWEST_REPOS}", fix
    places = page_parts.refs(page.prose)
    if len(places) < FEWEST_PLACES:
        yield f"{len(places)} source references; a technique needs {FEWEST_PLACES}", "name places in code to read"
