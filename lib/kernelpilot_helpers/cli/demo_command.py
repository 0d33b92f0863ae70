"""``kernelpilot demo``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.demo import Demo

STYLES = {"IMPROVED": "green", "SAME": "cyan", "REGRESSED": "yellow", "AMBIGUOUS": "yellow"}


@click.command("demo")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    default=Path("kernelpilot-demo"),
    show_default=True,
    help="a new folder for the standalone repo",
)
@common.json_option
def command(directory: Path, as_json: bool) -> int:
    """Play the whole job on the CPU with a scripted writer: no GPU, no model, no account.

    Needs a C compiler and a Python with numpy or torch (KERNELPILOT_PYTHON, the active venv, or python3). Exit 1
    when a verdict is not the one that a sound referee gives.
    """
    from rich.console import Console

    from kernelpilot_helpers import demo

    console = Console(stderr=True)
    with console.status("starting", spinner="dots") as status:

        def show(text: str) -> None:
            status.update(text.strip())
            console.print(f"  {text}", style="dim", highlight=False, markup=False)

        done = demo.play(directory, show=show)
    if as_json:
        click.echo(json.dumps(as_object(done)))
    else:
        _screen(done)
    return 0 if done.state == "refereed" else 1


def as_object(done: Demo) -> dict[str, Any]:
    """The stable object."""
    return {
        "dir": str(done.directory),
        "state": done.state,
        "attempts": [
            {"version": p.version, "verdict": p.verdict, "reason": p.reason, "as_expected": p.as_expected}
            for p in done.played
        ],
        "report": str(done.report),
        "next": done.next,
        "seconds": round(done.seconds, 1),
    }


def _screen(done: Demo) -> None:
    from rich.console import Console
    from rich.table import Table

    from kernelpilot_helpers import policy, units

    console = Console(file=sys.stdout)
    table = Table(title="What the referee said", title_justify="left")
    for name in ("version", "what it is", "verdict", "gain", "baseline"):
        table.add_column(name, no_wrap=name != "what it is")
    for p in done.played:
        style = STYLES.get(p.verdict, "red")
        table.add_row(
            p.version,
            p.act.shows,
            f"[{style}]{p.verdict}[/{style}]" + ("" if p.as_expected else " (unexpected)"),
            "" if p.speedup is None else units.percent(p.speedup),
            "" if p.vs_baseline is None else units.times(p.vs_baseline),
        )
    console.print(table)
    for p in done.played:
        if p.verdict in ("WRONG", "BROKEN") or not p.as_expected:
            console.print(f"{p.version}: {p.reason}", highlight=False, markup=False)
    console.print(f"{policy.CPU.note}", highlight=False)
    console.print(
        f"repo    {done.directory}\nreport  {done.report}\nnext    {done.next}", highlight=False, markup=False
    )
