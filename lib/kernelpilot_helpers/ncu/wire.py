"""Protocol-buffer wire format: fields and scalars of a message, every length checked against the message's end."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kernelpilot_helpers.ncu import quantity
from kernelpilot_helpers.ncu.model import RefusedInput

Buffer = bytes | memoryview
Scalar = float | int | str
VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
MAX_FIELDS = 500_000
"""Fields of one message; a full set has some 2,300 metrics in a result."""
MAX_WALKED = 6_000_000
"""Fields of one file that are walked before anybody asks for an instance or for code: at most some seconds."""
_DOUBLE_TAG: Final = 3 << 3 | FIXED64
_UINT64_TAG: Final = 5 << 3 | VARINT
_DOUBLE = struct.Struct("<d").unpack_from
_FLOAT = struct.Struct("<f").unpack_from


class Budget:
    """How much of one file is walked at once, whatever its size: about a microsecond a field."""

    __slots__ = ("left",)

    def __init__(self, left: int = MAX_WALKED) -> None:
        self.left = left

    def spend(self, fields: int) -> None:
        """Raises RefusedInput ``report.too_large`` when the file holds more than any report does."""
        self.left -= fields
        if self.left < 0:
            raise RefusedInput("report.too_large", f"more than {MAX_WALKED} fields to walk; a report holds some 50,000")


def damaged(what: str) -> RefusedInput:
    """The refusal for bytes that break the format."""
    return RefusedInput("report.damaged", what)


def varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """An unsigned number and the offset behind it. Raises RefusedInput past ``end`` or 10 bytes.

    >>> varint(bytes([0xAC, 0x02]), 0, 2)
    (300, 2)
    """
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise damaged("a number runs past its message" if shift < 70 else "a number of more than 10 bytes")


def fields(data: Buffer, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(field number, wire type, value, 0) of each number and (.., start, end) of each run of bytes, in file order.

    Never descends: a nested message is a run of bytes. Raises RefusedInput for a length beyond ``end``, an unknown
    wire type, field number 0, and more than MAX_FIELDS fields.
    """
    left = MAX_FIELDS
    while at < end:
        tag = data[at]
        if tag < 128:
            at += 1
        else:
            tag, at = varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        left -= 1
        if not number or left < 0:
            raise damaged("field number 0" if left >= 0 else f"a message of more than {MAX_FIELDS} fields")
        if kind == VARINT:
            value, at = varint(data, at, end)
            yield number, kind, value, 0
            continue
        if kind == BYTES:
            size, at = varint(data, at, end)
        else:
            size = 8 if kind == FIXED64 else 4 if kind == FIXED32 else -1
        if size < 0 or at + size > end:
            raise damaged(f"wire type {kind}" if size < 0 else f"field {number} runs past its message")
        yield number, kind, at, at + size
        at += size


def text(data: Buffer, at: int, end: int, *, most: int = 1 << 20) -> str:
    """UTF-8 text of at most ``most`` bytes; what is no UTF-8 becomes U+FFFD."""
    return str(data[at : min(end, at + most)], "utf-8", "replace")


def double(data: Buffer, at: int) -> float:
    """Eight bytes, little endian."""
    value: float = _DOUBLE(data, at)[0]
    return value


def scalar(data: Buffer, at: int, end: int) -> Scalar | None:
    """A ``Value`` message: 1 string, 2 float, 3 double, 4 uint32, 5 uint64; None when it is empty or no finite number.

    >>> scalar(bytes([0x28, 0xAC, 0x02]), 0, 3), scalar(b"", 0, 0)
    (300, None)
    """
    value: Scalar | None = None
    if end - at == 9 and data[at] == _DOUBLE_TAG:
        value = _DOUBLE(data, at + 1)[0]
    elif end - at == 2 and data[at] == _UINT64_TAG and data[at + 1] < 128:
        return data[at + 1]
    else:
        for number, kind, start, stop in fields(data, at, end):
            if kind == VARINT and number in (4, 5):
                value = start
            elif number == 3 and kind == FIXED64:
                value = _DOUBLE(data, start)[0]
            elif number == 2 and kind == FIXED32:
                value = _FLOAT(data, start)[0]
            elif number == 1 and kind == BYTES:
                value = text(data, start, stop)
    return value if not isinstance(value, float) or quantity.plausible(value) else None


def first(data: Buffer, at: int, end: int, wanted: int) -> tuple[int, int] | None:
    """Start and end of the first run of bytes in field ``wanted``."""
    for number, kind, start, stop in fields(data, at, end):
        if number == wanted and kind == BYTES:
            return start, stop
    return None
