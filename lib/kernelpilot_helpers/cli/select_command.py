"""``kernelpilot select``."""

from __future__ import annotations

from pathlib import Path

import click

from kernelpilot_helpers.cli import common


@click.command("select")
@click.argument("version")
@click.option("--why", default="chosen by hand", show_default=True, help="reason, kept in the decision row")
@common.repo_option
@common.json_option
def command(version: str, why: str, repo: Path, as_json: bool) -> int:
    """Bring VERSION back: its files in the worktree, `current`, and a decision row.

    Refused for a version that is wrong, broken or of another epoch, and while uncommitted work would be lost.
    """
    from kernelpilot_helpers.referee import selecting
    from kernelpilot_helpers.referee.floor import utc_now

    row = selecting.select(repo, version, why=why, clock=utc_now)
    data = {"version": row.version, "variant": row.variant, "reason": row.reason}
    common.emit(data, as_json=as_json, text=f"{row.version} is current again ({row.variant})")
    return 0
