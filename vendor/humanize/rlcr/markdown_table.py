"""Tables of a Markdown page, row by row under their headers and headings. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlcr.criteria import lines, unfenced
from rlcr.forms import bare

CELL_CAP = 2000
"""Characters of a cell that are looked at."""
COLUMN_CAP = 40
LINE_CAP = 20_000
"""Characters of a line that are looked at."""

_HEADING = re.compile(r" {0,3}(#{1,6})\s(.{0,300})")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row under its header; a column is known by a word of its heading, wherever it stands."""

    header: tuple[frozenset[str], ...]
    cells: tuple[str, ...]

    def has(self, *words: str) -> bool:
        """Whether a column has one of the words in its heading."""
        return any(name & set(words) for name in self.header)

    def cell(self, *words: str) -> str:
        """The cell under the first of the words that heads a column, most purely so; empty when none does."""
        ranked = [
            (rank, len(name), at)
            for rank, word in enumerate(words)
            for at, name in enumerate(self.header)
            if word in name
        ]
        at = min(ranked)[2] if ranked else len(self.cells)
        return self.cells[at][:CELL_CAP] if at < len(self.cells) else ""


def title_of(heading: str) -> str:
    """The words of a heading without its number, "and" and "&"."""
    words = re.findall(r"[^\W_]+", html.unescape(heading).casefold())
    while words and words[0].isdigit():
        del words[0]
    return " ".join(word for word in words if word != "and")


def headings(page: Sequence[str]) -> list[str]:
    """The titles of all headings of a page."""
    return [title_of(found[2]) for line in page if (found := _HEADING.match(line))]


def rows(page: Sequence[str], title: str = "") -> Iterator[Row]:
    """Rows of every table of a page, or of those below a heading. Other words end a table, a blank line does not."""
    wanted = title_of(title)
    header: tuple[frozenset[str], ...] = ()
    level = 0 if title else 9  # of the heading that we are below; 0 is outside
    for line, after in zip(page, [*page[1:], ""], strict=True):
        heading = _HEADING.match(line) if title else None
        if heading and len(heading[1]) <= (level or 9):
            level, header = len(heading[1]) if title_of(heading[2]).startswith(wanted) else 0, ()
        elif level and "|" not in line:
            header = header if not line.strip() else ()
        elif level and not _is_rule(line):
            if _is_rule(after):
                header = tuple(frozenset(re.findall(r"[a-z]+", cell.casefold())) for cell in _cells(line))
            elif header:
                yield Row(header=header, cells=_cells(line))


def line(*cells: str) -> str:
    """A row as it is written."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def plain(text: str) -> list[str]:
    """A page: its lines that stand in no fence and no comment."""
    found = lines(bare(text))
    return [line[:LINE_CAP] for line, free in zip(found, unfenced(found), strict=True) if free]


def _cells(line: str) -> tuple[str, ...]:
    """Cells of a row, with or without pipes at its edges; an escaped pipe belongs to its cell."""
    parts = re.split(r"(?<!\\)\|", line.strip(), maxsplit=COLUMN_CAP)
    if not parts[0].strip():
        parts = parts[1:]
    if parts and not parts[-1].strip():
        parts = parts[:-1]
    return tuple(part.strip().replace("\\|", "|") for part in parts)


def _is_rule(line: str) -> bool:
    if not re.match(r"[\s|:]*-", line):
        return False
    cells = _cells(line) if "|" in line else ()
    return bool(cells) and all(re.fullmatch(r":?-+:?", cell) for cell in cells)
