"""``kernelpilot knowledge next``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common, knowledge_task
from kernelpilot_helpers.cli.knowledge_lines import brief, line_of
from kernelpilot_helpers.cli.knowledge_options import data_option, filter_options, filters_of, index_option, refusing

if TYPE_CHECKING:
    from kernelpilot_helpers.contract import Contract
    from kernelpilot_helpers.knowledge.listing import Wish


@click.command("next")
@click.argument("text", nargs=-1)
@click.option("--want", type=click.IntRange(1, 500), default=50, show_default=True, help="sources to hand out")
@click.option(
    "--seen",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="a source-idea ledger (artifacts/source-ideas.jsonl): what it names is not handed out again",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="your repo: without TEXT and --family, records of its contract's family come first",
)
@filter_options
@index_option
@data_option
@common.json_option
def next_(
    text: tuple[str, ...],
    want: int,
    seen: Path | None,
    into: Path,
    index: Path | None,
    data: Path | None,
    as_json: bool,
    **said: Any,
) -> int:
    """Hand out unread sources, code first: the surest of each repository in turn, or what TEXT finds.

    Inside a scaffolded repo the family and the data types of its contract.toml come first; TEXT or --family decide
    otherwise.
    """
    from kernelpilot_helpers import knowledge
    from kernelpilot_helpers.knowledge import suggest
    from kernelpilot_helpers.knowledge.question import ask

    asked = " ".join(text)
    read = _read_already(seen)
    filters = filters_of(said, read)
    task = None if asked.strip() or said["family"] else _task(into)

    def unread(tables: Any) -> Any:
        lexicon = knowledge.listing.lexicon(tables)
        wish = knowledge_task.wish_of(task, lexicon) if task else None
        found, left = knowledge.listing.unread(tables, asked, filters, want, wish)
        near = ("", ()) if found else suggest.suggestions(tables, ask(asked, lexicon), filters, asked)
        return found, left, wish, near

    with refusing():
        found, left, wish, (kind, near) = knowledge.asked(knowledge.read(index, data), unread)
    lines = [_first_line(task, wish)] if task and wish else []
    lines += [line_of(record) for record in found]
    if near and not (read and not asked.strip()):
        lines.append(suggest.told(kind, near))
    lines.append(f"{len(found)} of {left} unread; after reading: kernelpilot knowledge mark-read ID --hypothesis TEXT")
    out = {
        "records": [brief(record) for record in found],
        "unread": left,
        "seen": len(read),
        "families": list(wish.families) if wish else [],
        "suggestions": list(near),
    }
    common.emit(out, as_json=as_json, text="\n".join(lines))
    return 0


def _read_already(seen: Path | None) -> frozenset[str]:
    """Ids and commits of a ledger. Raises BadRecord for one that is not sound: what it hides would be read again."""
    from kernelpilot_helpers import knowledge, ledger, records
    from kernelpilot_helpers.errors import BadRecord

    if seen is None:
        return frozenset()
    fix = "give --seen artifacts/source-ideas.jsonl"
    ideas, faults = ledger.parse_ideas(records.read_bytes(seen, fix=fix), at=str(seen))
    for fault in faults:
        raise BadRecord(fault.what, where=fault.where, fix=fault.fix)
    return knowledge.seen_names(ideas)


def _task(into: Path) -> Contract | None:
    """The contract around a folder; one that cannot be read is told and left alone."""
    from kernelpilot_helpers.errors import KernelPilotError

    try:
        found = knowledge_task.around(into)
    except KernelPilotError as error:
        common.say(f"{error.where}: cannot be read, so no family comes first: {error.what.splitlines()[0]}")
        return None
    return found[1] if found else None


def _first_line(task: Contract, wish: Wish) -> str:
    if not wish.families:
        return f"contract.toml: task {task.task.name} names no family; --family NAME or TEXT puts one first"
    types = f", {', '.join(wish.dtypes)} first" if wish.dtypes else ""
    names = ", ".join(wish.families)
    return f"contract.toml: task {task.task.name}: {names}{types}, then other families (--family or TEXT decides)"
