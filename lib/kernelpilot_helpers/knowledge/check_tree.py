"""Are the pages of the knowledge tree sound? Every finding at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge import (
    check_facts,
    check_files,
    check_lead,
    check_lines,
    check_links,
    check_speed,
    page_parts,
)
from kernelpilot_helpers.knowledge.check_lead import Everything, Known
from kernelpilot_helpers.knowledge.corpus import Source, bundle_folder
from kernelpilot_helpers.knowledge.model import VOCABULARY, Vocabulary
from kernelpilot_helpers.knowledge.page_parts import Parts
from kernelpilot_helpers.records import Fault

PAGE_BYTES = 12_000
TOPIC_BYTES = 4_096
TREE_BYTES = 15_000_000
FACTS_BYTES = 6_000_000
NO_EDIT = frozenset(("none.at_limit",))
"""Class of a digest for which no edit is advised."""
OTHERS = frozenset(("NVIDIA/TensorRT-LLM", "pytorch/pytorch"))
"""Repositories that pages may refer to though no facts of theirs were mined."""
CLOCK_DAYS = 180
"""A date that far ahead is wrong even by a clock that goes wrong."""


def check_pages(source: Source) -> list[Fault]:
    """Faults of the tree's files and of its pages: lead table, names, links, references, figures, addresses, sizes."""
    folder = Path(source.folder)
    out = [Fault(where=str(folder), what=what, fix=fix) for what, fix in _sizes(source)]
    out += [Fault(where=str(folder / at), what=what, fix=fix) for at, what, fix in check_files.faults(folder)]
    known, unread = known_to(source)
    for error in unread:
        what = f"names of the pages were not looked up: {error.what}"
        out.append(Fault(where=error.where, what=what, fix=error.fix))
    for path, data in source.pages:
        for line, what, fix in [*check_files.of_bytes(data), *_page(Path(path).as_posix(), data, folder, known)]:
            out.append(Fault(where=f"{folder / path}:{line}" if line else str(folder / path), what=what, fix=fix))
    return out


def known_to(source: Source) -> tuple[Known, list[BadRecord]]:
    """Names that pages may use, and files that could not be read: what they name is not held against a page."""
    from kernelpilot_helpers.ncu.families import FAMILIES  # noqa: PLC0415 - a search does without it

    unread: list[BadRecord] = []
    vocabulary: Vocabulary | None = None
    try:
        vocabulary = records.parse(source.vocabulary, VOCABULARY, at=source.vocabulary_path)
    except BadRecord as error:
        unread.append(error)
    rows: list[tuple[str, str]] = []
    lost = False
    for path, data in source.facts:
        try:
            rows += check_facts.names(data, at=path)
        except BadRecord as error:
            unread.append(error)
            lost = True
    known = Known(
        vocabulary=vocabulary,
        classes=NO_EDIT | {name.split("/")[0] for name in FAMILIES},
        ids=Everything() if lost else frozenset(name for name, _ in rows),
        repos=Everything() if lost else OTHERS | {repo for _, repo in rows},
        latest=f"{datetime.now(timezone.utc).date() + timedelta(days=CLOCK_DAYS)}",
        root=bundle_folder().parent,
    )
    return known, unread


def _page(path: str, data: bytes, folder: Path, known: Known) -> Iterator[tuple[int, str, str]]:
    page = page_parts.parse(path, data.decode(errors="replace"))
    yield from page_faults(page, len(data), folder, known)


def page_faults(page: Parts, size: int, folder: Path, known: Known) -> Iterator[tuple[int, str, str]]:
    """(line or 0, what, fix) of one page; what a script wrote is not read line by line."""
    most = TOPIC_BYTES if page.kind == "topic" else PAGE_BYTES
    if size >= most:
        yield 0, f"{size} bytes: a page stays below {most}, so that it is read whole", "split it"
    yield from ((0, what, fix) for what, fix in check_links.faults(page, folder))
    yield from ((0, what, fix) for what, fix in check_lead.faults(page, known))
    if page.generated:
        return
    if page_parts.GENERATED in page.text.split("\n"):
        fix = "remove the mark; only scripts/build_knowledge.py writes it, and not here"
        yield 0, "says that a script wrote it, which writes no such page", fix
    yield from check_lines.faults(page, known.repos, known.ids)
    yield from check_speed.faults(page.prose, page, known.ids, known.root)


def _sizes(source: Source) -> Iterator[tuple[str, str]]:
    whole = sum(path.stat().st_size for path in Path(source.folder).rglob("*") if path.is_file())
    mined = sum(len(data) for _, data in source.facts)
    if whole >= TREE_BYTES:
        yield f"{whole} bytes: the tree stays below {TREE_BYTES}", f"du -a {source.folder} | sort -n | tail"
    if mined >= FACTS_BYTES:
        yield f"{mined} bytes of mined facts: they stay below {FACTS_BYTES}", f"ls -lS {source.folder}/data/facts"
    if not source.pages:
        yield "no pages (*.md)", "git checkout -- knowledge"
