"""``kernelpilot knowledge search|show|check``, and the ones of knowledge_more and knowledge_route."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import (
    common,
    knowledge_mark,
    knowledge_more,
    knowledge_next,
    knowledge_open,
    knowledge_route,
)
from kernelpilot_helpers.cli.knowledge_lines import clipped, page_hit, page_line, page_object, tier_of
from kernelpilot_helpers.cli.knowledge_options import data_option, filter_options, filters_of, index_option, refusing

if TYPE_CHECKING:
    from kernelpilot_helpers.knowledge import Hit, Record

SHOWN = 5
"""Hits printed by default: an agent reads ten lines whole."""
LINES = 10
"""Printed without --limit: a hit takes two, a page one."""


@click.group("knowledge")
def command() -> None:
    """Facts about changes that made CUDA kernels faster: find one, then open its code, test and benchmark."""


@command.command("search")
@click.argument("text", nargs=-1, required=True)
@filter_options
@click.option("--limit", type=click.IntRange(1, 50), default=None, help="most hits (default: 5, with --json 10)")
@index_option
@data_option
@common.json_option
def search(
    text: tuple[str, ...], limit: int | None, index: Path | None, data: Path | None, as_json: bool, **said: Any
) -> int:
    """Search by identifier, mechanism or symptom. Without a hit: exit 0, and near words.

    A page that is about just this stands first, others last.

    TEXT is an identifier (int8_scaled_mm, cp.async), a mechanism or a symptom (bank conflicts).
    """
    from kernelpilot_helpers import knowledge
    from kernelpilot_helpers.knowledge import suggest

    asked = " ".join(text)
    if not asked.strip():
        raise click.UsageError("TEXT is empty: want an identifier, a mechanism or a symptom")
    most = limit or (10 if as_json else SHOWN)
    with refusing():
        answer = knowledge.search(knowledge.read(index, data), asked, filters_of(said), most)
    out = {
        "hits": [_hit(hit) for hit in answer.hits],
        "pages": [page_hit(page) for page in answer.pages],
        "suggestions": list(answer.suggestions),
    }
    shown = answer.hits[: (LINES - len(answer.pages)) // 2] if answer.pages and limit is None else answer.hits
    lines = [page_line(page) for page in answer.pages if page.first]
    lines += [line for hit in shown for line in _lines(hit)]
    if not shown:
        lines.append(suggest.told(answer.kind, answer.suggestions, pages=bool(answer.pages)))
    lines += [page_line(page) for page in answer.pages if not page.first]
    common.emit(out, as_json=as_json, text="\n".join(lines))
    return 0


def _lines(hit: Hit) -> tuple[str, str]:
    from kernelpilot_helpers import knowledge

    record = hit.record
    mark = "" if record.state != "open" else "open, check before use: "
    first = next(iter(knowledge.open_first(record)), "")
    return clipped(f"{record.id}  {mark}{record.label}"), clipped(f"    {first}  {hit.why}")


def _hit(hit: Hit) -> dict[str, Any]:
    from kernelpilot_helpers import knowledge

    record = hit.record
    return {
        "id": record.id,
        "label": record.label,
        "why": hit.why,
        "score": hit.score,
        "lesson": record.lesson,
        "repo": record.repo,
        "pr": record.pr,
        "url": knowledge.url(record),
        "files": list(knowledge.open_first(record)),
        "symbols": list(record.symbols),
        "archs": list(record.archs),
        "families": list(record.families),
        "dtypes": list(record.dtypes),
        "tier": record.tier,
        "state": record.state,
        "sha": record.sha,
    }


@command.command("show")
@click.argument("record_id", metavar="ID")
@index_option
@data_option
@common.json_option
def show(record_id: str, index: Path | None, data: Path | None, as_json: bool) -> int:
    """Print a whole record and the files to open first, or a page.

    ID is owner/name#number, name#number, owner/name@sha12, an address, or a commit; techniques/swap-ab is a page.
    """
    import msgspec

    from kernelpilot_helpers import knowledge

    record = knowledge.asked(knowledge.read(index, data), lambda tables: knowledge.listing.named(tables, record_id))
    if isinstance(record, knowledge.Page):
        common.emit(page_object(record), as_json=as_json, text=record.text.rstrip())
        return 0
    out = {
        "record": msgspec.to_builtins(record),
        "url": knowledge.url(record),
        "open_first": list(knowledge.open_first(record)),
    }
    common.emit(out, as_json=as_json, text=_page(record))
    return 0


def _page(record: Record) -> str:
    from kernelpilot_helpers import knowledge

    terms = ", ".join(f"{name} {lines}" for name, lines in record.diff_terms.items())
    when = "seen open" if record.state == "open" else "pushed" if record.state == "direct" else "merged"
    lines = [
        f"{record.id}  {record.label}",
        *([f"  {record.lesson}"] if record.lesson else []),
        f"  {knowledge.url(record)}",
        f"  {when} {record.merged_at} as {record.sha}",
        f"  {tier_of(record)}",
        f"  families {', '.join(record.families)}; archs {', '.join(record.archs) or 'unknown'}",
        f"  data types {', '.join(record.dtypes) or 'unknown'}",
        f"  languages {', '.join(record.kinds)}",
        "  open first:",
        *(f"    {path}" for path in knowledge.open_first(record)),
        f"  symbols: {', '.join(record.symbols) or 'none named'}",
        f"  mechanisms (added lines): {terms or 'none counted'}",
    ]
    if record.lesson:
        lines.append(f"  lesson read from: {', '.join(record.read)}")
    if record.techniques:
        lines.append(f"  techniques: {', '.join(f'techniques/{name}' for name in record.techniques)}")
    if record.claims:
        lines.append(f"  numbers it names, not measured here: {', '.join(record.claims)}")
    return "\n".join(lines)


@command.command("check")
@index_option
@data_option
@common.json_option
def check(index: Path | None, data: Path | None, as_json: bool) -> int:
    """Check facts, lessons, vocabulary and pages: schema, ids, commits, words, links. Exit 1 on a finding."""
    from kernelpilot_helpers import knowledge

    found = knowledge.checked(knowledge.read(index, data))
    faults, count = found.faults, 0 if found.faults else found.records
    out = {
        "pass": not faults,
        "records": count,
        "findings": [{"where": f.where, "what": f.what, "fix": f.fix} for f in faults],
    }
    text = "\n".join(f"{f.where}: {f.what}\n  fix: {f.fix}" for f in faults) or f"{count} records, all sound"
    common.emit(out, as_json=as_json, text=text)
    return 1 if faults else 0


for _more in (
    knowledge_more.term,
    knowledge_more.facets,
    knowledge_more.like,
    knowledge_next.next_,
    knowledge_open.open_,
    knowledge_mark.mark_read,
    knowledge_route.route,
):
    command.add_command(_more)
