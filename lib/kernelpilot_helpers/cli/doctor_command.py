"""``kernelpilot doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_install.doctor import Check


@click.command("doctor")
@click.option("--client", type=click.Choice(("codex", "claude", "both")), help="default: those found and installed for")
@common.repo_option
@common.json_option
def command(client: str | None, repo: Path, as_json: bool) -> int:
    """Check skills, Stop hook, evidence command, the task's Python, GPU and ncu.

    Writes nothing and works anywhere; in a repo it looks at that repo's loop too. Exit 1 when a check fails; a
    warning does not count.
    """
    import os

    from kernelpilot_helpers.errors import KernelPilotError
    from kernelpilot_install.doctor import Here, examine
    from kernelpilot_install.places import clone_root, places
    from kernelpilot_install.problems import InstallError

    folder = repo.absolute()
    argv, fault = _named_python(folder)
    try:
        at = places(os.environ, clone_root())
    except InstallError as e:
        raise KernelPilotError(e.what, where=e.where, fix=e.fix) from None
    here = Here(at=at, env=os.environ, folder=folder, client=client, task_argv=argv, task_fault=fault)
    checks = examine(here)
    data = {"checks": [{"name": c.name, "status": c.status, "what": c.what, "fix": c.fix} for c in checks]}
    common.emit(data, as_json=as_json, text=_words(checks))
    return 1 if any(c.status == "fail" for c in checks) else 0


def _named_python(folder: Path) -> tuple[tuple[str, ...] | None, str]:
    """What the user named as the task's Python, or why that cannot be read."""
    import os

    from kernelpilot_helpers.errors import KernelPilotError
    from kernelpilot_helpers.executors import task_python

    root = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder)
    try:
        return task_python.explicit_argv(root, os.environ), ""
    except (KernelPilotError, OSError) as e:
        return None, str(e).partition("\n")[0]


def _words(checks: list[Check]) -> str:
    lines = []
    for c in checks:
        lines.append(f"{c.status:<5} {c.name}: {c.what}")
        lines += [f"      fix: {c.fix}"] if c.fix else []
    counts = {s: sum(c.status == s for c in checks) for s in ("ok", "warn", "fail")}
    lines.append(", ".join(f"{n} {s}" for s, n in counts.items()))
    return "\n".join(lines)
