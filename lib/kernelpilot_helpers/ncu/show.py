"""Every value of a report with its unit and where it stands in which file: rows, CSV text, or a pandas table."""

from __future__ import annotations

import csv
import fnmatch
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kernelpilot_helpers.errors import ToolMissing
from kernelpilot_helpers.ncu.plain import clean
from kernelpilot_helpers.ncu.report import Launch, Report

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("launch", "kernel", "grid", "block", "device", "process", "metric", "value", "unit", "file", "row")
_WIDE = 64
_LONG = 4000


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One value of one launch in its base unit."""

    launch: str
    kernel: str
    grid: str
    block: str
    device: str
    process: str
    metric: str
    value: float | int | str
    unit: str
    file: str
    row: int


def rows(report: Report, *, kernel: str = "", metric: str = "") -> Iterator[Row]:
    """All values in the order of the file, metrics by name. ``kernel``: part of a name; ``metric``: a glob."""
    names = [file.name for file in report.files]
    for launch in report.launches:
        if kernel and kernel not in launch.kernel and kernel not in launch.function:
            continue
        yield from _of(launch, names, metric)


def _of(launch: Launch, names: Sequence[str], metric: str) -> Iterator[Row]:
    wanted = sorted(launch.metrics)
    for name in fnmatch.filter(wanted, metric) if metric else wanted:
        value = launch.metrics.get(name)
        if value is None:
            continue
        yield Row(
            launch=launch.id,
            kernel=launch.kernel,
            grid=launch.grid,
            block=launch.block,
            device=launch.device,
            process=launch.process,
            metric=name,
            value=value.text if value.number is None else value.number,
            unit=value.unit,
            file=names[value.file] if value.file < len(names) else "",
            row=value.row,
        )


def frame(report: Report, *, kernel: str = "", metric: str = "") -> pd.DataFrame:
    """The same rows as a table; ``value`` holds numbers, ``text`` what is no number.

    Raises ToolMissing without pandas.
    """
    try:
        import pandas  # noqa: ICN001, PLC0415 - half a second that only a table needs
    except ImportError:
        raise ToolMissing(
            "a table needs pandas, which is not installed", fix=f"{sys.executable} -m pip install pandas"
        ) from None
    data: dict[str, list[Any]] = {name: [] for name in (*COLUMNS, "text")}
    for row in rows(report, kernel=kernel, metric=metric):
        for name in COLUMNS:
            data[name].append(_flat(getattr(row, name)))
        number = not isinstance(row.value, str)
        data["value"][-1] = float(row.value) if number else float("nan")
        data["text"].append("" if number else _flat(row.value))
    return pandas.DataFrame(data)


def as_csv(found: Iterable[Row]) -> str:
    """CSV text, C locale, full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([safe(_flat(getattr(row, name))) for name in COLUMNS] for row in found)
    return out.getvalue()


def _flat(value: object) -> object:
    """A cell that a terminal prints on one line, whatever a kernel or a file is called."""
    return clean(value, _LONG) if isinstance(value, str) and value else value


def safe(value: object) -> object:
    """A cell that no spreadsheet takes for a formula.

    >>> safe("=1+1"), safe(-1.5)
    ("'=1+1", -1.5)
    """
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value


def text(found: Iterable[Row]) -> str:
    """One block a launch: metric, value, unit, place."""
    lines: list[str] = []
    last = None
    for row in found:
        if (place := (row.launch, row.kernel, row.process)) != last:
            lines += ["", f"{clean(row.kernel)}  launch {row.launch}  grid {row.grid}  block {row.block}"]
            last = place
        value = clean(row.value, 120) if isinstance(row.value, str) else f"{row.value:,}"
        lines.append(f"  {row.metric:<{_WIDE}} {value:>20} {row.unit:<10} {clean(row.file)}:{row.row}".rstrip())
    return "\n".join(lines[1:]) or "no value matches"
