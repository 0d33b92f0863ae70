"""``kernelpilot knowledge term|facets|like``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common
from kernelpilot_helpers.cli.knowledge_lines import brief, line_of, page_hit, page_line
from kernelpilot_helpers.cli.knowledge_options import (
    data_option,
    filter_options,
    filters_of,
    index_option,
    refusing,
)

if TYPE_CHECKING:
    from kernelpilot_helpers.knowledge.holders import Held

limit_option = click.option("--limit", type=click.IntRange(1, 200), default=8, show_default=True, help="most records")


@click.command("term")
@click.argument("token")
@filter_options
@limit_option
@index_option
@data_option
@common.json_option
def term(token: str, limit: int, index: Path | None, data: Path | None, as_json: bool, **said: Any) -> int:
    """Records and pages that hold an identifier or counter, or add most lines of a mechanism: who uses setmaxnreg?

    The index counts mechanisms, not each spelling: of another name, such as griddepcontrol.wait, it says which
    records name it themselves and which only add its mechanism.
    """
    from kernelpilot_helpers import knowledge
    from kernelpilot_helpers.knowledge import holders

    with refusing():
        found = knowledge.asked(
            knowledge.read(index, data), lambda tables: holders.held(tables, token, filters_of(said), limit)
        )
    out = {
        "mechanism": found.mechanism,
        "records": [{**brief(h.record), "lines": h.lines, "names": h.names} for h in found.holders],
        "pages": [page_hit(page) for page in found.pages],
        "suggestions": list(found.suggestions),
    }
    common.emit(out, as_json=as_json, text="\n".join(_held_lines(token, found)))
    return 0


def _held_lines(token: str, found: Held) -> list[str]:
    from kernelpilot_helpers.knowledge import suggest

    lines = []
    if found.mechanism and not found.own:
        naming = sum(holder.names for holder in found.holders)
        lines.append(
            f"{token[:80]} stands for {found.mechanism}; of these {len(found.holders)} records {naming} name it"
            " themselves, the others add lines of the mechanism, which may be spelled otherwise there"
        )
    for holder in found.holders:
        counted = f"{found.mechanism} {holder.lines} lines: " if holder.lines else ""
        mark = "names it: " if holder.names and found.mechanism and not found.own else ""
        lines.append(line_of(holder.record, mark + counted))
    lines += map(page_line, found.pages)
    if found.suggestions:
        lines.append(f"no record or page holds {token[:80]!r}: {suggest.told(found.kind, found.suggestions)}")
    return lines


@click.command("facets")
@index_option
@data_option
@common.json_option
def facets(index: Path | None, data: Path | None, as_json: bool) -> int:
    """Count the values of every filter."""
    from kernelpilot_helpers import knowledge

    found = knowledge.asked(knowledge.read(index, data), knowledge.listing.facets)
    lines = [f"{kind}: {', '.join(f'{value} {count}' for value, count in found[kind].items())}" for kind in found]
    common.emit(found, as_json=as_json, text="\n".join(lines))
    return 0


@click.command("like")
@click.argument("record_id", metavar="ID")
@filter_options
@limit_option
@index_option
@data_option
@common.json_option
def like(record_id: str, limit: int, index: Path | None, data: Path | None, as_json: bool, **said: Any) -> int:
    """Records that touch the same kernels by the same mechanisms as ID."""
    from kernelpilot_helpers import knowledge
    from kernelpilot_helpers.knowledge import suggest

    filters = filters_of(said)

    def alike(tables: Any) -> tuple[list[Any], tuple[str, tuple[str, ...]]]:
        record = knowledge.listing.find(tables, record_id)
        found = knowledge.listing.like(tables, record, filters, limit)
        question = knowledge.listing.as_question(tables, record)
        return found, ("", ()) if found else suggest.suggestions(tables, question, filters)

    with refusing():
        found, (kind, near) = knowledge.asked(knowledge.read(index, data), alike)
    out = {"records": [brief(record) for record in found], "suggestions": list(near)}
    common.emit(out, as_json=as_json, text="\n".join(map(line_of, found)) or suggest.told(kind, near))
    return 0
