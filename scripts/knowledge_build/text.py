"""Pieces of Markdown that every generated page has: head, tables that end before a page is too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.knowledge.page_parts import GENERATED
from knowledge_build.tree import Row

MOST_BYTES = 11_600
"""A generated page stays below; 12,000 is where the check says no."""
WIDTH = 120


def head(title: str, *about: str) -> str:
    """Title, lead table, mark, and what the page holds."""
    lines = [f"# {title}", "", "| Field | Value |", "| --- | --- |", "| Kind | index |", "", GENERATED, ""]
    return "\n".join([*lines, *about]) + "\n"


def table(names: Sequence[str]) -> str:
    """Head of a table."""
    return "\n" + "| " + " | ".join(names) + " |\n" + "| " + " | ".join("---" for _ in names) + " |\n"


def row(cells: Iterable[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def fill(page: str, lines: Iterable[str], tail: str = "", most: int | None = None) -> tuple[str, int]:
    """The page with as many lines as fit, and how many."""
    size, count = len(page.encode()) + len(tail.encode()), 0
    out = [page]
    for line in lines:
        size += len(line.encode())
        if size >= MOST_BYTES or count == most:
            break
        out.append(line)
        count += 1
    return "".join([*out, tail]), count


def whole(page: str, lines: Sequence[str], tail: str = "") -> str:
    """The page with all lines. Raises Refused when they do not fit."""
    out, count = fill(page, lines, tail)
    if count < len(lines) or len(out.encode()) >= MOST_BYTES:
        title = page.partition("\n")[0]
        raise Refused(
            f"its lines do not fit in {MOST_BYTES} bytes", where=title, fix="shorten first sentences of pages"
        )
    return out


def short(label: str) -> str:
    """A label of at most WIDTH characters."""
    return label if len(label) <= WIDTH else label[: WIDTH - 3].rstrip(" ,:;") + "..."


def names(of: Sequence[str], most: int) -> str:
    """Some of the names, and a mark where there are more."""
    return ", ".join(of[:most]) + (", ..." if len(of) > most else "")


RECORD = ("Record", "Date", "Tier", "Architectures", "Families", "What (L: with a lesson)")


def record(of: Row, *, named: bool = False) -> str:
    """A record as a line of a table; ``named``: with its repository."""
    first = f"{of.repo.split('/')[1]} {of.link}" if named else of.link
    mark = "L " if of.lesson else ""
    archs, families = names(of.archs, 3) or "?", names(of.families, 3) or "?"
    return row((first, of.day, of.tier or "-", archs, families, mark + short(of.label)))
