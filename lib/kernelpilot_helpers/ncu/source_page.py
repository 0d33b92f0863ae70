"""The source page in its four views, repeated for each kernel, as lines with their metrics."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kernelpilot_helpers.ncu import columns, limits, quantity, separators, sniff
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import File, Line, Report

_TITLE = re.compile(r'"(Kernel Name|Function Name|File Path|File Name)","(.*?)",?\s*$')
_TEXTS = frozenset(("Address Space", "Access Operation", "Access Size", "L2 Explicit Evict Policies"))
"""Columns of words."""
MAX_LINES = 1_000_000
MAX_TEXT = 1000
"""Characters of a line of code."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Counts(Mapping[str, float]):
    """Metrics of one line: names shared by the table, numbers of this line; a cell without a number is no key."""

    index: Mapping[str, int]
    numbers: Sequence[float]

    def __getitem__(self, name: str) -> float:
        value = self.numbers[self.index[name]]
        if math.isnan(value):
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, at in self.index.items() if not math.isnan(self.numbers[at]))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(kw_only=True, slots=True)
class _Page:
    """What has been read so far: the titles above the table, its columns, and where the last source line was."""

    locale: str
    kernel: str = ""
    file: str = ""
    header: list[str] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    """Columns of code: one, or two where both source and instructions are shown."""
    index: dict[str, int] = field(default_factory=dict)
    line: int | None = None
    lines: list[Line] = field(default_factory=list)
    ignored: int = 0

    def take(self, number: int, record: str) -> None:
        """The next line: title, head, row, or none of them."""
        title = _TITLE.match(record)
        if title and len(record) < limits.MAX_NAME * 10:
            self._title(title[1], title[2])
        elif is_header(record):
            self._head(cells(record, None, 1))
        elif self.header and record.startswith('"'):
            if not record.rstrip(",").endswith('"'):
                raise RefusedInput("source.truncated", f"line {number} ends inside a quoted cell")
            self._row(number, cells(record, len(self.header), self.codes[0]))
        elif record:
            self.ignored += 1

    def _title(self, what: str, text: str) -> None:
        if what in ("Kernel Name", "Function Name"):
            self.kernel = text.strip()[: limits.MAX_NAME]
        else:
            self.file = text.strip()[: limits.MAX_NAME]
            self.kernel = "" if what == "File Name" else self.kernel
        self.header, self.line = [], None

    def _head(self, names: list[str]) -> None:
        if len(names) > limits.MAX_COLUMNS:
            raise RefusedInput("file.too_large", f"{len(names)} columns; at most {limits.MAX_COLUMNS} are read")
        self.header = names
        self.codes = [at for at, name in enumerate(names) if name == "Source"]
        skipped = {"#", "Line No", "Address", "Source", *_TEXTS}
        numbers = [at for at, name in enumerate(names) if name not in skipped]
        self.index = {columns.metric(names[at]): place for place, at in enumerate(numbers)}
        if len(self.index) != len(numbers) or not self.codes:
            raise RefusedInput("page.damaged", "a column stands twice in the head line, or none holds code")

    def _row(self, number: int, row: list[str]) -> None:
        if len(row) != len(self.header):
            raise RefusedInput("source.truncated", f"line {number} holds {len(row)} of {len(self.header)} cells")
        if len(self.lines) >= MAX_LINES:
            raise RefusedInput("file.too_large", f"more than {MAX_LINES} lines of code")
        named = dict(zip(self.header[: self.codes[-1]], row, strict=False))
        address, place = _address(named.get("Address", "")), _integer(named.get("Line No", named.get("#", "")))
        code = row[self.codes[-1] if address is not None or "Line No" not in self.header else self.codes[0]].strip()
        if address is None and place is None and not code:
            return  # a gap between two parts of a function
        if place is not None and "Line No" in self.header:
            self.line = place
        view: Literal["sass", "ptx", "cuda"] = "cuda"
        if "Line No" not in self.header or address is not None:
            view = "sass"
        elif not self.file:
            view = "ptx"
        skipped = {"#", "Line No", "Address", "Source", *_TEXTS}
        texts = [text for name, text in zip(self.header, row, strict=True) if name not in skipped]
        self.lines.append(
            Line(
                kernel=self.kernel,
                view=view,
                address=address,
                file=self.file,
                line=self.line,
                text=code[:MAX_TEXT],
                metrics=Counts(index=self.index, numbers=array("d", [_number(t, self.locale) for t in texts])),
            )
        )


def parse(data: bytes, *, name: str, sha256: str) -> Report:
    """Lines of a source page; it has no launches. Raises RefusedInput with what was found instead, or is wrong."""
    sniff.binary(data[:4096])
    text = sniff.decode(data)
    records = text.splitlines()
    locale = separators.decide(_sample(records))
    page = _Page(locale="C" if locale in ("C assumed", "mixed") else locale)
    for number, record in enumerate(records, start=1):
        page.take(number, record.rstrip())
    if not page.lines:
        raise RefusedInput("source.truncated", "a source page without a line of code")
    file = File(name=name, bytes=len(data), sha256=sha256, form="source")
    return Report(files=(file,), launches=(), lines=tuple(page.lines), ignored_lines=page.ignored)


def is_header(record: str) -> bool:
    """Whether a line is the head line of a source page's table."""
    return record.startswith(('"Address","Source"', '"Line No","Source"', '"#","Address","Source"', '"#","Source"'))


def cells(record: str, count: int | None, code: int) -> list[str]:
    """Cells of a row, of which all are quoted. Quotes inside a line of code are not doubled: the surplus is its own.

    >>> cells('"8","f("%s","x");","14"', 3, 1)
    ['8', 'f("%s","x");', '14']
    """
    parts = record.rstrip(",").removeprefix('"').removesuffix('"').split('","')
    surplus = 0 if count is None else len(parts) - count
    if surplus > 0:
        parts[code : code + surplus + 1] = ['","'.join(parts[code : code + surplus + 1])]
    return parts


def _sample(records: Sequence[str]) -> Iterator[separators.Cell]:
    """Cells behind the code of some rows."""
    for record in records[:2000]:
        if record.startswith('"') and not is_header(record):
            yield from (("", "", text) for text in record[-400:].rstrip('",').split('","')[1:])


def _address(text: str) -> int | None:
    digits = text.strip()
    try:
        return int(digits, 16) if len(digits) <= 18 and digits not in ("", "-") else None
    except ValueError:
        return None


def _integer(text: str) -> int | None:
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def _number(text: str, locale: str) -> float:
    """NaN where the cell holds no number."""
    if text.isascii() and text.isdigit() and len(text) < 16:
        return float(text)
    value = quantity.number(text, locale)
    return math.nan if value is None else value
