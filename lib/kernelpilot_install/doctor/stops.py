"""The Stop hook: registered once, and runnable."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelpilot_install import hooks
from kernelpilot_install.doctor.check import Check, Here, edit
from kernelpilot_install.splice import CODEX_TOP, groups

PROJECT_FILES = {
    "codex": (".codex/hooks.json",),
    "claude": (".claude/settings.json", ".claude/settings.local.json"),
}


def registered(here: Here, client: str, root: Path) -> Iterator[Check]:
    """Exactly one handler over all layers, ours, and able to start."""
    name = f"hook-{client}"
    install = f"{shlex.quote(str(here.at.clone / 'install.sh'))} --client {client}"
    launch = here.at.clone / hooks.LAUNCHER
    path = root / hooks.FILES[client]
    text = hooks.read(path) or b""
    found = [(path, s) for s in hooks.standing(groups(text, where=str(path)))]
    yield from _whole_file(client, path, text)
    for layer in _project_layers(here, client):
        found += [(layer, s) for s in hooks.standing(groups(hooks.read(layer) or b"", where=str(layer)))]
    here_ones = [f for f in found if f[1].program == launch]
    if not launch.is_file():
        yield Check(
            name=name,
            status="fail",
            what=f"{launch} is absent",
            fix=f"git -C {shlex.quote(str(here.at.clone))} checkout -- vendor",
        )
    elif not os.access(launch, os.X_OK):
        fix = f"chmod +x {shlex.quote(str(launch))}"
        yield Check(name=name, status="fail", what=f"{launch} is not executable: the hook fails and lets go", fix=fix)
    elif not here_ones:
        other = f"; it holds the hook of {found[0][1].program}" if found else ""
        what = f"{path} does not hold this clone's Stop hook{other}: the loop would end at the first stop"
        yield Check(name=name, status="fail", what=what, fix=install + (" --replace" if found else ""))
    elif len(found) > 1:
        where = ", ".join(str(p) for p, _ in found)
        what = f"the Stop hook stands {len(found)} times ({where}) and would run that often"
        other_file = next((p for p, _ in found if p != path), path)
        yield Check(name=name, status="fail", what=what, fix=edit(other_file, "keep one Stop hook, remove the others"))
    else:
        yield Check(name=name, status="ok", what=f"{path} starts {launch}")


def _whole_file(client: str, path: Path, text: bytes) -> Iterator[Check]:
    """Settings that void every hook of the file."""
    value: Any = json.loads(text) if text.strip() else {}
    if not isinstance(value, dict):
        yield Check(
            name=f"hook-{client}",
            status="fail",
            what=f"{path} holds no JSON object",
            fix=edit(path, "make it an object"),
        )
    elif client == "codex":
        unknown = sorted(set(value) - CODEX_TOP)
        if unknown:
            what = f"{path}: Codex drops the whole file for the key {unknown[0]!r}"
            yield Check(name="hook-codex", status="fail", what=what, fix=edit(path, "remove that key"))
    elif value.get("disableAllHooks") is True:
        what = f"{path} turns all hooks off"
        yield Check(name="hook-claude", status="fail", what=what, fix=edit(path, 'remove "disableAllHooks"'))


def _project_layers(here: Here, client: str) -> list[Path]:
    if here.root is None:
        return []
    user = {here.at.codex / "hooks.json", here.at.claude / "settings.json"}
    found = [here.root / name for name in PROJECT_FILES[client]]
    return [p for p in found if p.is_file() and p not in user]
