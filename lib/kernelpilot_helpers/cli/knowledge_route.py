"""``kernelpilot knowledge route``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common
from kernelpilot_helpers.cli.knowledge_lines import brief, page_hit
from kernelpilot_helpers.cli.knowledge_options import data_option, index_option

if TYPE_CHECKING:
    from kernelpilot_helpers.knowledge import Record, Route


@click.command("route")
@click.argument("digest", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--limit", type=click.IntRange(1, 10), default=3, show_default=True, help="most techniques")
@index_option
@data_option
@common.json_option
def route(digest: Path, limit: int, index: Path | None, data: Path | None, as_json: bool) -> int:
    """Lead from a DIGEST (kernelpilot ncu digest --json) to techniques: why, code that did it, pitfalls, refutation."""
    from kernelpilot_helpers import knowledge, records
    from kernelpilot_helpers.knowledge.route import stop_of

    content = records.read_bytes(digest, fix="kernelpilot ncu digest REPORT.ncu-rep --json > digest.json")

    def led(tables: Any) -> Any:
        case = knowledge.case_of(content, knowledge.listing.lexicon(tables), at=str(digest))
        return case, knowledge.route(tables, case, limit, stop=stop_of(content))

    case, found = knowledge.asked(knowledge.read(index, data), led)
    out = {
        "class": case.class_name,
        "kernel": case.kernel,
        "arch": f"sm{case.capability}" if case.capability else "",
        "families": list(case.families),
        "dtypes": list(case.dtypes),
        "stop": found.stop,
        "routes": [_route(item) for item in found.routes],
        "pages": [page_hit(page) for page in found.pages],
        "rejected": [{"rule": name, "why": why} for name, why in found.rejected],
    }
    lines = [f"page {page.path}  {page.title}" for page in found.pages[:1]]
    lead = "beyond the stop: " if found.stop else ""
    if found.stop:
        lines.insert(0, f"[stop] {found.stop}")
    text = "\n".join([*lines, *(line for item in found.routes for line in _route_lines(item, lead))])
    hint = f"no rule speaks for {case.class_name}; follow the digest's own next step"
    common.emit(out, as_json=as_json, text=text or hint)
    return 0


def _route(item: Route) -> dict[str, Any]:
    return {
        "rule": item.rule,
        "technique": item.technique,
        "page": item.page,
        "why": list(item.why),
        "mechanisms": list(item.mechanisms),
        "records": [{**brief(found.record), "lines": found.lines} for found in item.evidence],
        "pitfalls": [brief(record) for record in item.pitfalls],
        "refute": item.refute,
    }


def _route_lines(item: Route, lead: str) -> list[str]:
    lines = [f"{lead}{item.technique}  [{'; '.join(item.why)}]"]
    for found in item.evidence:
        added = ", ".join(f"{name} {count}" for name, count in found.lines.items())
        symbol = found.record.symbols[0] if found.record.symbols else "file"
        place = f"{found.record.kernel_files[0]}:{symbol}" if found.record.kernel_files else symbol
        lines.append(f"  {found.record.id}  {place}  adds {added}"[:158])
    lines += [f"  fix in the same file: {_fix(record)}" for record in item.pitfalls]
    page = [f"  page: {item.page}"] if item.page else []
    return [*lines, *page, f"  refuted when: {item.refute}"]


def _fix(record: Record) -> str:
    """The whole line: a path that is cut cannot be opened."""
    return "  ".join((record.id, record.label, *record.kernel_files[:1]))
