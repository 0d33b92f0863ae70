"""``kernelpilot knowledge mark-read``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common, knowledge_hypothesis
from kernelpilot_helpers.cli.knowledge_options import clone_option, data_option, index_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelpilot_helpers.errors import KernelPilotError
    from kernelpilot_helpers.knowledge.marking import Claim
    from kernelpilot_helpers.ledger import Idea

FROM = "lines ID<TAB>HYPOTHESIS[<TAB>PATH[<TAB>SYMBOL]]: all are noted in one commit, or none"
ONE = ("path", "symbol", "also", "content", "result")
"""Options that speak of one source."""


@click.command("mark-read", epilog=knowledge_hypothesis.COUNTS)
@click.argument("record_ids", metavar="ID...", nargs=-1)
@click.option("--hypothesis", "hypotheses", multiple=True, help="what to try, and which figure moves; one for each ID")
@click.option("--from", "from_", type=click.Path(path_type=Path, exists=True, dir_okay=False), help=FROM)
@click.option("--file", "path", default="", metavar="PATH", help="file read, one of the change (default: first kernel)")
@click.option("--symbol", default="", help="function or kernel; the file must hold it")
@click.option("--also", multiple=True, metavar="PATH[=FILE]", help="test or benchmark read too; FILE without a clone")
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
    record_ids: tuple[str, ...],
    hypotheses: tuple[str, ...],
    from_: Path | None,
    clone: Path | None,
    into: Path,
    index: Path | None,
    data: Path | None,
    as_json: bool,
    **said: Any,
) -> int:
    """Note in the source-idea ledger that ID was read, with the sha256 of what was opened.

    The file must be one that the record changes, and a text; a clone decides what it holds, else --content does.
    """
    from kernelpilot_helpers import knowledge
    from kernelpilot_helpers.knowledge import marking
    from kernelpilot_helpers.referee.floor import stamp, utc_now

    claims = _claims(record_ids, hypotheses, from_, said)
    ideas = knowledge.asked(
        knowledge.read(index, data), lambda tables: marking.ideas(tables, claims, clone, stamp(utc_now))
    )
    noted = _note(into, claims, ideas, utc_now)
    rows = [
        {"id": claim.id, "key": idea.key, "path": idea.path, "opened": list(idea.opened)}
        for claim, idea in zip(claims, noted, strict=True)
    ]
    out = {"key": noted[0].key, "opened": list(noted[0].opened), "sources": rows}
    common.emit(out, as_json=as_json, text="\n".join(idea.key for idea in noted))
    return 0


def _claims(
    record_ids: tuple[str, ...], hypotheses: tuple[str, ...], from_: Path | None, said: dict[str, Any]
) -> tuple[Claim, ...]:
    """What is claimed to have been read. Raises UsageError when a source has no hypothesis of its own."""
    from kernelpilot_helpers import records
    from kernelpilot_helpers.knowledge import marking

    if from_ is None and not record_ids:
        raise click.UsageError("want an ID, or --from FILE")
    if len(hypotheses) != len(record_ids):
        what = f"{len(record_ids)} IDs and {len(hypotheses)} times --hypothesis"
        raise click.UsageError(f"{what}: each source wants its own, or give --from FILE ({FROM})")
    listed = marking.parsed(records.read_bytes(from_, fix="give --from FILE"), at=str(from_)) if from_ else ()
    wanted = [name for name in ONE if said[name]]
    if wanted and (listed or len(record_ids) > 1):
        names = ", ".join("--file" if name == "path" else f"--{name}" for name in wanted)
        raise click.UsageError(f"{names}: of one source; --from FILE takes a path and a symbol for each")
    typed = (
        marking.Claim(id=name, hypothesis=hypothesis, where=name, **said)
        for name, hypothesis in zip(record_ids, hypotheses, strict=True)
    )
    return (*typed, *(marking.again(claim, said["reread_reason"]) for claim in listed))


def _note(into: Path, claims: tuple[Claim, ...], ideas: tuple[Idea, ...], clock: Any) -> tuple[Idea, ...]:
    """Append all of them in one commit, or none. Raises Refused for sources that were noted before."""
    from kernelpilot_helpers.knowledge import marking
    from kernelpilot_helpers.referee import ledgers

    def refuse(refused: Sequence[tuple[int, KernelPilotError]]) -> None:
        marking.refuse([(claims[at], error) for at, error in refused], len(claims))

    before, added = ledgers.add_ideas(into, ideas, clock, refuse=refuse)
    for at, (claim, idea) in enumerate(zip(claims, added, strict=True)):
        knowledge_hypothesis.warn(idea.hypothesis, [*before, *added[:at]], of=claim.id)
    return added
