"""Disk primitives of the installer: atomic writes, hashes, and removal that leaves its mark for last."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_install.problems import InstallError

TEMPORARY = ".kernelpilot-tmp"


def crash_point(name: str) -> None:
    """Die here as kill -9 would when KP_CRASH_AT names this point; tests of recovery set it."""
    if os.environ.get("KP_CRASH_AT") == name:
        os._exit(137)


def temporary(path: Path) -> Path:
    """The one name of a file half written: a killed run's leftover is found and overwritten by the next."""
    return path.with_name(f".{path.name}{TEMPORARY}")


def sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` durable."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomic(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace ``path`` by ``data`` in one rename; readers see the old bytes or the new ones."""
    part = temporary(path)
    with part.open("wb") as f:
        f.write(data)
        if mode is not None:
            os.fchmod(f.fileno(), mode)
        f.flush()
        os.fsync(f.fileno())
    part.replace(path)
    sync_folder(path.parent)


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()


def file_hash(path: Path) -> str | None:
    """Hex digest of a regular file, None where there is none."""
    return sha256(path.read_bytes()) if path.is_file() and not path.is_symlink() else None


def tree_hash(folder: Path) -> str:
    """Digest over names, kinds, modes' x-bit and contents below ``folder``; byte code does not count."""
    h = hashlib.sha256()
    for p in sorted(folder.rglob("*")):
        if "__pycache__" in p.parts:
            continue
        name = p.relative_to(folder).as_posix()
        if p.is_symlink():
            h.update(f"l {name} {p.readlink()}\0".encode())
        elif p.is_dir():
            h.update(f"d {name}\0".encode())
        else:
            x = bool(p.stat().st_mode & 0o100)
            h.update(f"f {name} {x} {file_hash(p)}\0".encode())
    return h.hexdigest()


def empty_tree(folder: Path, *, keep: str) -> None:
    """Remove everything in ``folder`` but the file named ``keep``."""
    for p in folder.iterdir():
        if p.name == keep:
            continue
        if p.is_dir() and not p.is_symlink():
            shutil.rmtree(p)
        else:
            p.unlink()


def remove_tree(folder: Path, *, last: str) -> None:
    """Remove ``folder``; the file named ``last`` goes last, so a killed removal is still recognised as ours."""
    empty_tree(folder, keep=last)
    (folder / last).unlink(missing_ok=True)
    folder.rmdir()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the installer's lock. Raises InstallError when another installer is running.

    The descriptor is inheritable: a pip that outlives a killed installer keeps the lock until it ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InstallError(
                "another install is running, or the pip of one that was killed",
                where=str(path),
                fix="wait until it ends, then run this again",
            ) from None
        os.set_inheritable(f.fileno(), True)
        yield
