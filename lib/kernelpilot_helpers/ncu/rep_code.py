"""Machine code and imported sources of a report: where they lie, and their bytes only when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelpilot_helpers.ncu import wire
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import Code
from kernelpilot_helpers.ncu.wire import BYTES, VARINT, Buffer

KNOWN = frozenset({1, 2, 3, 4, 5, 6, 8, 9})
_REFERENCE, _PTX, _CUBIN, _REVISION, _FILES, _FUNCTIONS = 1, 3, 4, 6, 8, 9
Parts = dict[int, tuple[int, int]]


class Codes(Mapping[str, Code]):
    """By ``key``. A code that is sent twice, the second time without its cubin, is merged."""

    __slots__ = ("_data", "_done", "_parts")

    def __init__(self, data: Buffer) -> None:
        self._data = data
        self._parts: dict[str, Parts] = {}
        self._done: dict[str, Code] = {}

    def add(self, start: int, end: int, unknown: set[int], *, process: str) -> int:
        """Notes one ``SourceData`` message of a process; returns its number of fields. Raises RefusedInput."""
        parts: Parts = {}
        reference = count = 0
        for number, kind, value, stop in wire.fields(self._data, start, end):
            count += 1
            if number == _REFERENCE and kind == VARINT:
                reference = value
            elif number == _REVISION and kind == VARINT:
                parts[number] = (value, 0)
            elif kind == BYTES and stop > value:
                parts[number] = (value, stop)
            if number not in KNOWN:
                unknown.add(number)
        name = key(process, reference)
        self._parts[name] = {**self._parts.get(name, {}), **parts}
        return count

    def __getitem__(self, key: str) -> Code:
        if key not in self._done:
            parts = self._parts[key]
            try:
                self._done[key] = _code(self._data, parts)
            except RefusedInput:
                self._done[key] = Code()
        return self._done[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, key: object) -> bool:
        return key in self._parts


def key(process: str, reference: int) -> str:
    """Of a code in ``Report.code``: each process counts its references from the same number.

    >>> key("7", 5)
    '7/5'
    """
    return f"{process}/{reference}"


def architecture(revision: int) -> str:
    """``sm_90`` of 0x90000; empty where it is not known.

    >>> architecture(0x90000), architecture(0xA0003), architecture(0)
    ('sm_90', 'sm_103', '')
    """
    major, minor = revision >> 16, revision & 0xFFFF
    return f"sm_{major}{minor}" if 0 < major < 100 and minor < 10 else ""


def _code(data: Buffer, parts: Parts) -> Code:
    cubin = parts.get(_CUBIN, (0, 0))
    whole = data if isinstance(data, memoryview) else memoryview(data)
    ptx = parts.get(_PTX, (0, 0))
    return Code(
        cubin=whole[cubin[0] : cubin[1]],
        ptx=wire.text(data, *ptx, most=1 << 26),
        functions=tuple(_functions(data, *parts.get(_FUNCTIONS, (0, 0)))),
        files=dict(_files(data, *parts.get(_FILES, (0, 0)))),
        arch=architecture(parts.get(_REVISION, (0, 0))[0]),
    )


def _functions(data: Buffer, at: int, end: int) -> Iterator[tuple[str, int]]:
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 1 and kind == BYTES:
            symbol, address = "", 0
            for inner, sort, value, last in wire.fields(data, start, stop):
                if inner == 1 and sort == BYTES:
                    symbol = wire.text(data, value, last, most=1 << 14)
                elif inner == 2 and sort == VARINT:
                    address = value
            yield symbol, address


def _files(data: Buffer, at: int, end: int) -> Iterator[tuple[str, str]]:
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 1 and kind == BYTES:
            name = content = ""
            for inner, sort, value, last in wire.fields(data, start, stop):
                if inner == 1 and sort == BYTES:
                    name = wire.text(data, value, last, most=1 << 12)
                elif inner == 2 and sort == BYTES:
                    content = wire.text(data, value, last, most=1 << 24)
            yield name, content
