"""Markdown tables and sections, read with markdown-it-py and written in one fixed shape."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpilot_helpers.errors import BadRecord


def cell(value: str) -> str:
    r"""Text as one table cell.

    >>> cell("a|b\nc")
    'a\\|b c'
    """
    return " ".join(value.split()).replace("\\", "\\\\").replace("|", "\\|")


def render(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table. ValueError when a row has another width than the head.

    >>> print(render(["A", "B"], [["1", "2"]]), end="")
    | A | B |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [
        "| " + " | ".join(cell(c) for c in columns) + " |",
        "| " + " | ".join("---" for _ in columns) + " |",
    ]
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"a row of {len(row)} cells under {len(columns)} columns")
        lines.append("| " + " | ".join(cell(c) for c in row) + " |")
    return "\n".join(lines) + "\n"


def parse(text: str, *, at: str) -> list[dict[str, str]]:
    """Rows of the first table in a Markdown text, keyed by column. Raises BadRecord when there is none."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only readers of tables pay for it

    rows: list[list[str]] = []
    inside = False
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "table_open":
            inside = True
        elif token.type == "table_close":
            break
        elif inside and token.type == "tr_open":
            rows.append([])
        elif inside and token.type == "inline":
            rows[-1].append(token.content.replace("\\\\", "\\"))
    if not rows:
        raise BadRecord("no table found", where=at, fix="restore the table's head line")
    head, *body = rows
    return [dict(zip(head, row, strict=False)) for row in body]
