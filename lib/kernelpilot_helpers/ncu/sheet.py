"""CSV text among other lines: logical records, their cells, and a table's head, found by content."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.model import RefusedInput

DELIMITERS = (",", ";", "\t")
_START = re.compile(r'(?:"[^"]*"|\d+)[,;\t]')
csv.field_size_limit(max(csv.field_size_limit(), limits.MAX_LINE))


def records(text: str) -> Iterator[tuple[int, str]]:
    """Line number (from 1) and text of each logical line: a quoted cell may hold newlines; empty lines are left out.

    Raises RefusedInput when the last one is cut, or one is too long.
    """
    held: list[str] = []
    size = quotes = first = 0
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        # Only a row can hold a newline inside quotes; a stray quote in a program's output must not swallow the table.
        if not held and not _START.match(line):
            if line.strip():
                yield number, line.strip()
            first, quotes = number, line.count('"') * line.startswith('"')
            continue
        if not held:
            first, size, quotes = number, 0, 0
        held.append(line)
        size += len(line)
        quotes += line.count('"')
        if size > limits.MAX_LINE:
            raise RefusedInput("file.line_too_long", f"a record of more than {limits.MAX_LINE} characters")
        if quotes % 2 == 0:
            yield first, "".join(held).rstrip("\r\n")
            held = []
    if quotes % 2:
        raise RefusedInput("file.truncated", f"the file ends inside the quoted cell of line {first}")


def split(record: str, delimiter: str) -> list[str] | None:
    """Cells of a record; None when it is no CSV."""
    try:
        rows = list(csv.reader([record], delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return rows[0] if rows else None


def head(record: str, needed: Sequence[str]) -> tuple[list[str], str]:
    """Columns of a table's head line and its delimiter; no columns when the record lacks one of the needed.

    Raises RefusedInput when it has too many columns, or one twice.
    """
    if record.startswith("==") or not all(column in record for column in needed):
        return [], ""
    for delimiter in DELIMITERS:
        columns = split(record, delimiter)
        if columns and all(c in columns for c in needed):
            if len(columns) > limits.MAX_COLUMNS:
                raise RefusedInput("file.too_large", f"{len(columns)} columns; at most {limits.MAX_COLUMNS} are read")
            if len(set(columns)) != len(columns):
                raise RefusedInput("page.damaged", "a column stands twice in the head line")
            return columns, delimiter
    return [], ""


def is_long(columns: Sequence[str]) -> bool:
    """Whether a head line is that of the details page: one metric a row."""
    return "Metric Name" in columns and "Metric Value" in columns


def looks_cut(record: str) -> bool:
    """Whether a record that is no CSV of the table still starts like one of its rows: damage, not program output."""
    start = record.lstrip('"').split('"')[0].split(",")[0]
    return record.startswith('"') and start.isdigit() and '","' in record
