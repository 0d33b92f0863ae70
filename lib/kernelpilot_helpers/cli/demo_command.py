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
    """Play the whole job on the CPU with a scripted writer inside the loop: no GPU, no model, no account.

    The Stop hook is the real one, its reviewer is the evidence alone. Needs a C compiler and a Python with numpy or
    torch (KERNELPILOT_PYTHON, the active venv, or python3). Exit 1 when a verdict is not the one that a sound referee
    gives, or when the loop does not end COMPLETE with a green gate.
    """
    from rich.console import Console

    from kernelpilot_helpers import demo

    console = Console(stderr=True)
    with console.status("starting", spinner="dots") as status:

        def show(text: str) -> None:
            status.update(text.strip())
            console.print(f"  {text}", style="dim", highlight=False, markup=False, soft_wrap=True)

        done = demo.play(directory, show=show)
    if as_json:
        click.echo(json.dumps(as_object(done)))
    else:
        _screen(done)
    return 0 if done.state == "COMPLETE" else 1


def as_object(done: Demo) -> dict[str, Any]:
    """The stable object."""
    return {
        "dir": str(done.directory),
        "state": done.state,
        "attempts": [
            {"version": p.version, "verdict": p.verdict, "reason": p.reason, "as_expected": p.as_expected}
            for p in done.played
        ],
        "rounds": [
            {"round": s.round, "gate": s.gate, "findings": list(s.findings), "decision": s.decision, "phase": s.phase}
            for s in done.stops
        ],
        "gate": done.gate,
        "report": str(done.report),
        "final": str(done.final),
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
            console.print(f"{p.version}: {p.reason}", highlight=False, markup=False, soft_wrap=True)
    rounds = Table(title="What the Stop hook said", title_justify="left")
    for name in ("round", "gate", "answer", "then"):
        rounds.add_column(name)
    for s in done.stops:
        colour = {True: "[green]green[/green]", False: "[red]red[/red]", None: "not judged"}[s.gate]
        found = f" ({', '.join(s.findings[:2])})" if s.findings and not s.gate else ""
        rounds.add_row(str(s.round), colour + found, s.decision, s.phase)
    console.print(rounds)
    console.print(f"The loop ended {done.state}. {policy.CPU.note}", highlight=False)
    console.print(
        f"repo    {done.directory}\nreport  {done.report}\nfinal   {done.final}\nnext    {done.next}",
        highlight=False,
        markup=False,
        soft_wrap=True,  # a command that was cut in two cannot be pasted
    )
