"""``kernelpilot root``."""

from __future__ import annotations

from pathlib import Path

import click

from kernelpilot_helpers.cli import common


@click.command("root")
@common.json_option
def command(as_json: bool) -> int:
    """Print the folder of the bundle (the clone that install.sh was run from).

    Exit 1 when this copy was installed without the bundle around it.
    """
    from kernelpilot_helpers.errors import ToolMissing

    root = Path(__file__).resolve().parents[3]
    if not (root / "install.sh").exists():
        raise ToolMissing(
            "this copy stands outside a bundle", where=str(root), fix="clone KernelPilot and run ./install.sh"
        )
    common.emit({"root": str(root)}, as_json=as_json, text=str(root))
    return 0
