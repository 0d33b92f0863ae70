"""What commands share: the repo option, the lab, progress on stderr, and one way to print an object."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """``--json``: one object with stable keys on stdout."""
    return click.option("--json", "as_json", is_flag=True, help="print one JSON object with stable keys")(function)


def repo_option(function: F) -> F:
    """``--repo DIR``."""
    return click.option(
        "--repo",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        default=Path(),
        help="the standalone repo (default: the current folder)",
    )(function)


def say(text: str) -> None:
    """Talk: stderr, flushed, so that a long measurement is seen to live."""
    click.echo(f"  {text}", err=True)


def emit(data: dict[str, Any], *, as_json: bool, text: str) -> None:
    """Print the object or its words."""
    click.echo(json.dumps(data) if as_json else text)


def local_lab(repo: Path) -> Any:
    """The lab of this machine, with the task's Python found or named: one with torch for a GPU target.

    Raises ToolMissing.
    """
    from kernelpilot_helpers import proc
    from kernelpilot_helpers.executors import task_python

    return lab_with(task_argv(repo), framework=task_python.framework_for(proc.toplevel(repo)))


def measuring_lab(repo: Path, *, need_lock: bool = True) -> Any:
    """The same for a command that measures: what this repo or this machine lacks is said before its Python is sought.

    Raises Refused for no lock, then for a GPU target without a GPU; then ToolMissing for no Python, or no CUDA in it.
    """
    from kernelpilot_helpers.executors import absent
    from kernelpilot_helpers.referee import workspace

    ready = workspace.require_ready(repo, need_lock=need_lock)
    lab = local_lab(repo)
    if need_lock and ready.device.kind == "gpu":
        absent.require_cuda(lab)
    return lab


def profile_stage(repo: Path) -> Any:
    """Where this machine profiles: the task's Python and the device lock of the measuring commands.

    Raises as ``measuring_lab``.
    """
    from kernelpilot_helpers import proc
    from kernelpilot_helpers.executors import profile_stage as stages

    return stages.LocalStage(measuring_lab(repo).python, proc.cache_dir() / "gpu-device.lock")


def task_argv(repo: Path | None) -> tuple[str, ...] | None:
    """``KERNELPILOT_PYTHON``, else ``.kernelpilot/local.toml`` of the repo; None when neither is set."""
    from kernelpilot_helpers import proc
    from kernelpilot_helpers.executors import task_python

    return task_python.explicit_argv(Path() if repo is None else proc.toplevel(repo), os.environ)


def lab_with(argv: tuple[str, ...] | None, *, framework: Literal["any", "torch"] = "any") -> Any:
    """A lab that measures with this Python; one device lock a user, so that no two jobs time at once."""
    from kernelpilot_helpers import proc
    from kernelpilot_helpers.executors import local, task_python

    python = task_python.find(explicit=argv, framework=framework)
    if python.note:
        say(python.note)
    return local.LocalLab(python, proc.cache_dir() / "device.lock")


def progress() -> Callable[[str], None]:
    """A spinner with the last line on a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty():
        return say
    from rich.console import Console

    console = Console(stderr=True)

    def tell(text: str) -> None:
        console.print(f"[dim]{text}[/dim]", highlight=False)

    return tell
