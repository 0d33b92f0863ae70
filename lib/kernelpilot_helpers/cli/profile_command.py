"""``kernelpilot profile``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.referee.profiling import Profiled


PLACES = ("contract", "hot", "cold")
LIMIT = "seconds for each of the two programs: building and warming up, then ncu"
RESIDENCY = "where tensors are when a call begins: hot keeps the caches between passes, cold empties them"


@click.command("profile")
@click.option("--version", metavar="V", help="version label, its number, or baseline (default: the incumbent)")
@click.option("--variant", metavar="NAME", help="the newest version of this variant")
@click.option("--case", "case_id", metavar="C", help="default: the regressed required case, else the longest")
@click.option("--set", "collected", type=click.Choice(("focused", "full")), default="focused", show_default=True)
@click.option("--limit", "limit_s", type=click.FloatRange(min=1), default=240.0, show_default=True, help=LIMIT)
@click.option("--residency", type=click.Choice(PLACES), default="contract", show_default=True, help=RESIDENCY)
@common.repo_option
@common.json_option
def command(repo: Path, as_json: bool, **options: Any) -> int:
    """Profile a correct version on one case and digest it: one bottleneck, one next step.

    Files facts, digest and what was run under artifacts/profile-digests/VERSION/CASE and commits them; the report
    itself stays beside them, ignored by git. Where ncu cannot run, its own words are kept and what is known without
    it is filed, marked as a fallback; that is exit 0 as well.
    """
    from kernelpilot_helpers.referee import profiling
    from kernelpilot_helpers.referee.floor import utc_now

    request = profiling.Request(**options)
    profiling.require(repo, request)
    stage = common.profile_stage(repo)
    done = profiling.profile_version(repo, request, stage=stage, clock=utc_now, say=common.progress())
    common.emit(as_object(done), as_json=as_json, text=words(done))
    return 0


def as_object(done: Profiled) -> dict[str, Any]:
    """The stable object: keys are always present."""
    made, digest = done.profile, done.digest
    step = digest.next_step
    return {
        "version": made.subject,
        "case_id": made.case_id,
        "digest": made.id,
        "folder": done.folder,
        "source": made.source,
        "reason": None if made.why is None else {"code": made.why.code, "words": made.why.words},
        "class": digest.name,
        "confidence": digest.confidence,
        "next_step": {"kind": step.kind, "family": step.family, "what": step.what, "command": step.command},
        "gpu": made.gpu,
        "tool": made.tool,
        "run": made.run,
        "report": None if made.report is None else f"{done.folder}/{made.report.name}",
        "seconds": made.seconds,
        "commit": done.commit,
        "logs": done.logs,
    }


def words(done: Profiled) -> str:
    """The digest for a person."""
    from kernelpilot_helpers import ncu

    made = done.profile
    head = [f"{made.id} on {made.gpu or 'an unnamed GPU'} ({made.tool or 'without ncu'}, {made.seconds:g} s)"]
    if made.why is not None:
        head.append(f"FALLBACK, no report of ncu ({made.why.code}): {made.why.words}")
        head.append(f"its log, and the program's: {done.logs}")
    tail = [f"filed: {done.folder}", f"cite it: kernelpilot attempt NAME --digest {made.id} --motivation TEXT"]
    return "\n".join([*head, ncu.text(done.digest), *tail])
