"""``kernelpilot knowledge term|facets|like|next|open|mark-read|route``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common
from kernelpilot_helpers.cli.knowledge_options import (
    clone_option,
    data_option,
    filter_options,
    filters_of,
    index_option,
    refusing,
)

if TYPE_CHECKING:
    from kernelpilot_helpers.knowledge import Record, Route

limit_option = click.option("--limit", type=click.IntRange(1, 200), default=8, show_default=True, help="most records")


def _brief(record: Record) -> dict[str, Any]:
    from kernelpilot_helpers import knowledge

    files = list(knowledge.open_first(record))
    symbols = list(record.symbols)
    return {"id": record.id, "label": record.label, "url": knowledge.url(record), "files": files, "symbols": symbols}


def _line(record: Record, extra: str = "") -> str:
    first = record.kernel_files[0] if record.kernel_files else ""
    return f"{record.id}  {extra}{record.label}  {first}"[:158]


@click.command("term")
@click.argument("token")
@filter_options
@limit_option
@index_option
@data_option
@common.json_option
def term(token: str, limit: int, index: Path | None, data: Path | None, as_json: bool, **said: Any) -> int:
    """Records that add most lines of a mechanism, or hold an identifier: who uses stmatrix, setmaxnreg?"""
    from kernelpilot_helpers import knowledge

    with refusing():
        name, found = knowledge.asked(
            knowledge.read(index, data),
            lambda tables: knowledge.listing.with_token(tables, token, filters_of(said), limit),
        )
    out = {"mechanism": name, "records": [{**_brief(record), "lines": lines} for record, lines in found]}
    text = "\n".join(_line(record, f"{name} {lines} lines: " if lines else "") for record, lines in found)
    hint = f"nothing holds {token!r}; try: kernelpilot knowledge search TEXT, kernelpilot knowledge facets"
    common.emit(out, as_json=as_json, text=text or hint)
    return 0


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

    def alike(tables: Any) -> list[Record]:
        record = knowledge.listing.find(tables, record_id)
        return knowledge.listing.like(tables, record, filters_of(said), limit)

    with refusing():
        found = knowledge.asked(knowledge.read(index, data), alike)
    common.emit(
        {"records": [_brief(record) for record in found]}, as_json=as_json, text="\n".join(map(_line, found)) or "none"
    )
    return 0


@click.command("next")
@click.argument("text", nargs=-1)
@click.option("--want", type=click.IntRange(1, 500), default=50, show_default=True, help="sources to hand out")
@click.option(
    "--seen",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="a source-idea ledger (artifacts/source-ideas.jsonl): what it names is not handed out again",
)
@filter_options
@index_option
@data_option
@common.json_option
def next_(
    text: tuple[str, ...],
    want: int,
    seen: Path | None,
    index: Path | None,
    data: Path | None,
    as_json: bool,
    **said: Any,
) -> int:
    """Hand out unread sources, code first: the surest of each repository in turn, or what TEXT finds."""
    from kernelpilot_helpers import knowledge, ledger, records

    read: frozenset[str] = frozenset()
    if seen is not None:
        ideas, faults = ledger.parse_ideas(records.read_bytes(seen, fix="give --seen LEDGER"), at=str(seen))
        for fault in faults:
            common.say(f"{fault.where}: {fault.what}")
        read = knowledge.seen_names(ideas)
    with refusing():
        found, left = knowledge.asked(
            knowledge.read(index, data),
            lambda tables: knowledge.listing.unread(tables, " ".join(text), filters_of(said, read), want),
        )
    lines = [_line(record) for record in found]
    lines.append(f"{len(found)} of {left} unread; after reading: kernelpilot knowledge mark-read ID --hypothesis TEXT")
    out = {"records": [_brief(record) for record in found], "unread": left, "seen": len(read)}
    common.emit(out, as_json=as_json, text="\n".join(lines))
    return 0


@click.command("open")
@click.argument("record_id", metavar="ID")
@click.option("--file", "path", default="", metavar="PATH", help="this file as the record left it, whole")
@clone_option
@index_option
@data_option
@common.json_option
def open_(record_id: str, path: str, clone: Path | None, index: Path | None, data: Path | None, as_json: bool) -> int:
    """Show the change, or one file, from a clone on this machine; without a clone print where to read it."""
    from kernelpilot_helpers import knowledge

    record = knowledge.asked(knowledge.read(index, data), lambda tables: knowledge.listing.find(tables, record_id))
    found = knowledge.clones.clone_of(record, clone)
    link = knowledge.clones.link(record, path)
    text = ""
    if found is not None and path:
        text = knowledge.clones.file_at(found, record, path).decode(errors="replace")
    elif found is not None:
        text = knowledge.clones.diff(found, record, ())
    out = {"id": record.id, "sha": record.sha, "link": link, "clone": found is not None, "text": text}
    hint = f"no clone here (--clone DIR, or KERNELPILOT_CLONES): {link}"
    common.emit(out, as_json=as_json, text=text or hint)
    return 0


@click.command("mark-read")
@click.argument("record_id", metavar="ID")
@click.option("--hypothesis", required=True, help="what it suggests trying, and which figure should move")
@click.option("--file", "path", default="", metavar="PATH", help="file read (default: the first kernel)")
@click.option("--symbol", default="", help="function or kernel")
@click.option("--also", multiple=True, metavar="PATH", help="test or benchmark opened beside it (repeatable)")
@click.option(
    "--content",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="the file as it was read, where no clone is at hand",
)
@click.option("--result", default="", help="what came of it")
@click.option("--reread-reason", default="", help="needed to note the same source again")
@click.option("--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path(), help="your repo")
@clone_option
@index_option
@data_option
@common.json_option
def mark_read(
    record_id: str, clone: Path | None, into: Path, index: Path | None, data: Path | None, as_json: bool, **said: Any
) -> int:
    """Note in the source-idea ledger that ID was read, with the sha256 of what was opened."""
    from kernelpilot_helpers import knowledge
    from kernelpilot_helpers.ledger import Idea
    from kernelpilot_helpers.referee import ledgers
    from kernelpilot_helpers.referee.floor import stamp, utc_now

    record = knowledge.asked(knowledge.read(index, data), lambda tables: knowledge.listing.find(tables, record_id))
    path = said["path"] or record.kernel_files[0]
    idea = Idea(
        repo=record.repo,
        commit=record.sha,
        path=path,
        symbol=said["symbol"],
        pr=str(record.pr or ""),
        opened=_opened(record, (path, *said["also"]), clone, said["content"]),
        hypothesis=said["hypothesis"],
        result=said["result"],
        at=stamp(utc_now),
        reread_reason=said["reread_reason"],
    )
    noted = ledgers.add_idea(into, idea, utc_now)
    common.emit({"key": noted.key, "opened": list(noted.opened)}, as_json=as_json, text=noted.key)
    return 0


def _opened(record: Record, paths: tuple[str, ...], clone: Path | None, content: Path | None) -> tuple[str, ...]:
    from kernelpilot_helpers import knowledge, records
    from kernelpilot_helpers.errors import Refused

    found = knowledge.clones.clone_of(record, clone)
    if found is not None:
        return tuple(
            knowledge.clones.opened_note(path, knowledge.clones.file_at(found, record, path)) for path in paths
        )
    if content is None:
        fix = f"open {knowledge.clones.link(record, paths[0])}, save the file, and give --content FILE (or --clone DIR)"
        raise Refused("nothing shows what was read", where=record.id, fix=fix)
    return (knowledge.clones.opened_note(paths[0], records.read_bytes(content, fix="give --content FILE")), *paths[1:])


@click.command("route")
@click.argument("digest", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--limit", type=click.IntRange(1, 10), default=3, show_default=True, help="most techniques")
@index_option
@data_option
@common.json_option
def route(digest: Path, limit: int, index: Path | None, data: Path | None, as_json: bool) -> int:
    """Lead from a DIGEST (kernelpilot ncu digest --json) to techniques: why, code that did it, pitfalls, refutation."""
    from kernelpilot_helpers import knowledge, records

    content = records.read_bytes(digest, fix="kernelpilot ncu digest REPORT.ncu-rep --json > digest.json")

    def led(tables: Any) -> Any:
        case = knowledge.case_of(content, knowledge.listing.lexicon(tables), at=str(digest))
        return case, knowledge.route(tables, case, limit)

    case, found = knowledge.asked(knowledge.read(index, data), led)
    out = {
        "class": case.class_name,
        "kernel": case.kernel,
        "arch": f"sm{case.capability}" if case.capability else "",
        "families": list(case.families),
        "dtypes": list(case.dtypes),
        "routes": [_route(item) for item in found.routes],
        "rejected": [{"rule": name, "why": why} for name, why in found.rejected],
    }
    text = "\n".join(line for item in found.routes for line in _route_lines(item))
    hint = f"no rule speaks for {case.class_name}; follow the digest's own next step"
    common.emit(out, as_json=as_json, text=text or hint)
    return 0


def _route(item: Route) -> dict[str, Any]:
    return {
        "rule": item.rule,
        "technique": item.technique,
        "why": list(item.why),
        "mechanisms": list(item.mechanisms),
        "records": [{**_brief(found.record), "lines": found.lines} for found in item.evidence],
        "pitfalls": [_brief(record) for record in item.pitfalls],
        "refute": item.refute,
    }


def _route_lines(item: Route) -> list[str]:
    lines = [f"{item.technique}  [{'; '.join(item.why)}]"]
    for found in item.evidence:
        added = ", ".join(f"{name} {count}" for name, count in found.lines.items())
        symbol = found.record.symbols[0] if found.record.symbols else "file"
        place = f"{found.record.kernel_files[0]}:{symbol}" if found.record.kernel_files else symbol
        lines.append(f"  {found.record.id}  {place}  adds {added}"[:158])
    lines += [f"  pitfall: {_line(record)}"[:158] for record in item.pitfalls]
    return [*lines, f"  refuted when: {item.refute}"]


COMMANDS = (term, facets, like, next_, open_, mark_read, route)
