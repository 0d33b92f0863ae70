"""``kernelpilot knowledge search|show|check``, and the ones of knowledge_more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common, knowledge_more
from kernelpilot_helpers.cli.knowledge_options import data_option, filter_options, filters_of, index_option, refusing

if TYPE_CHECKING:
    from kernelpilot_helpers.knowledge import Hit, Record

SHOWN = 5
"""Hits printed by default: an agent reads ten lines whole."""
WIDTH = 158
NOTHING = {
    "near": "near words",
    "filters": "found without",
    "families": "no word of the index is near; name a mechanism, a symptom or a family",
}


@click.group("knowledge")
def command() -> None:
    """Facts about pull requests that made CUDA kernels faster: find one, then open its code, test and benchmark."""


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
    """Search by identifier, mechanism or symptom. Without a hit: exit 0, and what to try instead.

    TEXT is an identifier (int8_scaled_mm, cp.async), a mechanism or a symptom (bank conflicts).
    """
    from kernelpilot_helpers import knowledge

    asked = " ".join(text)
    if not asked.strip():
        raise click.UsageError("TEXT is empty: want an identifier, a mechanism or a symptom")
    most = limit or (10 if as_json else SHOWN)
    with refusing():
        answer = knowledge.search(knowledge.read(index, data), asked, filters_of(said), most)
    out = {"hits": [_hit(hit) for hit in answer.hits], "suggestions": list(answer.suggestions)}
    lines = [line for hit in answer.hits for line in _lines(hit)]
    if not lines:
        lines.append(f"nothing found; {NOTHING[answer.kind]}: {', '.join(answer.suggestions)}")
    common.emit(out, as_json=as_json, text="\n".join(lines))
    return 0


def _lines(hit: Hit) -> tuple[str, str]:
    from kernelpilot_helpers import knowledge

    record = hit.record
    mark = "" if record.state != "open" else "open, check before use: "
    first = next(iter(knowledge.open_first(record)), "")
    return f"{record.id}  {mark}{record.label}"[:WIDTH], f"    {first}  {hit.why}"[:WIDTH]


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
    """Print a whole record and the files to open first: code, test, benchmark before prose.

    ID is owner/name#number, name#number, owner/name@sha12, an address, or a commit.
    """
    import msgspec

    from kernelpilot_helpers import knowledge

    record = knowledge.asked(knowledge.read(index, data), lambda tables: knowledge.listing.find(tables, record_id))
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
        f"  {when} {record.merged_at} as {record.sha}; tier {record.tier or 'none'}",
        f"  families {', '.join(record.families)}; archs {', '.join(record.archs) or 'unknown'}",
        f"  data types {', '.join(record.dtypes) or 'unknown'}",
        f"  languages {', '.join(record.kinds)}",
        "  open first:",
        *(f"    {path}" for path in knowledge.open_first(record)),
        f"  symbols: {', '.join(record.symbols) or 'none named'}",
        f"  mechanisms (added lines): {terms or 'none counted'}",
    ]
    if record.claims:
        lines.append(f"  numbers it names, not measured here: {', '.join(record.claims)}")
    return "\n".join(lines)


@command.command("check")
@index_option
@data_option
@common.json_option
def check(index: Path | None, data: Path | None, as_json: bool) -> int:
    """Check the index: schema, ids, commits, sorted words, label and lesson; pages, links. Exit 1 on a finding."""
    from kernelpilot_helpers import knowledge

    source = knowledge.read(index, data)
    faults = [*knowledge.check(source), *knowledge.check_pages(index or knowledge.bundle_folder())]
    count = 0 if faults else len(knowledge.load(source).records)
    out = {
        "pass": not faults,
        "records": count,
        "findings": [{"where": f.where, "what": f.what, "fix": f.fix} for f in faults],
    }
    text = "\n".join(f"{f.where}: {f.what}\n  fix: {f.fix}" for f in faults) or f"{count} records, all sound"
    common.emit(out, as_json=as_json, text=text)
    return 1 if faults else 0


for _more in knowledge_more.COMMANDS:
    command.add_command(_more)
