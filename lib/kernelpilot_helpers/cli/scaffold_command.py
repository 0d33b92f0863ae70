"""``kernelpilot scaffold``."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.contract import Contract


@click.command("scaffold")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--request", "request_file", type=click.Path(path_type=Path), help="a TOML request (docs/formats/request.md)"
)
@click.option("--task", help="name of the task: a folder below src/; --device cuda has one of its own")
@click.option("--op", default="norm", show_default=True, help="kind of the built-in task: norm, or on a GPU also gemm")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="where the built-in task runs; cpu is the default")
@click.option("--gpu", help="the GPU's name, such as H200, for target.gpu; implies --device cuda  [default: cuda]")
@click.option("--summary", default="", help="one line about the task")
@click.option("--speedup", type=float, default=1.10, show_default=True, help="target against the baseline, a ratio")
@click.option("--parent-ok", is_flag=True, help="allow a place inside another repository's worktree")
@common.json_option
def command(
    directory: Path,
    request_file: Path | None,
    task: str | None,
    device: str | None,
    gpu: str | None,
    **flags: Any,
) -> int:
    """Make and commit the standalone repo in DIRECTORY (new or empty).

    With --task it holds the built-in example for a CPU, a row-wise fused add and RMSNorm, and can be locked and
    attempted at once. With --device cuda it holds one for a GPU, with templates to start from: add_rmsnorm (--op norm)
    or int8_scaled_mm (--op gemm). With --request it holds the contract, cases, reference and baseline of the file.
    """
    from kernelpilot_helpers import records, scaffold
    from kernelpilot_helpers.cli import gate_command

    parent_ok, as_json = flags.pop("parent_ok"), flags.pop("as_json")
    target = _target(device, gpu)
    if request_file is not None and (device or gpu):
        raise click.UsageError("a request names its own target: write target.gpu in it, without --device and --gpu")
    if (request_file is None) == (task is None and target == "cpu"):
        raise click.UsageError("give one of --task NAME, --device cuda and --request FILE")
    if request_file is not None:
        data = records.read_bytes(request_file, fix="name a readable request file")
        request = scaffold.parse_request(data, at=str(request_file))
    else:
        request = scaffold.example(task=task or "", gpu=target, **flags)
    made = scaffold.make(request, directory, kernelpilot=executable(), parent_ok=parent_ok)
    notes = [*([_example(request.contract)] if request.kit else []), *scaffold.notes(request.contract)]
    then = gate_command.next_of(made.path)
    data_out = {"dir": str(made.path), "commit": made.commit, "todo": list(made.todo), "notes": notes, "next": then}
    for note in notes:
        common.say(note)
    lines = [f"made {made.path} ({made.commit[:12]})", *(f"  to write: {item}" for item in made.todo)]
    lines.append(f"  next: cd {shlex.quote(str(made.path))} && {then}")
    common.emit(data_out, as_json=as_json, text="\n".join(lines))
    return 0


def _target(device: str | None, gpu: str | None) -> str:
    """``target.gpu``. Raises click.UsageError where the two options contradict each other."""
    if gpu is None:
        return device or "cpu"
    if device is not None and (device == "cpu") != (gpu.lower() == "cpu"):
        raise click.UsageError(f"--device {device} and --gpu {gpu} contradict each other")
    return gpu


def _example(made: Contract) -> str:
    cpu = made.target.gpu.lower() == "cpu"
    kind = made.task.summary or made.task.op
    what = "a row-wise fused add and RMSNorm, under this name" if cpu else f"{kind}; templates/ has candidates for it"
    own = "for a task of your own: kernelpilot scaffold DIR --request FILE  # docs/formats/request.md"
    return f"{made.task.name} is the built-in example, {what}; {own}"


def executable() -> Path:
    """This kernelpilot as an absolute path: a client's hook runs with another PATH."""
    beside = Path(sys.executable).with_name("kernelpilot")
    if beside.exists():
        return beside
    found = shutil.which("kernelpilot")
    return Path(found).resolve() if found else beside
