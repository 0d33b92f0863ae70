"""The Stop hook: which text goes into which client's settings, decided before anything is touched."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from kernelpilot_install.files import sha256
from kernelpilot_install.manifest import Entry, Manifest
from kernelpilot_install.problems import InstallError
from kernelpilot_install.splice import CODEX_TOP, groups, splice, unsplice

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


def launcher(clone: Path) -> Path | None:
    """The hook's launcher, None where this version of the bundle has none."""
    path = clone / LAUNCHER
    return path if path.is_file() else None


def group(launch: Path) -> dict[str, object]:
    """The group for both clients. Its text must not change between versions: Codex trusts it by digest."""
    handler = {
        "type": "command",
        "command": shlex.quote(str(launch)),
        "timeout": TIMEOUT_S,
        "statusMessage": LABEL,
    }
    return {"hooks": [handler]}


def register(client: str, folder: Path, launch: Path, known: Manifest) -> Registration | None:
    """The change for one client, None when our group stands there already.

    Raises InstallError, naming file, line and column, when the settings cannot be spliced.
    """
    path = folder / FILES[client]
    wanted = group(launch)
    now = _read(path)
    old = known.entry(path)
    existed = now is not None
    before = now or b""
    if wanted in groups(before, where=str(path)):
        return None
    if old is not None:
        bare = unsplice(before, old.inserted, json.loads(old.group), where=str(path))
        existed = existed and not (not old.before and sha256(before) == old.sha256)
        before = before if bare is None else bare
    done = splice(before, wanted, where=str(path), top=CODEX_TOP if client == "codex" else None)
    entry = Entry(
        kind="splice",
        path=str(path),
        sha256=sha256(done.after),
        before=sha256(before) if existed else "",
        inserted=done.inserted,
        group=json.dumps(wanted),
    )
    return Registration(client=client, path=path, data=done.after, entry=entry)


def _read(path: Path) -> bytes | None:
    if path.is_symlink() and not path.exists():
        raise InstallError("is a link to nothing", where=str(path), fix="remove the link, then run this again")
    return path.read_bytes() if path.exists() else None
