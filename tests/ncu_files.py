"""Exports for the digest's tests: committed captures, and small raw pages made up cell by cell."""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

from kernelpilot_helpers import ncu
from kernelpilot_helpers.ncu import load
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import Launch, Report

GOLDEN = Path(__file__).parent / "golden" / "ncu"
ID = ["ID", "Process ID", "Kernel Name", "Stream", "Block Size", "Grid Size", "Device", "CC"]
Rows = list[list[str]]


def capture(name: str) -> bytes:
    """Bytes of a committed export."""
    return lzma.decompress((GOLDEN / f"{name}.xz").read_bytes())


def digest(data: bytes, *, min_bytes: int | None = None) -> ncu.Digest:
    """Digest of bytes under a neutral name."""
    return ncu.digest(
        data, source=ncu.Input(name="x.csv", bytes=len(data), sha256="0" * 64), path="x.csv", min_bytes=min_bytes
    )


def read(data: bytes) -> Report:
    """Report of the bytes of one file of any form, under a neutral name."""
    return load.read(data, name="x", sha256="0" * 64)


def code(data: bytes) -> str:
    """Refusal code of some bytes; empty when they hold a report."""
    try:
        read(data)
    except RefusedInput as fault:
        return fault.code
    return ""


def numbers(launch: Launch) -> dict[str, float | int | str]:
    """Value or text of each metric."""
    return {k: v.text if v.number is None else v.number for k, v in launch.metrics.items()}


def rows_of(data: bytes) -> Rows:
    """Head, units and launches of a raw page."""
    return [r for r in csv.reader(io.StringIO(data.decode())) if len(r) > 100]


def page(rows: Sequence[Sequence[str]], *, end: str = "\n") -> bytes:
    """Rows as ncu writes them: every cell quoted."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator=end).writerows(rows)
    return out.getvalue().encode()


def made(
    metrics: dict[str, tuple[str, str]], *, kernel: str = "k(int)", grid: str = "(1000, 1, 1)", cc: str = "9.0"
) -> bytes:
    """A raw page with one launch of the given metrics: name -> (unit, text)."""
    units = [u for u, _ in metrics.values()]
    values = [v for _, v in metrics.values()]
    return page(
        [
            [*ID, *metrics],
            [*[""] * len(ID), *units],
            ["0", "1", kernel, "7", "(256, 1, 1)", grid, "0", cc, *values],
        ]
    )


def rewritten(data: bytes, change: Callable[[str, str, str], tuple[str, str]]) -> bytes:
    """A raw page with ``change(name, unit, text) -> (unit, text)`` applied to every metric cell."""
    head, units, *launches = rows_of(data)
    first = next(ix for ix, name in enumerate(head) if "__" in name)
    new_units = list(units)
    for row in launches:
        for ix in range(first, len(head)):
            new_units[ix], row[ix] = change(head[ix], units[ix], row[ix])
    return page([head, new_units, *launches])
