"""The one part that touches the disk: bytes of a report export, within fixed bounds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.sniff import binary

CHUNK = 1024 * 1024
FIX = "kernelpilot ncu digest FILE  # FILE: made by ncu --import REPORT.ncu-rep --page raw --csv > FILE"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What was read, or why reading stopped early (then ``data`` and ``sha256`` are empty)."""

    name: str
    size: int
    data: bytes
    sha256: str
    refused: RefusedInput | None


def read(path: Path) -> Source:
    """A file's bytes and hash. Stops at the first sign that it is no text export, or that it is beyond the bounds.

    Raises BadRecord when the path cannot be read at all.
    """
    try:
        if path.is_dir():
            raise BadRecord("is a folder", where=str(path), fix=FIX)
        size = path.stat().st_size
        with path.open("rb") as file:
            try:
                data = _bounded(file.read, size)
            except RefusedInput as refused:
                return Source(name=path.name, size=size, data=b"", sha256="", refused=refused)
    except FileNotFoundError:
        raise BadRecord("no such file", where=str(path), fix=FIX) from None
    except OSError as error:
        raise BadRecord(f"cannot be read: {error.strerror}", where=str(path), fix=FIX) from None
    return Source(name=path.name, size=len(data), data=data, sha256=hashlib.sha256(data).hexdigest(), refused=None)


def _bounded(read_some: object, size: int) -> bytes:
    """All bytes, or RefusedInput as soon as a bound is passed; never more than the bound is held."""
    assert callable(read_some)
    parts: list[bytes] = []
    held = line = 0
    while part := read_some(CHUNK):
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
    return b"".join(parts)
