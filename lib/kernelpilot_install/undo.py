"""Undo one entry of the manifest: judged by reading only, then carried out."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernelpilot_install.files import (
    file_hash,
    remove_tree,
    sha256,
    sync_folder,
    temporary,
    tree_hash,
    write_atomic,
)
from kernelpilot_install.manifest import Entry
from kernelpilot_install.splice import unsplice
from kernelpilot_install.venvs import STAMP, is_ours


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What undoing means for one entry."""

    act: Literal["remove", "restore", "gone", "left"]
    why: str = ""
    """For ``left``: why the path is not touched."""
    data: bytes | None = None
    """For ``restore``: the file's new bytes."""


GONE = Verdict(act="gone")
REMOVE = Verdict(act="remove")


def judge(e: Entry) -> Verdict:
    """Decide from the disk as it is now; nothing is changed."""
    path = Path(e.path)
    if not path.exists() and not path.is_symlink():
        return GONE
    if e.kind == "link":
        ours = path.is_symlink() and str(path.readlink()) == e.target
        return REMOVE if ours else Verdict(act="left", why="no longer the link that was installed")
    if e.kind == "shim":
        ours = file_hash(path) == e.sha256
        return REMOVE if ours else Verdict(act="left", why="changed since it was installed")
    if e.kind == "copy":
        ours = path.is_dir() and not path.is_symlink() and tree_hash(path) == e.sha256
        return REMOVE if ours else Verdict(act="left", why="changed since it was installed")
    if e.kind == "splice":
        return _judge_splice(e, path)
    return _judge_folder(e, path)


def _judge_folder(e: Entry, path: Path) -> Verdict:
    if path.is_symlink() or not path.is_dir():
        return Verdict(act="left", why="no longer a folder")
    if e.kind == "dir":
        return REMOVE if not any(path.iterdir()) else GONE
    return REMOVE if is_ours(path) else Verdict(act="left", why=f"holds no {STAMP}: not the venv that was made")


def _judge_splice(e: Entry, path: Path) -> Verdict:
    now = path.read_bytes()
    if sha256(now) == e.before:
        return GONE
    left = unsplice(now, e.inserted, json.loads(e.group), where=e.path)
    if left is None:
        if e.inserted not in now.decode("utf-8", "replace"):
            return GONE
        return Verdict(act="left", why="our Stop hook stands in it, but cannot be told apart; remove it by hand")
    if not e.before and sha256(now) == e.sha256:
        return REMOVE
    return Verdict(act="restore", data=left)


def carry_out(e: Entry, v: Verdict) -> None:
    """Do what ``judge`` said, and clear what a killed run may have left beside the path."""
    path = Path(e.path)
    if v.act == "restore" and v.data is not None:
        real = path.resolve()
        write_atomic(real, v.data, mode=real.stat().st_mode & 0o7777)
    elif v.act == "remove":
        _remove(e, path)
    if e.kind != "dir":
        clear_leftover(path.resolve() if e.kind == "splice" else path)


def _remove(e: Entry, path: Path) -> None:
    if e.kind == "venv":
        remove_tree(path, last=STAMP)
    elif e.kind == "copy":
        shutil.rmtree(path)
    elif e.kind == "dir":
        path.rmdir()
    else:
        path.unlink()
    if path.parent.is_dir():
        sync_folder(path.parent)


def clear_leftover(path: Path) -> None:
    """Remove the half-written neighbour of ``path``, whose name only the installer uses."""
    part = temporary(path)
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)
