"""``kernelpilot ledger render|check|idea|import``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from kernelpilot_helpers.cli import common


@click.group("ledger")
def command() -> None:
    """The lineage is the truth; attempt, optimization and source-idea ledgers are rendered from it."""


@command.command("check")
@common.repo_option
@common.json_option
def check(repo: Path, as_json: bool) -> int:
    """Report every fault of the lineage and every hand edit of a rendered ledger, by row. Exit 1 on a finding."""
    from kernelpilot_helpers.referee import ledgers

    faults = ledgers.check(repo)
    data = {"pass": not faults, "findings": [{"where": f.where, "what": f.what, "fix": f.fix} for f in faults]}
    text = "\n".join(f"{f.where}: {f.what}\n  fix: {f.fix}" for f in faults) or "the ledgers agree with the lineage"
    common.emit(data, as_json=as_json, text=text)
    return 1 if faults else 0


@command.command("render")
@common.repo_option
@common.json_option
def render(repo: Path, as_json: bool) -> int:
    """Write the ledgers anew from the lineage; an edited file is first kept below .kernelpilot/edited."""
    from kernelpilot_helpers.referee import ledgers
    from kernelpilot_helpers.referee.floor import utc_now

    changed, notes = ledgers.render(repo, utc_now)
    for line in notes:
        common.say(line)
    text = "\n".join(f"rendered {path}" for path in changed) or "nothing to render"
    common.emit({"changed": changed}, as_json=as_json, text=text)
    return 0


@command.command("idea")
@click.option("--source-repo", required=True, help="OWNER/NAME of the repository read")
@click.option("--commit", required=True, help="40 hex digits")
@click.option("--path", required=True, help="file read")
@click.option("--symbol", default="", help="function or kernel")
@click.option("--pr", default="", help="pull request number or URL")
@click.option("--opened", multiple=True, help="test or benchmark opened beside it (may be given several times)")
@click.option("--hypothesis", required=True, help="what it suggests trying, and which figure should move")
@click.option("--result", default="", help="what came of it")
@click.option("--reread-reason", default="", help="needed to note the same source again")
@common.repo_option
@common.json_option
def idea(repo: Path, as_json: bool, source_repo: str, **options: Any) -> int:
    """Note one source that was read, so that nobody reads it twice. Exit 1 for a source noted before."""
    from kernelpilot_helpers import proc
    from kernelpilot_helpers.cli import knowledge_hypothesis
    from kernelpilot_helpers.ledger import Idea, idea_key, load_ideas
    from kernelpilot_helpers.referee import ledgers
    from kernelpilot_helpers.referee.floor import stamp, utc_now

    if not re.fullmatch("[0-9a-f]{40}", options["commit"]):
        raise click.UsageError(f"--commit: want 40 hex digits, got {options['commit']!r}")
    if any("sha256:" in note for note in options["opened"]):
        raise click.UsageError("--opened: a sha256 is recorded by kernelpilot knowledge mark-read, not typed")
    key = idea_key(repo=source_repo, commit=options["commit"], path=options["path"], symbol=options["symbol"])
    earlier = load_ideas(proc.toplevel(repo))
    noted = ledgers.add_idea(repo, Idea(key=key, repo=source_repo, at=stamp(utc_now), **options), utc_now)
    knowledge_hypothesis.warn(noted.hypothesis, earlier, of=noted.key)
    common.emit({"key": noted.key}, as_json=as_json, text=noted.key)
    return 0


@command.command("import")
@click.argument("layout", type=click.Path(path_type=Path, exists=True, file_okay=False))
@common.repo_option
@common.json_option
def import_(layout: Path, repo: Path, as_json: bool) -> int:
    """Take over lineage and ledgers of an older LAYOUT (a folder with ledgers/ or artifacts/).

    Imported attempts are AMBIGUOUS ("not measured by this referee"); what cannot be mapped is listed. Exit 1 when
    something could not be mapped.
    """
    from kernelpilot_helpers.referee import ledgers
    from kernelpilot_helpers.referee.floor import utc_now

    rows, ideas, faults = ledgers.import_old(repo, layout, utc_now)
    data = {
        "rows": rows,
        "ideas": ideas,
        "findings": [{"where": f.where, "what": f.what, "fix": f.fix} for f in faults],
    }
    text = "\n".join([f"{rows} rows and {ideas} ideas imported", *(f"  {f.where}: {f.what}" for f in faults)])
    common.emit(data, as_json=as_json, text=text)
    return 1 if faults else 0
