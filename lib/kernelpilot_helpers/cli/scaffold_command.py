"""``kernelpilot scaffold``."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import click

from kernelpilot_helpers.cli import common


@click.command("scaffold")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--request", "request_file", type=click.Path(path_type=Path), help="a TOML request (docs/formats/request.md)"
)
@click.option("--task", help="name of the task: a folder below src/")
@click.option("--op", default="norm", show_default=True, help="kind of kernel; norm has a built-in task")
@click.option("--gpu", default="cpu", show_default=True, help="target device; cpu is the embedded default")
@click.option("--summary", default="", help="one line about the task")
@click.option("--speedup", type=float, default=1.10, show_default=True, help="target against the baseline, a ratio")
@click.option("--parent-ok", is_flag=True, help="allow a place inside another repository's worktree")
@common.json_option
def command(
    directory: Path, request_file: Path | None, task: str | None, parent_ok: bool, as_json: bool, **flags: object
) -> int:
    """Make and commit the standalone repo in DIRECTORY (new or empty).

    With --task alone it holds the built-in example, a row-wise fused add and RMSNorm, and can be locked and
    attempted at once. With --request it holds the contract, cases, reference and baseline of the request file.
    """
    from kernelpilot_helpers import records, scaffold
    from kernelpilot_helpers.cli import gate_command

    if (request_file is None) == (task is None):
        raise click.UsageError("give either --task NAME or --request FILE")
    if request_file is not None:
        data = records.read_bytes(request_file, fix="name a readable request file")
        request = scaffold.parse_request(data, at=str(request_file))
    else:
        request = scaffold.example(task=task or "", **flags)  # type: ignore[arg-type]
    made = scaffold.make(request, directory, kernelpilot=executable(), parent_ok=parent_ok)
    notes = [*([_example(request.contract.task.name)] if request.example else []), *scaffold.notes(request.contract)]
    then = gate_command.next_of(made.path)
    step = then if scaffold.on_gpu(request.contract) else f"cd {shlex.quote(str(made.path))} && {then}"
    data_out = {"dir": str(made.path), "commit": made.commit, "todo": list(made.todo), "notes": notes, "next": then}
    for note in notes:
        common.say(note)
    lines = [f"made {made.path} ({made.commit[:12]})", *(f"  to write: {item}" for item in made.todo)]
    lines.append(f"  next: {step}")
    common.emit(data_out, as_json=as_json, text="\n".join(lines))
    return 0


def _example(task: str) -> str:
    return (
        f"{task} is the built-in example, a row-wise fused add and RMSNorm, under this name; "
        "for a task of your own: kernelpilot scaffold DIR --request FILE  # docs/formats/request.md"
    )


def executable() -> Path:
    """This kernelpilot as an absolute path: a client's hook runs with another PATH."""
    beside = Path(sys.executable).with_name("kernelpilot")
    if beside.exists():
        return beside
    found = shutil.which("kernelpilot")
    return Path(found).resolve() if found else beside
