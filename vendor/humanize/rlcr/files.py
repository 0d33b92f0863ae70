"""Careful file access: what is read is a regular file of bounded size, what is written is there whole or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TooBig(ValueError):
    """The file is larger than its reader allows."""


class Locked(RuntimeError):
    """Another process held the lock for as long as we could wait."""


class NotRegular(OSError):
    """Under a name of the loop's lies a folder, a link or a pipe."""


def open_regular(path: Path, flags: int) -> int:
    """Descriptor of a regular file, reached by no link, waiting for no pipe. Raises NotRegular, or OSError."""
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0), 0o644)
    except OSError:
        if not os.path.lexists(path) or stat.S_ISREG(path.lstat().st_mode):
            raise
    else:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
        os.close(handle)
    mend = f"mv {shlex.quote(str(path))} {shlex.quote(str(path))}.by-hand"
    raise NotRegular(f"{path.name} is no regular file; move it out of the way: {mend}")


def digest_regular(path: str) -> str:
    """SHA-256 of a regular file, links followed; empty where there is none that can be read."""
    digest = hashlib.sha256()
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return ""
            while chunk := os.read(handle, 1 << 20):
                digest.update(chunk)
        finally:
            os.close(handle)
    except (OSError, ValueError):
        return ""
    return digest.hexdigest()


def read_regular(path: Path, cap: int) -> bytes | None:
    """Bytes of a regular file; None for an absent file, a link, a pipe or a folder. Raises TooBig above ``cap``."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        data = file.read(cap + 1)
    if len(data) > cap:
        raise TooBig(f"{path.name} is larger than {cap} bytes")
    return data


def replace_file(path: Path, data: bytes) -> None:
    """Write by temporary file, fsync, rename and fsync of the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if path.is_dir() and not path.is_symlink():
        set_aside(path)
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_aside(path: Path) -> Path:
    """Rename what another hand wrote to ``<name>.by-hand`` (then ``.by-hand-1``, ...); the new path."""
    for n in range(1000):
        target = path.with_name(f"{path.name}.by-hand" + (f"-{n}" if n else ""))
        if not os.path.lexists(target):
            path.rename(target)
            return target
    raise FileExistsError(f"a thousand copies of {path.name} were set aside")


@contextmanager
def locked(path: Path, wait_s: float) -> Iterator[None]:
    """Hold an exclusive lock, which the kernel drops with the process.

    Raises Locked after ``wait_s`` seconds, NotRegular for what can be no lock: set aside by us, it might be another's
    by then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + wait_s
    while True:
        handle = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.fstat(handle).st_ino == path.stat().st_ino:
                break
        except OSError:
            pass
        os.close(handle)
        if time.monotonic() >= until:
            raise Locked(str(path))
        time.sleep(0.05)
    try:
        yield
    finally:
        os.close(handle)
