"""Statements of a DWARF line program, with the call sites of inlined code that NVIDIA's compilers add.

Only the statements: the header's tables are read by pyelftools, which passes over the vendor's opcode for inlining.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAX_ROWS = 2_000_000
INLINED = 0x90
"""NVIDIA's extended opcode: (row of the call site, counted from 1 in its sequence; offset of the function's name)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """From ``address`` on the code is of ``line`` in file number ``file``."""

    address: int
    file: int
    line: int
    caller: int
    """Row of the call site in the same sequence, counted from 1; 0 for code that was not inlined."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """What a program's header says of its statements."""

    opcode_base: int
    line_base: int
    line_range: int
    least: int
    """Minimum instruction length."""
    lengths: tuple[int, ...]
    """Operands of the standard opcodes, from opcode 1 on."""


@dataclass(kw_only=True, slots=True)
class _State:
    address: int = 0
    file: int = 1
    line: int = 1
    caller: int = 0
    symbol: str | None = None
    rows: list[Row] = field(default_factory=list)

    def emit(self) -> None:
        self.rows.append(Row(address=self.address, file=self.file, line=self.line, caller=self.caller))


@dataclass(kw_only=True, slots=True)
class _Cursor:
    """A place in bytes. Reading beyond the end raises ValueError."""

    data: bytes
    at: int
    end: int

    def byte(self) -> int:
        if self.at >= self.end:
            raise ValueError("line program ends inside a statement")
        self.at += 1
        return self.data[self.at - 1]

    def leb(self, *, signed: bool = False) -> int:
        value = shift = 0
        while True:
            part = self.byte()
            value |= (part & 0x7F) << shift
            shift += 7
            if not part & 0x80:
                break
            if shift > 63:
                raise ValueError("a number of more than 64 bits")
        return value - (1 << shift) if signed and part & 0x40 else value


def sequences(
    data: bytes, start: int, end: int, head: Head, symbols: Mapping[int, str]
) -> Iterator[tuple[str | None, tuple[Row, ...]]]:
    """Each sequence's rows with the symbol that its start address is relocated to; None where there is no relocation.

    ``symbols`` gives the symbol by the offset of the relocated address. Raises ValueError for a damaged program.
    """
    if head.line_range <= 0 or head.opcode_base < 1 or end > len(data):
        raise ValueError("damaged head of a line program")
    cursor, state, total = _Cursor(data=data, at=start, end=end), _State(), 0
    while cursor.at < end:
        opcode = cursor.byte()
        if opcode >= head.opcode_base:
            state.address += (opcode - head.opcode_base) // head.line_range * head.least
            state.line += head.line_base + (opcode - head.opcode_base) % head.line_range
            state.emit()
        elif opcode == 0:
            if _extended(cursor, state, symbols):
                yield state.symbol, tuple(state.rows)
                total, state = total + len(state.rows), _State()
        else:
            _standard(cursor, state, head, opcode)
        if total + len(state.rows) > MAX_ROWS:
            raise ValueError(f"more than {MAX_ROWS} rows")


def _extended(cursor: _Cursor, state: _State, symbols: Mapping[int, str]) -> bool:
    """Do one extended statement; whether it ended the sequence."""
    length = cursor.leb()
    inside = _Cursor(data=cursor.data, at=cursor.at, end=cursor.at + length)
    if length < 1 or inside.end > cursor.end:
        raise ValueError("an extended statement of a wrong length")
    cursor.at = inside.end
    opcode = inside.byte()
    if opcode == 1:
        state.emit()
        return True
    if opcode == 2:
        if inside.at in symbols:
            state.symbol = symbols[inside.at]
        state.address = int.from_bytes(inside.data[inside.at : inside.end], "little")
    elif opcode == INLINED:
        state.caller = inside.leb()
    return False


def _standard(cursor: _Cursor, state: _State, head: Head, opcode: int) -> None:
    if opcode == 1:
        state.emit()
    elif opcode == 2:
        state.address += cursor.leb() * head.least
    elif opcode == 3:
        state.line += cursor.leb(signed=True)
    elif opcode == 4:
        state.file = cursor.leb()
    elif opcode == 8:
        state.address += (255 - head.opcode_base) // head.line_range * head.least
    elif opcode == 9:
        state.address += cursor.byte() | cursor.byte() << 8
    else:  # columns, flags and what a later version adds: only their operands matter
        for _ in range(head.lengths[opcode - 1]):
            cursor.leb()
