"""The one part that touches the disk: bytes of a report or of an export, within fixed bounds."""

from __future__ import annotations

import errno
import hashlib
import os
import select
import stat
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.sniff import binary, is_binary

CHUNK = 1024 * 1024
Read = Callable[[int], "bytes | None"]
MAX_REPORT = 256 * 1024 * 1024
"""Of a binary report: library code and sources make most of it."""
PIPE_WAIT_S = 5.0
FIX = "kernelpilot ncu digest REPORT.ncu-rep  # REPORT.ncu-rep: what `ncu -o REPORT` wrote, or an export of it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What was read, or why reading stopped early (then ``data`` and ``sha256`` are empty)."""

    name: str
    size: int
    data: bytes
    sha256: str
    refused: RefusedInput | None


def read(path: Path) -> Source:
    """A file's bytes and hash. Stops at the first sign that it is neither report nor text, or is beyond the bounds.

    Raises BadRecord when the path cannot be read at all.
    """
    try:
        if path.is_dir():
            raise BadRecord("is a folder", where=str(path), fix=FIX)
        size = path.stat().st_size
        with FileIO(path, opener=_open) as file:
            try:
                head = b""
                while len(head) < 4 and (more := file.read(4 - len(head))):  # a pipe gives what it has
                    head += more
                data = _report(file, head, size) if is_binary(head) else _text(file.read, head, size)
            except RefusedInput as refused:
                return Source(name=path.name, size=size, data=b"", sha256="", refused=refused)
    except FileNotFoundError:
        raise BadRecord("no such file", where=str(path), fix=FIX) from None
    except OSError as error:
        raise BadRecord(f"cannot be read: {error.strerror}", where=str(path), fix=FIX) from None
    return Source(name=path.name, size=len(data), data=data, sha256=hashlib.sha256(data).hexdigest(), refused=None)


def _text(read_some: Read, head: bytes, size: int) -> bytes:
    """All bytes of a text, or RefusedInput as soon as a bound is passed; never more than the bound is held."""
    parts: list[bytes] = []
    held = line = 0
    part = head + (read_some(CHUNK) or b"")
    while part:
        if not parts:
            binary(part)
            if size > limits.MAX_BYTES:
                raise RefusedInput("file.too_large", f"{size} bytes; at most {limits.MAX_BYTES} are read")
        cut = part.rfind(b"\n")
        longest = max((len(piece) for piece in part.split(b"\n")), default=0)
        line = line + len(part) if cut < 0 else len(part) - cut - 1
        held += len(part)
        if max(line, longest) > limits.MAX_LINE:
            raise RefusedInput("file.line_too_long", f"a line of more than {limits.MAX_LINE} bytes")
        if held > limits.MAX_BYTES:
            raise RefusedInput("file.too_large", f"more than {limits.MAX_BYTES} bytes")
        parts.append(part)
        part = read_some(CHUNK) or b""
    return b"".join(parts)


def _open(name: str, flags: int) -> int:
    """A named pipe into which nobody writes is an error, not a wait without an end."""
    pipe = stat.S_ISFIFO(Path(name).stat().st_mode)
    fd = os.open(name, flags | (os.O_NONBLOCK if pipe else 0))
    if pipe:
        if not select.select([fd], [], [], PIPE_WAIT_S)[0]:
            os.close(fd)
            raise OSError(errno.EPIPE, f"a pipe into which nothing was written for {PIPE_WAIT_S:g} seconds")
        os.set_blocking(fd, True)
    return fd


def _report(file: FileIO, head: bytes, size: int) -> bytes:
    """All bytes of a binary report, in one piece where it is a file: joining two would need twice the memory."""
    if size > MAX_REPORT:
        raise RefusedInput("file.too_large", f"{size} bytes; at most {MAX_REPORT} are read of a binary report")
    if file.seekable():
        file.seek(0)
        return file.readall()
    parts = [head]
    held = len(head)
    while part := file.read(CHUNK):
        held += len(part)
        if held > MAX_REPORT:
            raise RefusedInput("file.too_large", f"more than {MAX_REPORT} bytes of a binary report")
        parts.append(part)
    return b"".join(parts)
