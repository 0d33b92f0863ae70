"""``kernelpilot knowledge open``."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common
from kernelpilot_helpers.cli.knowledge_lines import page_object
from kernelpilot_helpers.cli.knowledge_options import clone_option, data_option, index_option

if TYPE_CHECKING:
    from kernelpilot_helpers.knowledge import Record
    from kernelpilot_helpers.knowledge.clones import Change
    from kernelpilot_helpers.knowledge.opening import View


@click.command("open")
@click.argument("record_id", metavar="ID")
@click.option("--stat", is_flag=True, help="only the list of changed files")
@click.option("--diff", "diff", default="", metavar="PATH", help="the change of this file")
@click.option("--file", "file", default="", metavar="PATH", help="this file as the record left it")
@click.option("--lines", default="", metavar="A-B", help="with --file: only these lines, from 1")
@click.option("--all", "whole", is_flag=True, help="without the limit of about 16 KB of code")
@clone_option
@index_option
@data_option
@common.json_option
def open_(record_id: str, clone: Path | None, index: Path | None, data: Path | None, as_json: bool, **said: Any) -> int:
    """Show what a record changed, from a clone on this machine, or a page; without a clone say where to read it.

    By default the list of changed files, kernels first, and the diffs of the kernels, as far as they fit. ID may be a
    page.
    """
    from kernelpilot_helpers import knowledge

    if sum(map(bool, (said["stat"], said["diff"], said["file"]))) > 1:
        raise click.UsageError("want one of --stat, --diff PATH and --file PATH")
    first, last = _lines_asked(said["lines"], said["file"])
    record = knowledge.asked(knowledge.read(index, data), lambda tables: knowledge.listing.named(tables, record_id))
    if isinstance(record, knowledge.Page):
        if said["stat"] or said["diff"] or said["file"] or clone is not None:
            raise click.UsageError(f"{record.slug} is a page: --stat, --diff, --file and --clone are for records")
        common.emit(page_object(record), as_json=as_json, text=record.text.rstrip())
        return 0
    found = knowledge.clones.clone_of(record, clone)
    link = knowledge.clones.link(record, said["file"] or said["diff"])
    if found is None:
        changed, view = knowledge.clones.named(record), None
    else:
        changed = knowledge.clones.changes(found, record)
        view = _view(record, found, changed, clone, first, last, **said)
    _print(record, changed, view, link, stat=said["stat"], listed=not (said["file"] or said["diff"]), as_json=as_json)
    return 0


def _lines_asked(said: str, file: str) -> tuple[int, int | None]:
    if not said:
        return 1, None
    found = re.fullmatch(r"([0-9]{1,8})(-([0-9]{1,8})?)?", said)
    first = int(found[1]) if found else 0
    last = (int(found[3]) if found[3] else None) if found and found[2] else first
    if not first or (last is not None and last < first) or not file:
        raise click.UsageError(f"--lines: want A-B with --file, such as 120-180, got {said!r}")
    return first, last


def _view(
    record: Record, at: Path, changed: tuple[Change, ...], given: Path | None, first: int, last: int | None, **said: Any
) -> View:
    from kernelpilot_helpers.knowledge import clones, opening

    again = functools.partial(opening.command, record.id, str(given) if given else "")
    budget = None if said["whole"] else opening.BUDGET
    if said["file"]:
        whole = clones.file_at(at, record, said["file"]).decode(errors="replace")
        return opening.piece(said["file"], whole, first, last, again, budget)
    if said["stat"]:
        return opening.View(text="")
    if said["diff"]:
        one = [change for change in changed if change.path == said["diff"]]
        alike = [opening.as_kernel(change) for change in one]
        if not alike:
            clones.diff(at, record, said["diff"])
        return opening.kernels(alike, lambda path: clones.diff(at, record, path), again, budget)
    return opening.kernels(changed, lambda path: clones.diff(at, record, path), again, budget)


def _print(
    record: Record,
    changed: tuple[Change, ...],
    view: View | None,
    link: str,
    *,
    stat: bool,
    listed: bool,
    as_json: bool,
) -> None:
    import msgspec

    from kernelpilot_helpers.knowledge import opening

    out = {
        "id": record.id,
        "sha": record.sha,
        "link": link,
        "clone": view is not None,
        "text": view.text if view else "",
        "files": [msgspec.to_builtins(change) for change in changed],
        "left_out": [msgspec.to_builtins(item) for item in (view.left_out if view else ())],
    }
    if view is None:
        text = f"no clone here (--clone DIR, or KERNELPILOT_CLONES): {link}"
        if listed:
            text = "\n".join([text, "files that the record names:", *(f"  {c.kind:<6} {c.path}" for c in changed)])
    else:
        head = opening.listed(changed, None if stat else opening.LISTED) if listed else ""
        text = "\n".join(part.rstrip("\n") for part in (head, view.text, opening.told(view)) if part)
    common.emit(out, as_json=as_json, text=text)
