"""``kernelpilot report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kernelpilot_helpers.cli import common


@click.command("report")
@click.option("--out", type=click.Path(path_type=Path), help="default: artifacts/report.html in the repo")
@click.option("--final", is_flag=True, help="write and commit artifacts/FINAL.md, the page and the loop's journal")
@common.repo_option
@common.json_option
def command(out: Path | None, final: bool, repo: Path, as_json: bool) -> int:
    """Tell the run as one self-contained HTML page: verdicts, speed-ups with intervals, rounds, the gate's findings.

    Once a final page is committed, a plain report goes to .kernelpilot/report.html, so that git stays clean.
    """
    if final:
        if out is not None:
            raise click.UsageError("--final commits artifacts/report.html; leave --out away")
        return _finish(repo, as_json=as_json)
    from kernelpilot_helpers import proc, records, report
    from kernelpilot_helpers.referee import finishing

    root = proc.toplevel(repo)
    target = out or finishing.page_target(root)
    evidence, said, faults = _gate(root)
    data = report.collect(root, evidence=evidence, gate=said)
    records.write_text(target, report.render(report.with_faults(data, faults)))
    common.emit({"report": str(target)}, as_json=as_json, text=str(target))
    return 0


def _gate(root: Path) -> tuple[Any, Any, list[Any]]:
    """Evidence and findings for the page; where the repo cannot be judged, the reason is what the page shows."""
    from kernelpilot_helpers.errors import KernelPilotError
    from kernelpilot_helpers.records import Fault
    from kernelpilot_helpers.referee import finishing

    try:
        return (*finishing.gate_of(root), [])
    except KernelPilotError as error:
        return None, None, [Fault(where=error.where or "gate", what=f"not judged: {error.what}", fix=error.fix)]


def _finish(repo: Path, *, as_json: bool) -> int:
    from kernelpilot_helpers.referee import finishing
    from kernelpilot_helpers.referee.floor import utc_now

    made = finishing.finish(repo, clock=utc_now, judge=finishing.gate_of)
    for note in made.notes:
        common.say(note)
    data = {
        "files": list(made.files),
        "commits": list(made.commits),
        "changed": bool(made.commits),
        "pass": made.passed,
        "done": made.done,
    }
    words = f"committed: {', '.join(made.files)}" if made.commits else "nothing has changed: no commit"
    gate = "" if made.passed else "\nthe gate is red: kernelpilot gate --final"
    lacks = f"\n{made.unfinished}" if made.unfinished else ""
    common.emit(data, as_json=as_json, text=words + gate + lacks)
    return 0
