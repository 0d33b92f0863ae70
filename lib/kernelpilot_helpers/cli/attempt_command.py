"""``kernelpilot attempt``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.ledger.model import Interval, Motivation
    from kernelpilot_helpers.referee.attempt import Recorded

KINDS = ("research", "profile", "benchmark", "review", "reset")


@click.command("attempt")
@click.argument("variant", required=False)
@click.option("--motivation", "-m", "text", required=True, help="why this candidate should be faster, in one line")
@click.option("--kind", type=click.Choice(KINDS), help="default: profile with --digest, research with --source")
@click.option("--digest", default="", help="profile digest that this edit answers")
@click.option("--source", "sources", multiple=True, help="source-idea key (may be given several times)")
@click.option("--slug", help="name in the version label (default: the variant's folder)")
@click.option("--tier", type=click.Choice(("screen", "accept", "claim")), default="accept", show_default=True)
@click.option("--max-pairs", type=click.IntRange(min=2), help="stop escalating at this many cross-over pairs")
@click.option("--parent", help="version this one was derived from (default: the incumbent)")
@click.option("--language", help="what it is written in (default: by its files)")
@click.option("--from-try", "try_id", help="measure what a try measured, as evidence")
@click.option("--again", is_flag=True, help="measure a tree that has a row once more (a row of kind recheck)")
@click.option("--no-commit", is_flag=True, help="refuse a variant with uncommitted changes instead of committing it")
@common.repo_option
@common.json_option
def command(variant: str | None, repo: Path, as_json: bool, try_id: str | None, **options: Any) -> int:
    """Measure VARIANT and record the verdict for ever.

    Commits the variant, builds it from the commit, checks it, times it against the incumbent, confirms a gain on
    fresh processes, appends the row, renders the ledgers and commits the evidence. Exit 0 whenever a verdict was
    recorded, whatever it is.
    """
    from kernelpilot_helpers.referee import attempt as attempts
    from kernelpilot_helpers.referee import scratch
    from kernelpilot_helpers.referee.floor import utc_now

    motivation = motivation_of(options.pop("text"), options.pop("kind"), options.pop("digest"), options.pop("sources"))
    tree = None
    if try_id is not None:
        meta = scratch.promoted(repo, try_id)
        variant, tree = variant or meta.variant, meta.tree
    request = attempts.Request(variant=variant, motivation=motivation, tree=tree, **options)
    tell = common.progress()
    recorded = attempts.attempt(repo, request, lab=common.measuring_lab(repo), clock=utc_now, say=tell)
    for line in recorded.notes:
        tell(line)
    common.emit(as_object(recorded), as_json=as_json, text=words(recorded))
    return 0


def motivation_of(text: str, kind: str | None, digest: str, sources: tuple[str, ...]) -> Motivation:
    """The motivation, its kind defaulted. Raises UsageError for an empty text or a profile edit without a digest."""
    from kernelpilot_helpers.ledger.model import Motivation

    for word in (text, digest, *sources):
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise click.UsageError("--motivation: not UTF-8 text")
    if not text.strip():
        raise click.UsageError("--motivation: say in one line why this should be faster")
    if kind == "profile" and not digest:
        raise click.UsageError("--kind profile needs --digest ID: a profile-driven edit names its digest")
    chosen = kind or ("profile" if digest else "research" if sources else "benchmark")
    return Motivation(kind=chosen, text=" ".join(text.split()), digest=digest, source_keys=sources)  # type: ignore[arg-type]


def interval(value: Interval | None) -> dict[str, float] | None:
    """The stable object of an interval."""
    if value is None:
        return None
    return {"speedup": value.speedup, "ci_low": value.ci_low, "ci_high": value.ci_high}


def as_object(recorded: Recorded) -> dict[str, Any]:
    """The stable object: keys are always present."""
    row, outcome = recorded.row, recorded.outcome
    bench = outcome.bench if outcome is not None else None
    cases = [
        {"case_id": c.case_id, "speedup": c.speedup, "ci_low": c.ci_low, "ci_high": c.ci_high}
        for c in (bench.cases if bench is not None else ())
    ]
    return {
        "version": row.version,
        "verdict": row.verdict,
        "partial": row.partial,
        "reason": row.reason,
        "geomean": interval(row.gain),
        "vs_baseline": interval(row.vs_baseline),
        "cases": cases,
        "run_ids": list(row.runs),
        "kind": row.kind,
        "measured_now": outcome is not None,
        "incumbent": row.incumbent,
        "selected": row.status == "selected",
    }


def words(recorded: Recorded) -> str:
    """The verdict for a person."""
    from kernelpilot_helpers import units

    row = recorded.row
    lines = [f"{row.version}: {row.verdict}" + (" (partial)" if row.partial else "")]
    if recorded.outcome is None:
        lines[0] += "  (this tree was measured before; --again measures it once more)"
    lines.append(f"  {row.reason}")
    if row.gain is not None:
        g = row.gain
        low, high = units.percent(g.ci_low), units.percent(g.ci_high)
        lines.append(f"  against {row.incumbent}: {units.percent(g.speedup)} [{low}, {high}]")
    if row.vs_baseline is not None:
        b = row.vs_baseline
        lines.append(
            f"  against the baseline: {units.times(b.speedup)} [{units.times(b.ci_low)}, {units.times(b.ci_high)}]"
        )
    if row.status == "selected":
        lines.append("  selected: it is the incumbent from now on")
    return "\n".join(lines)
