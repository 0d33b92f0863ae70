"""``kernelpilot next``."""

from __future__ import annotations

from pathlib import Path

import click

from kernelpilot_helpers.cli import common


@click.command("next")
@click.option("--repo", type=click.Path(path_type=Path), default=Path(), help="the standalone repo (default: here)")
@common.json_option
def command(repo: Path, as_json: bool) -> int:
    """Print one line: what to do now, from the same evidence that the gate reads."""
    from kernelpilot_helpers.cli import gate_command

    found, report = gate_command.judged(repo, final=False)
    line = gate_command.next_line(found, report)
    common.emit({"next": line, "pass": report.passed, "done": report.done.met}, as_json=as_json, text=line)
    return 0
