"""Records and pages as lines and as ``--json``, the same in every knowledge command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelpilot_helpers.knowledge import Page, PageHit, Record

WIDTH = 158
TIERS = {
    "A": "the title speaks of speed and a kernel changes",
    "B": "the title names a mechanism",
    "C": "a new kernel with several mechanisms",
    "D": "a number is claimed",
    "E": "a diff full of mechanisms",
    "P": "a fix in device code",
    "": "touches kernels, no more",
}
"""What a tier means."""


def clipped(line: str, width: int = WIDTH) -> str:
    """A line of at most ``width`` characters, cut between words and marked where it was cut."""
    if len(line) <= width:
        return line
    indent = len(line) - len(line.lstrip())
    end = line.rfind(" ", indent, width - 3)
    return line[: end if end > indent else width - 4].rstrip(" ,;:") + " ..."


def tier_of(record: Record) -> str:
    """``tier P: a fix in device code``."""
    return f"tier {record.tier or 'none'}: {TIERS.get(record.tier, 'unknown')}"


def brief(record: Record) -> dict[str, Any]:
    """What a list tells of a record."""
    from kernelpilot_helpers import knowledge

    files = list(knowledge.open_first(record))
    symbols = list(record.symbols)
    return {"id": record.id, "label": record.label, "url": knowledge.url(record), "files": files, "symbols": symbols}


def line_of(record: Record, extra: str = "") -> str:
    """The same as a line."""
    first = record.kernel_files[0] if record.kernel_files else ""
    return clipped(f"{record.id}  {extra}{record.label}  {first}")


def page_hit(page: PageHit) -> dict[str, str]:
    """A page that was found, as ``--json`` shows it."""
    return {"path": page.path, "title": page.title, "kind": page.kind, "why": page.why}


def page_line(page: PageHit) -> str:
    """The same as a line."""
    return clipped(f"page {page.path}  {page.title}  {page.why}")


def page_object(page: Page) -> dict[str, Any]:
    """A page as ``--json`` shows it."""
    import msgspec

    return {"page": msgspec.to_builtins(page)}
