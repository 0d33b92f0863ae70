"""Files of the tree: only those that belong there, plain ones, text, and none lost."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelpilot_helpers.knowledge.check_foreign import CONTROL

FOLDERS: dict[str, tuple[str, ...]] = {
    "": ("index",),
    "cards": ("card",),
    "hardware": ("hardware",),
    "references": ("index",),
    "references/blogs": ("blogs",),
    "references/prs": ("index",),
    "references/prs/by-topic": ("index",),
    "references/source-guides": ("source-guide",),
    "routing/frameworks": ("framework", "index"),
    "routing/topics": ("topic", "index"),
    "symptoms": ("symptom",),
    "techniques": ("technique",),
}
"""Folder -> kinds of its pages; of ``cards`` also one folder below."""
_HOLDS = re.compile(
    r"README\.md|index\.json|data/vocabulary\.json|data/facts/repos\.json|data/facts/\.cursor\.sqlite[\w-]*"
    r"|data/facts/[\w.-]+\+[\w.-]+\.jsonl\.gz|data/lessons/[\w-]+\.jsonl"
)
_SLUG = re.compile(r"[a-z0-9][a-z0-9_.+-]*\.md")
GONE = "git checkout -- "


class _Index(msgspec.Struct, frozen=True):
    format: str
    version: int
    corpus: dict[str, object]
    counts: dict[str, int]
    pages: list[dict[str, object]]


def kinds_of(path: str) -> tuple[str, ...]:
    """Kinds that a page at this path may have; empty where no page belongs."""
    folder, _, name = path.rpartition("/")
    if not folder:
        return FOLDERS[""] if name == "README.md" else ()
    if not _SLUG.fullmatch(name):
        return ()
    return FOLDERS["cards" if re.fullmatch(r"cards/[a-z0-9-]+", folder) else folder] if _known(folder) else ()


def _known(folder: str) -> bool:
    return folder in FOLDERS or bool(re.fullmatch(r"cards/[a-z0-9-]+", folder))


def faults(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(where, what, fix) of each file, link and folder that does not belong, and of an index that is none."""
    for at, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted([*folders, *files]):
            path = Path(at) / name
            below = path.relative_to(folder).as_posix()
            if path.is_symlink():
                yield below, f"a link to {path.readlink()}: the tree holds plain files", f"git checkout -- {path}"
            elif path.is_dir():
                if name.endswith((".md", ".json", ".jsonl", ".gz")):
                    yield below, "a folder with the name of a file", f"ls {path}"
            elif not path.is_file():
                yield below, "no plain file", f"ls -l {path}"
            elif not (_HOLDS.fullmatch(below) or kinds_of(below)):
                yield below, "belongs nowhere in the tree", f"git rm -- {path}, or move it where its kind stands"
    yield from _index(folder)


def _index(folder: Path) -> Iterator[tuple[str, str, str]]:
    fix = f"python scripts/build_knowledge.py --knowledge {folder}"
    path = folder / "index.json"
    if not path.is_file():
        return  # a tree that was never built has none; the build's --check asks for it
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Index)
    except (msgspec.MsgspecError, ValueError, OSError) as error:
        yield "index.json", f"no index of pages: {error}", fix
        return
    if (found.format, found.version) != ("kernelpilot.knowledge-index", 1):
        yield "index.json", f"format: want kernelpilot.knowledge-index 1, got {found.format} {found.version}", fix


def of_bytes(data: bytes) -> Iterator[tuple[int, str, str]]:
    """(line, what, fix) where the bytes of a page are no plain text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        at = data[: error.start].count(b"\n") + 1
        yield at, f"not UTF-8: byte {data[error.start]:#04x}", "write it in UTF-8"
        text = data.decode(errors="replace")
    if not text.strip():
        yield 0, "an empty page", "remove it or write it"
    for number, line in enumerate(text.split("\n"), start=1):
        if found := CONTROL.search(line):
            yield number, f"holds the control character {found[0]!r}", "remove it"
