"""``kernelpilot report``."""

from __future__ import annotations

from pathlib import Path

import click

from kernelpilot_helpers.cli import common


@click.command("report")
@click.option("--out", type=click.Path(path_type=Path), help="default: artifacts/report.html in the repo")
@common.repo_option
@common.json_option
def command(out: Path | None, repo: Path, as_json: bool) -> int:
    """Tell the run as one self-contained HTML page: verdicts, speed-ups with intervals, environment."""
    from kernelpilot_helpers import proc, records, report

    root = proc.toplevel(repo)
    target = out or root / "artifacts" / "report.html"
    records.write_text(target, report.render(report.collect(root)))
    common.emit({"report": str(target)}, as_json=as_json, text=str(target))
    return 0
