"""``kernelpilot knowledge search|show|check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.knowledge import Hit, Record

index_option = click.option(
    "--index",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="another index: a folder with data/records.jsonl and data/vocabulary.json",
)


@click.group("knowledge")
def command() -> None:
    """Facts about pull requests that made CUDA kernels faster: find one, then open its code, test and benchmark."""


@command.command("search")
@click.argument("text", nargs=-1, required=True)
@click.option("--repo", default="", metavar="OWNER/NAME", help="only this repository")
@click.option("--arch", default="", metavar="ARCH", help="only records that name it, such as sm_90")
@click.option("--family", default="", metavar="NAME", help="only this family, such as gemm")
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True, help="most hits shown")
@index_option
@common.json_option
def search(
    text: tuple[str, ...], repo: str, arch: str, family: str, limit: int, index: Path | None, as_json: bool
) -> int:
    """Search by identifier, mechanism or symptom. Without a hit: exit 0, and near words of the index if any.

    TEXT is an identifier (int8_scaled_mm, cp.async), a mechanism or a symptom (bank conflicts).
    """
    from kernelpilot_helpers import knowledge
    from kernelpilot_helpers.errors import Refused

    said = " ".join(text)
    if not said.strip():
        raise click.UsageError("TEXT is empty: want an identifier, a mechanism or a symptom")
    filters = knowledge.Filters(repo=repo, arch=arch, family=family)
    try:
        answer = knowledge.search(knowledge.read(index), said, filters, limit)
    except Refused as refusal:
        raise click.UsageError(f"{refusal.where}: {refusal.what}; {refusal.fix}") from None
    data = {"hits": [_hit(hit) for hit in answer.hits], "suggestions": list(answer.suggestions)}
    lines = [f"{hit.record.id}  {hit.record.label}\n    {hit.why}" for hit in answer.hits]
    if lines:
        lines.append("next: kernelpilot knowledge show ID")
    elif answer.suggestions:
        lines.append(f"nothing found; near words: {', '.join(answer.suggestions)}")
    else:
        lines.append("nothing found, and no word of the index is near; say kernel family, mechanism or symptom")
    common.emit(data, as_json=as_json, text="\n".join(lines))
    return 0


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
    }


@command.command("show")
@click.argument("record_id", metavar="ID")
@index_option
@common.json_option
def show(record_id: str, index: Path | None, as_json: bool) -> int:
    """Print a whole record and the files to open first: code, test, benchmark before prose.

    ID is owner/name#number, name#number, the address of the pull request, or its commit.
    """
    import msgspec

    from kernelpilot_helpers import knowledge

    record = knowledge.find(knowledge.load(knowledge.read(index)), record_id)
    data = {
        "record": msgspec.to_builtins(record),
        "url": knowledge.url(record),
        "open_first": list(knowledge.open_first(record)),
    }
    common.emit(data, as_json=as_json, text=_page(record))
    return 0


def _page(record: Record) -> str:
    from kernelpilot_helpers import knowledge

    terms = ", ".join(f"{name} {lines}" for name, lines in record.diff_terms.items())
    lines = [
        f"{record.id}  {record.label}",
        f"  {record.lesson}",
        f"  {knowledge.url(record)}",
        f"  merged {record.merged_at} as {record.sha}; tier {record.tier}",
        f"  families {', '.join(record.families)}; archs {', '.join(record.archs) or 'unknown'}",
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
@common.json_option
def check(index: Path | None, as_json: bool) -> int:
    """Check the index: schema, ids, commits, sorted words, label and lesson. Exit 1 on a finding."""
    from kernelpilot_helpers import knowledge

    source = knowledge.read(index)
    faults = knowledge.check(source)
    count = 0 if faults else len(knowledge.load(source).records)
    data = {
        "pass": not faults,
        "records": count,
        "findings": [{"where": f.where, "what": f.what, "fix": f.fix} for f in faults],
    }
    text = "\n".join(f"{f.where}: {f.what}\n  fix: {f.fix}" for f in faults) or f"{count} records, all sound"
    common.emit(data, as_json=as_json, text=text)
    return 1 if faults else 0
