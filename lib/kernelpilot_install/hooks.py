"""The Stop hook: which text goes into which client's settings, decided before anything is touched."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpilot_install.files import sha256
from kernelpilot_install.manifest import Entry, Manifest
from kernelpilot_install.problems import InstallError
from kernelpilot_install.splice import CODEX_TOP, groups, splice, swap

LAUNCHER = Path("vendor", "humanize", "hooks", "stop-hook")
TIMEOUT_S = 3600
"""Whole seconds; a review and the evidence gate must end well before it."""
LABEL = "KernelPilot: Stop gate"
FILES = {"codex": "hooks.json", "claude": "settings.json"}


@dataclass(frozen=True, kw_only=True)
class Registration:
    """One settings file: its new bytes and the manifest entry that undoes them."""

    client: str
    path: Path
    data: bytes
    entry: Entry


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One handler that starts a launcher, at its place in ``hooks.Stop``."""

    group: int
    handler: int
    data: Mapping[str, Any]
    program: Path


def launcher(clone: Path) -> Path | None:
    """The hook's launcher, None where this version of the bundle has none. Raises InstallError if it cannot run."""
    path = clone / LAUNCHER
    if not path.is_file():
        return None
    if not os.access(path, os.X_OK):
        raise InstallError(
            "is not executable: both clients would end the turn without a gate",
            where=str(path),
            fix=f"chmod +x {shlex.quote(str(path))}, then run this again; nothing was changed",
        )
    return path


def group(launch: Path) -> dict[str, object]:
    """The group for both clients. Its text must not change between versions: Codex trusts it by digest."""
    handler = {
        "type": "command",
        "command": shlex.quote(str(launch)),
        "timeout": TIMEOUT_S,
        "statusMessage": LABEL,
    }
    return {"hooks": [handler]}


def standing(found: list[object]) -> list[Standing]:
    """The handlers of ``hooks.Stop`` that start a launcher of this bundle or of another clone, in order.

    Commands are compared as parsed words, so that quoting and a changed time-out hide nothing.
    """
    hits = []
    for g, entry in enumerate(found):
        handlers = entry.get("hooks") if isinstance(entry, dict) else None
        for h, handler in enumerate(handlers if isinstance(handlers, list) else []):
            program = _program(handler)
            if program is not None and program.parts[-len(LAUNCHER.parts) :] == LAUNCHER.parts:
                hits.append(Standing(group=g, handler=h, data=handler, program=program))
    return hits


def _program(handler: object) -> Path | None:
    command = handler.get("command") if isinstance(handler, dict) else None
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return None
    return Path(words[0]) if words else None


def register(client: str, folder: Path, launch: Path, known: Manifest) -> Registration | None:
    """The change for one client, None when a handler of ours stands there already, edited by the user or not.

    Raises InstallError, naming file, line and column, when the settings cannot be spliced.
    """
    path = folder / FILES[client]
    wanted = group(launch)
    now = read(path)
    old = known.entry(path)
    existed = now is not None
    before = now or b""
    if wanted in groups(before, where=str(path)):
        return None
    swapped = None
    if old is not None:
        swapped = swap(before, old.inserted, json.loads(old.group), wanted, where=str(path))
        existed = existed and not (not old.before and sha256(before) == old.sha256)
        before = before if swapped is None else swapped.before
    if any(s.program == launch for s in standing(groups(before, where=str(path)))):
        return None
    done = splice(before, wanted, where=str(path), top=CODEX_TOP if client == "codex" else None)
    done = done if swapped is None else swapped
    entry = Entry(
        kind="splice",
        path=str(path),
        sha256=sha256(done.after),
        before=sha256(before) if existed else "",
        inserted=done.inserted,
        group=json.dumps(wanted),
    )
    return Registration(client=client, path=path, data=done.after, entry=entry)


def read(path: Path) -> bytes | None:
    """A settings file, None where there is none. Raises InstallError for a link to nothing."""
    if path.is_symlink() and not path.exists():
        raise InstallError("is a link to nothing", where=str(path), fix="remove the link, then run this again")
    return path.read_bytes() if path.exists() else None
