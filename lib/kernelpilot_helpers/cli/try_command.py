"""``kernelpilot try``."""

from __future__ import annotations

from pathlib import Path

import click

from kernelpilot_helpers.cli import scratch_output


@click.command("try")
@scratch_output.options
def command(variant: str | None, repo: Path, as_json: bool) -> int:
    """Verify VARIANT and time it at screen tier; nothing is recorded.

    Exit 1 when it does not build or is wrong. Not evidence: `kernelpilot attempt` records.
    """
    return scratch_output.run("try", variant, repo, as_json=as_json)
