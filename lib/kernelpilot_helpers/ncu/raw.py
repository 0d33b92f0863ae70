"""The raw page as launches: a wide table with a row of units, among banners and a program's own output."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import limits, quantity, sniff
from kernelpilot_helpers.ncu.metrics import wanted
from kernelpilot_helpers.ncu.model import Cell, Export, Launch, RefusedInput

ID_COLUMNS = ("ID", "Kernel Name")
_IDENTITY = {
    "id": "ID",
    "kernel": "Kernel Name",
    "grid": "Grid Size",
    "block": "Block Size",
    "device": "Device",
    "cc": "CC",
    "stream": "Stream",
    "process": "Process ID",
}
_CELL = 64
"""Characters of a metric cell: instance values behind the aggregate are cut off."""


@dataclass(kw_only=True, slots=True)
class _Table:
    """What has been read so far; of each launch only the cells that the digest may use."""

    header: list[str] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    sample: list[str] = field(default_factory=list)
    """Metric cells that vote on the locale."""
    ignored: int = 0

    def take(self, record: str) -> None:
        """The next logical line: head, units, launch, or none of them."""
        if not self.header:
            self.header = _header(record)
            self.ignored += not self.header
            return
        cells = _cells(record, self.header)
        if cells is None:
            self.ignored += 1
        elif self.units:
            self._launch(_whole(cells, self.header, len(self.launches)))
        elif cells[self.header.index("ID")].strip():
            raise RefusedInput("raw.no_units", "a raw page without its row of units: scaled values cannot be read")
        else:
            self.units = cells[: len(self.header)] + [""] * (len(self.header) - len(cells))

    def _launch(self, cells: list[str]) -> None:
        row = dict(zip(self.header, cells, strict=True))
        if len(self.sample) < limits.LOCALE_CELLS:
            self.sample += [text[:_CELL] for name, text in row.items() if "__" in name]
        units = dict(zip(self.header, self.units, strict=True))
        names = {part: row.get(column, "").strip()[: limits.MAX_NAME] for part, column in _IDENTITY.items()}
        kept = {name: Cell(text=row[name][:_CELL], unit=units[name]) for name in self.header if wanted(name)}
        self.launches.append(Launch(**names, cells=kept))
        if len(self.launches) > limits.MAX_LAUNCHES:
            raise RefusedInput("file.too_large", f"more than {limits.MAX_LAUNCHES} launches")


def parse(data: bytes) -> Export:
    """Launches of a raw page. Raises RefusedInput with what was found instead, or what is wrong with the page."""
    sniff.binary(data[:4096])
    text = sniff.decode(data)
    table = _Table()
    for record in _records(text):
        table.take(record)
    if not table.header:
        raise sniff.no_table(text)
    if not table.units:
        raise RefusedInput("raw.truncated", "the file ends behind the head line, before the row of units")
    if not table.launches:
        raise RefusedInput("raw.no_launches", "a raw page without a launch")
    locale = quantity.locale_of(table.sample)
    if locale == "mixed":
        raise RefusedInput("raw.mixed_locale", "some cells have a decimal point, others a decimal comma")
    return Export(launches=tuple(table.launches), locale=locale, ignored_lines=table.ignored)


def _records(text: str) -> Iterator[str]:
    """Logical lines: a quoted cell may hold newlines. Raises RefusedInput when the last one is cut."""
    held: list[str] = []
    size = quotes = 0
    for line in text.splitlines(keepends=True):
        # Only a row can hold a newline inside quotes; a stray quote in a program's output must not swallow the table.
        if not held and line[:1] != '"' and not line[:1].isdigit():
            if line.strip():
                yield line.strip()
            continue
        held.append(line)
        size += len(line)
        quotes += line.count('"')
        if size > limits.MAX_LINE:
            raise RefusedInput("file.line_too_long", f"a record of more than {limits.MAX_LINE} characters")
        if quotes % 2 == 0:
            yield "".join(held).rstrip("\r\n")
            held, size, quotes = [], 0, 0
    if held:
        raise RefusedInput("raw.truncated", "the file ends inside a quoted cell")


def _split(record: str, delimiter: str) -> list[str] | None:
    """Cells of a record; None when it is no CSV."""
    try:
        rows = list(csv.reader([record], delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return rows[0] if rows else None


def _header(record: str) -> list[str]:
    """The head line's columns, found by content; empty for another line.

    Raises RefusedInput for the head line of another page.
    """
    if "Kernel Name" not in record or record.startswith("=="):
        return []
    for delimiter in (",", ";", "\t"):
        columns = _split(record, delimiter)
        if columns and all(c in columns for c in ID_COLUMNS):
            break
    else:
        return []
    if "Metric Name" in columns and "Metric Value" in columns:
        raise RefusedInput("page.details", "a details page, or the long form of a --metrics run")
    if len(columns) > limits.MAX_COLUMNS:
        raise RefusedInput("file.too_large", f"{len(columns)} columns; at most {limits.MAX_COLUMNS} are read")
    if not any("__" in c for c in columns):
        return []
    if len(set(columns)) != len(columns):
        raise RefusedInput("raw.damaged", "a column stands twice in the head line")
    return columns


def _cells(record: str, header: list[str]) -> list[str] | None:
    """A record of the table, or None for a banner and for a program's own output among the rows."""
    if record.startswith("=="):
        return None
    for delimiter in (",", ";", "\t"):
        cells = _split(record, delimiter)
        if cells and len(cells) > len(header) // 2:
            break
    else:
        head = record.lstrip().lstrip('"').split('"')[0].split(",")[0]
        looks_like_a_row = record.startswith('"') and head.isdigit() and '","' in record
        return record.split('","') if looks_like_a_row else None
    ident = cells[header.index("ID")].strip() if header.index("ID") < len(cells) else ""
    return cells if not ident or ident.isdigit() else None


def _whole(cells: list[str], header: list[str], row: int) -> list[str]:
    """The cells when the row is whole. Raises RefusedInput when it is cut or holds too many."""
    while len(cells) > len(header) and not cells[-1].strip():
        cells = cells[:-1]
    if len(cells) != len(header):
        raise RefusedInput("raw.truncated", f"launch {row + 1} holds {len(cells)} of {len(header)} cells")
    return cells
