"""The raw page as launches: a wide table with a row of units, among banners and a program's own output."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import identity, limits, quantity, separators, sheet, sniff
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import File, Launch, Report, Session
from kernelpilot_helpers.ncu.wide import Columns, Instances, Row

_METRIC = re.compile(r"[\w.:]+")
_SAMPLE = 64
"""Characters of a cell that votes on the locale."""


@dataclass(kw_only=True, slots=True)
class _Pages:
    """What has been read so far; rows are kept as text and decoded when asked."""

    header: list[str] = field(default_factory=list)
    delimiter: str = ""
    units: list[str] = field(default_factory=list)
    shared: Columns | None = None
    """Of the table that is being read; None until its row of units was read."""
    tables: list[Columns] = field(default_factory=list)
    """Several processes write a table each."""
    launches: list[Launch] = field(default_factory=list)
    sample: list[separators.Cell] = field(default_factory=list)
    ignored: int = 0
    host: str = ""

    def take(self, line: int, record: str) -> None:
        """The next logical line: head, units, launch, or none of them."""
        columns, delimiter = header(record)
        if columns:
            self.header, self.delimiter, self.shared = columns, delimiter, None
            return
        cells = self._cells(record) if self.header else None
        if cells is None:
            self.ignored += 1
        elif self.shared is not None:
            self._launch(line, record, self._whole(cells), self.shared)
        elif cells[self.header.index("ID")].strip():
            raise RefusedInput("raw.no_units", "a raw page without its row of units: scaled values cannot be read")
        else:
            self._units(cells)

    def _units(self, cells: list[str]) -> None:
        self.units = cells[: len(self.header)] + [""] * (len(self.header) - len(cells))
        index = {c: ix for ix, c in enumerate(self.header) if _METRIC.fullmatch(c) and c not in identity.NAMES}
        scales = [quantity.scale(unit) for unit in self.units]
        self.shared = Columns(index=index, scales=scales, delimiter=self.delimiter)
        self.tables.append(self.shared)

    def _launch(self, line: int, record: str, cells: list[str], shared: Columns) -> None:
        if len(self.sample) < limits.LOCALE_CELLS:
            self.sample += [(name, self.units[at], cells[at][:_SAMPLE]) for name, at in shared.index.items()]
        named = dict(zip(self.header, cells, strict=True))
        self.host = self.host or identity.host(named)
        self.launches.append(
            identity.launch(
                named,
                metrics=Row(columns=shared, record=record, line=line),
                series=Instances(columns=shared, record=record),
                place=f"row {line}",
            )
        )
        if len(self.launches) > limits.MAX_LAUNCHES:
            raise RefusedInput("file.too_large", f"more than {limits.MAX_LAUNCHES} launches")

    def _cells(self, record: str) -> list[str] | None:
        """A record of the table, or None for a banner and for a program's own output among the rows."""
        if record.startswith("=="):
            return None
        cells = sheet.split(record, self.delimiter)
        if not cells or len(cells) <= len(self.header) // 2:
            # One cell fewer than the table has: a row that is no CSV is never whole, however many pieces it has.
            return record.split('","')[: len(self.header) - 1] if sheet.looks_cut(record) else None
        at = self.header.index("ID")
        ident = cells[at].strip() if at < len(cells) else ""
        return cells if not ident or ident.isdigit() else None

    def _whole(self, cells: list[str]) -> list[str]:
        """The cells when the row is whole. Raises RefusedInput when it is cut or holds too many."""
        while len(cells) > len(self.header) and not cells[-1].strip():
            cells = cells[:-1]
        if len(cells) != len(self.header):
            count = len(self.launches) + 1
            raise RefusedInput("raw.truncated", f"launch {count} holds {len(cells)} of {len(self.header)} cells")
        return cells


def parse(data: bytes, *, name: str, sha256: str) -> Report:
    """Launches of a raw page. Raises RefusedInput with what was found instead, or what is wrong with the page."""
    sniff.binary(data[:4096])
    text = sniff.decode(data)
    pages = _Pages()
    for line, record in sheet.records(text):
        pages.take(line, record)
    if not pages.header:
        raise sniff.no_table(text)
    if pages.shared is None:
        raise RefusedInput("raw.truncated", "the file ends behind the head line, before the row of units")
    if not pages.launches:
        raise RefusedInput("raw.no_launches", "a raw page without a launch")
    locale = separators.decide(pages.sample)
    if locale == "mixed":
        raise RefusedInput("raw.mixed_locale", "some cells have a decimal point, others a decimal comma")
    for shared in pages.tables:
        shared.locale = locale
    file = File(name=name, bytes=len(data), sha256=sha256, form="raw")
    session = Session(host=pages.host)
    launches = tuple(pages.launches)
    return Report(files=(file,), launches=launches, session=session, locale=locale, ignored_lines=pages.ignored)


def header(record: str) -> tuple[list[str], str]:
    """The head line's columns and delimiter, found by content; empty for another line.

    Raises RefusedInput for the head line of another page.
    """
    columns, delimiter = sheet.head(record, identity.NEEDED)
    if sheet.is_long(columns):
        raise RefusedInput("page.details", "a details page, or the long form of a --metrics run")
    return (columns, delimiter) if any("__" in c for c in columns) else ([], "")
