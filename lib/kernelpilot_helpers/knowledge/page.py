"""A page of our own: its lead table says what it is about, its body is read whole."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from kernelpilot_helpers.knowledge import page_parts

INDEXES = ("", "index")
"""Kinds of pages that lead to pages: printed when asked for by name, never found by a search."""
_HEADING = re.compile(r"^#{2,4} +(.+?)\s*$", re.MULTILINE)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One Markdown file below the knowledge folder; an empty tuple means that the lead table does not say."""

    path: str
    """Below the folder, ``techniques/swap-ab.md``."""
    title: str
    kind: str
    """``technique``, ``symptom``, ``hardware``, ``card``, ``topic``, ...; empty without a lead table."""
    mechanisms: tuple[str, ...]
    families: tuple[str, ...]
    archs: tuple[str, ...]
    newer: bool
    """The first of ``archs`` and all after it."""
    dtypes: tuple[str, ...]
    classes: tuple[str, ...]
    headings: tuple[str, ...]
    text: str
    """The whole file."""

    @property
    def slug(self) -> str:
        """What it is called by: the path without its ending."""
        return self.path.removesuffix(".md")


def parsed(path: str, data: bytes) -> Page:
    """A page from its bytes; what it lacks is empty."""
    parts = page_parts.parse(path, data.decode(errors="replace"))
    archs = parts.lead.get("Architectures", "")
    return Page(
        path=path,
        title=parts.title or path,
        kind=parts.kind,
        mechanisms=parts.names("Mechanisms"),
        families=parts.names("Families"),
        archs=tuple(re.findall(r"sm[0-9]+", archs.replace("sm_", "sm"))),
        newer="newer" in archs,
        dtypes=parts.names("Types"),
        classes=parts.names("Classes"),
        headings=tuple(_HEADING.findall(parts.text)),
        text=parts.text,
    )


def fits(page: Page, wanted: Mapping[str, tuple[str, ...]]) -> bool:
    """True when no filter (kind -> values, ``arch``, ``family``, ``dtype``) speaks against what the page names."""
    arch = wanted.get("arch", ())
    if arch and page.archs and not set(arch) & set(page.archs):
        first = min(int(name[2:]) for name in page.archs)
        if not page.newer or int(arch[0][2:]) < first:
            return False
    named = (("family", page.families), ("dtype", page.dtypes))
    return all(not wanted.get(kind) or not names or set(wanted[kind]) & set(names) for kind, names in named)
