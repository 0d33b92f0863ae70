"""One job at a time on one GPU: a lock file named by the GPU's UUID, held by the kernel and so never left behind."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

POLL_S = 0.05
SHARED = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - where every user's jobs meet; TMPDIR is private to a job


class GpuBusy(Exception):
    """Another job holds the GPU; the message begins with the reason code ``gpu.busy`` and names its pid."""

    def __init__(self, text: str, pid: int | None) -> None:
        super().__init__(text)
        self.pid = pid


def lock_path(uuid: str, folder: Path | None = None) -> Path:
    """The lock file of one GPU, in the folder that all users of this machine share."""
    if folder is None:
        folder = next((p for p in SHARED if p.is_dir() and os.access(p, os.W_OK)), Path(tempfile.gettempdir()))
    return folder / f"kernelpilot-gpu-{re.sub(r'[^A-Za-z0-9-]', '_', uuid)}.lock"


@contextlib.contextmanager
def hold(uuid: str, wait_s: float, folder: Path | None = None) -> Iterator[Path]:
    """Hold the GPU ``uuid`` while the block runs; yields the lock file's path.

    The owner's pid and start time stand in the file for people; what counts is the kernel's lock, which ends with
    its process, so old text never blocks. Raises GpuBusy after ``wait_s`` seconds.
    """
    path = lock_path(uuid, folder)
    fd = _open(path)
    try:
        _acquire(fd, path, wait_s)
        _sign(fd)
        try:
            yield path
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    """The lock file, made where it is missing. Another user's is opened for reading, which is enough to lock it."""
    common = os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(20):
        try:
            for mode in (os.O_RDWR, os.O_RDONLY):
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    return os.open(path, mode | common)
            with contextlib.suppress(FileExistsError):
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | common, 0o666)
                with contextlib.suppress(OSError):
                    os.fchmod(fd, 0o666)
                return fd
        except OSError as fault:
            raise GpuBusy(f"gpu.busy: the lock file {path} cannot be opened: {fault.strerror}", None) from fault
        time.sleep(POLL_S)
    raise GpuBusy(f"gpu.busy: the lock file {path} cannot be opened", None)


def _acquire(fd: int, path: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            if fault.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
        else:
            return
        if time.monotonic() >= deadline:
            pid, since = owner(path)
            who = f"pid {pid} holds it since {since}" if pid else "another process holds it"
            raise GpuBusy(f"gpu.busy: {who} (waited {wait_s:g} s; {path})", pid)
        time.sleep(min(POLL_S, max(deadline - time.monotonic(), 0.001)))


def _sign(fd: int) -> None:
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with contextlib.suppress(OSError):  # another user's file: held, but not signed
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()} {started}\n".encode(), 0)


def owner(path: Path) -> tuple[int | None, str]:
    """(pid, start) written in the lock file; (None, "") where there is nothing to read."""
    try:
        words = path.read_text().split()
        return int(words[0]), words[1]
    except (OSError, ValueError, IndexError):
        return None, ""
