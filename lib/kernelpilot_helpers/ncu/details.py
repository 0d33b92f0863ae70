"""The details page, and the long form of a ``--metrics`` run, as launches: one row a metric, and one a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import identity, labels, limits, quantity, separators, sheet, sniff, wide
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import Advice, File, Launch, Report, Rule, Scope, Series, Session, Value

_COMMAND_LINE = "Command line profiler metrics"
_TYPES: Mapping[str, Advice] = {"INF": "ok", "OPT": "optimization", "WRN": "warning", "ERR": "error"}
_SCOPES: Mapping[str, Scope] = {"local": "local", "global": "global"}
MAX_TEXT = 8192
"""Characters of a rule's text."""
MAX_ROWS = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """One metric of a launch, as printed."""

    line: int
    section: str
    label: str
    unit: str
    text: str


@dataclass(kw_only=True, slots=True)
class _Workload:
    """What the rows of one launch have said so far."""

    identity: Mapping[str, str]
    line: int
    rows: list[_Row] = field(default_factory=list)
    rules: list[Mapping[str, str]] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class _Page:
    """What has been read so far. Every process of a live run writes a table of its own, with ids from 0."""

    header: list[str] = field(default_factory=list)
    delimiter: str = ""
    tables: int = 0
    count: int = 0
    ignored: int = 0
    workloads: dict[tuple[str, ...], _Workload] = field(default_factory=dict)

    def take(self, line: int, record: str) -> None:
        """The next logical line: head, metric, rule, or none of them."""
        columns, delimiter = header(record)
        if columns:
            self.header, self.delimiter = columns, delimiter
            self.tables += 1
            return
        cells = self._cells(line, record) if self.header else None
        if cells is None:
            self.ignored += 1
            return
        self.count += 1
        if self.count > MAX_ROWS:
            raise RefusedInput("file.too_large", f"more than {MAX_ROWS} rows")
        row = dict(zip(self.header, cells, strict=False))
        key = (str(self.tables), row["ID"].strip(), row.get("Process ID", ""), row["Kernel Name"])
        if key not in self.workloads and len(self.workloads) >= limits.MAX_LAUNCHES:
            raise RefusedInput("file.too_large", f"more than {limits.MAX_LAUNCHES} launches")
        known = self.workloads.setdefault(key, _Workload(identity=row, line=line))
        if row.get("Metric Name", "").strip():
            known.rows.append(
                _Row(
                    line=line,
                    section=row.get("Section Name", "").strip(),
                    label=row["Metric Name"].strip()[: limits.MAX_NAME],
                    unit=row.get("Metric Unit", "").strip(),
                    text=row["Metric Value"].strip(),
                )
            )
        elif row.get("Rule Name", "").strip():
            known.rules.append(row)

    def _cells(self, line: int, record: str) -> list[str] | None:
        """A row of the table, or None for a banner or a program's own output. Raises RefusedInput for a cut row."""
        if record.startswith("=="):
            return None
        cells = sheet.split(record, self.delimiter)
        at = self.header.index("ID")
        is_row = cells is not None and at < len(cells) and cells[at].strip().isdigit() and len(cells) > 3
        if not is_row and not sheet.looks_cut(record):
            return None
        # Rows of metrics end behind the value; only those of rules fill the head line's columns.
        needed = 1 + max(self.header.index(c) for c in ("ID", "Kernel Name", "Metric Name", "Metric Value"))
        if cells is None or not needed <= len(cells) <= len(self.header) + 1:
            count = 0 if cells is None else len(cells)
            raise RefusedInput("details.truncated", f"line {line} holds {count} cells, not {needed} or more")
        return cells


def parse(data: bytes, *, name: str, sha256: str) -> Report:
    """Launches of a details page. Raises RefusedInput with what was found instead, or what is wrong with the page.

    Labels become metric names; one that is not known stays as ``section/label`` and cannot carry a diagnosis.
    """
    sniff.binary(data[:4096])
    text = sniff.decode(data)
    page = _Page()
    for line, record in sheet.records(text):
        page.take(line, record)
    if not page.header:
        raise sniff.no_table(text)
    if not page.workloads:
        raise RefusedInput("details.no_launches", "a details page without a launch")
    age = labels.age(frozenset(r.label for w in page.workloads.values() for r in w.rows))
    named = [(w, [(_metric(r, age), r) for r in w.rows]) for w in page.workloads.values()]
    locale = separators.decide((metric, r.unit, r.text[:64]) for _, rows in named for metric, r in rows)
    if locale == "mixed":
        raise RefusedInput("details.mixed_locale", "some cells have a decimal point, others a decimal comma")
    file = File(name=name, bytes=len(data), sha256=sha256, form="details")
    launches = tuple(_launch(w, rows, locale) for w, rows in named)
    return Report(
        files=(file,),
        launches=launches,
        session=Session(host=next((h for w in page.workloads.values() if (h := identity.host(w.identity))), "")),
        locale=locale,
        ignored_lines=page.ignored,
        notes=tuple(_notes(launches)),
    )


def header(record: str) -> tuple[list[str], str]:
    """The head line's columns and delimiter, found by content; empty for another line."""
    columns, delimiter = sheet.head(record, identity.NEEDED)
    return (columns, delimiter) if sheet.is_long(columns) else ([], "")


def _metric(row: _Row, age: labels.Age) -> str:
    if row.section == _COMMAND_LINE or "__" in row.label or ":" in row.label:
        return row.label
    return labels.metric(row.section, row.label, age=age) or f"{row.section}/{row.label}"


def _launch(workload: _Workload, rows: list[tuple[str, _Row]], locale: str) -> Launch:
    metrics: dict[str, Value] = {}
    series: dict[str, Series] = {}
    for metric, row in rows:
        if metric in metrics:
            continue  # the same metric, under the title of another section
        factor, unit = quantity.scale(row.unit)
        if quantity.present(row.text):
            metrics[metric] = wide.value(row.text, factor, unit, locale=locale, line=row.line)
        if found := wide.series(metric, row.text, factor, locale):
            series.setdefault(metric, found)
    return identity.launch(
        workload.identity,
        metrics=metrics,
        series=series,
        rules=tuple(_rule(row, locale) for row in workload.rules),
        sections=tuple(dict.fromkeys(_sections(workload))),
        place=f"row {workload.line}",
    )


def _sections(workload: _Workload) -> Iterator[str]:
    """Ids of the sections that have rows."""
    for row in workload.rows:
        if found := labels.section_id(row.section):
            yield found
    for rule in workload.rules:
        if found := rule.get("Section Name", "").strip():
            yield found[:100]


def _rule(row: Mapping[str, str], locale: str) -> Rule:
    return Rule(
        id=row["Rule Name"].strip()[:100],
        section=row.get("Section Name", "").strip()[:100],
        type=_TYPES.get(row.get("Rule Type", "").strip(), "none"),
        title="",
        text=row.get("Rule Description", "").strip()[:MAX_TEXT],
        speedup=quantity.number(row.get("Estimated Speedup", ""), locale),
        scope=_SCOPES.get(row.get("Estimated Speedup Type", "").strip(), ""),
    )


def _notes(launches: tuple[Launch, ...]) -> Iterator[str]:
    unknown = {name for launch in launches for name in launch.metrics if "/" in name and "__" not in name}
    if unknown:
        shown = ", ".join(sorted(unknown)[:5])
        yield f"{len(unknown)} labels without a known metric name: {shown}"
