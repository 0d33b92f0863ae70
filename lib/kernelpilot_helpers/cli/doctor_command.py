"""``kernelpilot doctor``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_install.doctor import Check, Spot

_LEFT = re.compile(r"\{\{[^{}\n]{0,80}\}\}|@[A-Z]+@|\b(?:TODO|FIXME|TBD)\b")


@click.command("doctor")
@click.option("--client", type=click.Choice(("codex", "claude", "both")), help="default: those found and installed for")
@click.option("--ping", is_flag=True, help="ask each reviewer for one answer in the strict schema (one model call)")
@common.repo_option
@common.json_option
def command(client: str | None, ping: bool, repo: Path, as_json: bool) -> int:
    """Check skills, Stop hook and its trust, evidence command, the task's Python, GPU and ncu.

    Writes nothing itself and works anywhere; in a repo it looks at that repo's loop too. Codex is asked what it shows
    and trusts, without a model. Exit 1 when a check fails; a warning does not count.
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
    here = Here(
        at=at,
        env=os.environ,
        folder=folder,
        client=client,
        task_argv=argv,
        task_fault=fault,
        gpu_target=_gpu_target(folder),
        ping=ping,
        placeholders=tuple(_placeholders(folder)),
    )
    checks = examine(here)
    data = {"checks": [{"name": c.name, "status": c.status, "what": c.what, "fix": c.fix} for c in checks]}
    common.emit(data, as_json=as_json, text=_words(checks))
    return 1 if any(c.status == "fail" for c in checks) else 0


def _named_python(folder: Path) -> tuple[tuple[str, ...] | None, str]:
    """What the user named as the task's Python, or why that cannot be read."""
    import os

    from kernelpilot_helpers.errors import KernelPilotError
    from kernelpilot_helpers.executors import task_python

    root = _root(folder)
    try:
        return task_python.explicit_argv(root, os.environ), ""
    except (KernelPilotError, OSError) as e:
        return None, str(e).partition("\n")[0]


def _root(folder: Path) -> Path:
    return next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder)


def _gpu_target(folder: Path) -> str:
    """``target.gpu`` of the contract of this repo; empty for a CPU, and where no contract can be read."""
    from kernelpilot_helpers import contract
    from kernelpilot_helpers.errors import KernelPilotError

    try:
        made = contract.parse((_root(folder) / contract.CONTRACT_PATH).read_bytes(), at=contract.CONTRACT_PATH)
    except (KernelPilotError, OSError):
        return ""
    return made.target.gpu if contract.device(made.target) == "gpu" else ""


def _placeholders(folder: Path) -> Iterator[Spot]:
    """What `lock` and the gate would refuse as unwritten in this repo; none where there is no contract."""
    from kernelpilot_helpers import contract, plan, scaffold
    from kernelpilot_helpers.errors import KernelPilotError
    from kernelpilot_install.doctor import Spot
    from kernelpilot_install.doctor.check import edit

    root = _root(folder)
    path = root / contract.CONTRACT_PATH
    if not path.is_file():
        return
    locked = (root / contract.LOCK_PATH).is_file()
    try:
        made = contract.parse(path.read_bytes(), at=contract.CONTRACT_PATH)
        for fault in scaffold.stubs(root, made):
            yield Spot(where=fault.where, what=fault.what, fix=edit(root / fault.where, fault.fix), grave=locked)
    except KernelPilotError as e:
        for line in e.what.splitlines():
            _, found, value = line.partition("placeholder: ")
            if found:
                fix = edit(path, "put the task's own value there")
                yield Spot(where=contract.CONTRACT_PATH, what=f"placeholder {value}", fix=fix, grave=locked)
    except OSError:
        return
    for name, fix in ((plan.PATH, "kernelpilot plan --force"), ("artifacts/FINAL.md", "kernelpilot report --final")):
        text = (root / name).read_text(encoding="utf-8", errors="replace") if (root / name).is_file() else ""
        mark = _LEFT.search(text)
        if mark is not None:
            number = text.count("\n", 0, mark.start()) + 1
            yield Spot(where=f"{name}:{number}", what=f"still holds {mark[0]}", fix=fix, grave=locked)


def _words(checks: list[Check]) -> str:
    lines = []
    for c in checks:
        lines.append(f"{c.status:<5} {c.name}: {c.what}")
        lines += [f"      fix: {c.fix}"] if c.fix else []
    counts = {s: sum(c.status == s for c in checks) for s in ("ok", "warn", "fail")}
    lines.append(", ".join(f"{n} {s}" for s, n in counts.items()))
    return "\n".join(lines)
