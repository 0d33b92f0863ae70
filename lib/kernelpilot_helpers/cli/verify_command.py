"""``kernelpilot verify``."""

from __future__ import annotations

from pathlib import Path

import click

from kernelpilot_helpers.cli import scratch_output


@click.command("verify")
@scratch_output.options
def command(variant: str | None, repo: Path, as_json: bool) -> int:
    """Check VARIANT's directory as it is now against the reference: all cases, edges and input regimes.

    Exit 1 when it does not build or is wrong. Not evidence: `kernelpilot attempt` records.
    """
    return scratch_output.run("verify", variant, repo, as_json=as_json)
