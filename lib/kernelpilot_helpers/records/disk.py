"""Documents on disk: replaced whole by rename, or not at all; crash points for the promise of kill -9."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from kernelpilot_helpers.errors import BadRecord, KernelPilotError
from kernelpilot_helpers.records.codec import Owner, dump, parse, sha256

T = TypeVar("T")


def crash_point(step: str) -> None:
    """Die here, as by ``kill -9``, when ``KP_CRASH_AT`` names this step: how the promise of kill -9 is tested."""
    if os.environ.get("KP_CRASH_AT") == step:
        os.kill(os.getpid(), signal.SIGKILL)


def file_sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    return sha256(path.read_bytes())


def load(path: Path, owner: Owner[T]) -> T:
    """Read one document. Raises BadRecord when it is absent, unreadable or not what its format promises."""
    return parse(read_bytes(path, fix=owner.fix), owner, at=str(path))


def read_bytes(path: Path, *, fix: str) -> bytes:
    """A file's bytes, or BadRecord saying what is wrong with the path."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BadRecord("no such file", where=str(path), fix=fix) from None
    except OSError as error:
        raise BadRecord(f"cannot be read: {error.strerror}", where=str(path), fix=fix) from None


def save(path: Path, record: object) -> None:
    """Replace a document whole: temporary file, fsync, rename, fsync of the directory."""
    write_bytes(path, dump(record))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file whole; a reader sees the old bytes or the new ones, never a mixture.

    Raises KernelPilotError when the disk refuses; the old file then stands and no temporary file is left.
    """
    tmp = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with refusals(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_synced(tmp, data)
            crash_point("save.tmp")
            tmp.replace(path)
        except OSError:
            tmp.unlink(missing_ok=True)
            raise
        sync_dir(path.parent)


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Turn what the system says about writing ``path`` into a KernelPilotError."""
    try:
        yield
    except OSError as error:
        raise KernelPilotError(
            f"cannot be written: {error.strerror}", where=str(path), fix=f"check room and rights: df -h {path.parent}"
        ) from None


def _write_synced(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def write_text(path: Path, text: str) -> None:
    """Replace a text file whole."""
    write_bytes(path, text.encode())


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, however often the system takes only some."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_dir(path: Path) -> None:
    """Make a new name in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
