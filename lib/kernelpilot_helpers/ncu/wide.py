"""One row of a raw page as mappings from metric to value and to instances, decoded cell by cell when asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import quantity, sheet
from kernelpilot_helpers.ncu.report import Series, Value

_OVER_TIME = re.compile(r"[A-Z_]+\.Triage|pmsampling:|profiler__(pmsampler_ctxsw|timestamp_workload)_")
"""Metrics whose instances are samples over time."""


@dataclass(kw_only=True, slots=True)
class Columns:
    """What the rows of one table share. The locale is known only when the whole file was read."""

    index: dict[str, int]
    """Metric columns alone."""
    scales: list[tuple[float, str]]
    """Of each column: factor to the base unit, and its name."""
    delimiter: str
    locale: str = ""
    last: tuple[str, list[str]] = ("", [])
    """The record that was split last: a thousand launches are not all held in pieces."""

    def cells(self, record: str) -> list[str]:
        """Cells of a record that is known to be whole."""
        if self.last[0] is not record:
            self.last = (record, sheet.split(record, self.delimiter) or [])
        return self.last[1]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Row(Mapping[str, Value]):
    """Metrics of one launch. Cells that hold nothing (``n/a``, empty, ``nan``) are no keys: absent is never 0."""

    columns: Columns = field(repr=False)
    record: str = field(repr=False)
    line: int

    def __getitem__(self, name: str) -> Value:
        at = self.columns.index[name]
        text = self.columns.cells(self.record)[at]
        if not quantity.present(text):
            raise KeyError(name)
        factor, unit = self.columns.scales[at]
        return value(text, factor, unit, locale=self.columns.locale, line=self.line)

    def __iter__(self) -> Iterator[str]:
        cells = self.columns.cells(self.record)
        return (name for name, at in self.columns.index.items() if quantity.present(cells[at]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        at = self.columns.index.get(name) if isinstance(name, str) else None
        return at is not None and quantity.present(self.columns.cells(self.record)[at])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Instances(Mapping[str, Series]):
    """Instance values of one launch, where the page was printed with them. The page has no keys of instances."""

    columns: Columns = field(repr=False)
    record: str = field(repr=False)

    def __getitem__(self, name: str) -> Series:
        at = self.columns.index[name]
        found = series(name, self.columns.cells(self.record)[at], self.columns.scales[at][0], self.columns.locale)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        cells = self.columns.cells(self.record)
        return (name for name, at in self.columns.index.items() if quantity.instances(cells[at], "C"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def value(text: str, factor: float, unit: str, *, locale: str, line: int) -> Value:
    """Value of a cell that holds an aggregate, in base units."""
    number = quantity.number(text, locale)
    if number is None:
        return Value(number=None, text=quantity.aggregate(text), row=line)
    return Value(number=number * factor, unit=unit, row=line)


def series(name: str, text: str, factor: float, locale: str) -> Series | None:
    """Instances of a cell in base units; None when it was printed without."""
    found = quantity.instances(text, locale)
    if not found:
        return None
    scaled = tuple(part * factor if isinstance(part, float) else part for part in found)
    return Series(keys=(), values=scaled, kind=int(bool(_OVER_TIME.match(name))))
