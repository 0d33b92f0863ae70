"""What a cubin says of itself: its kernels, their machine code, registers and stack. ELF64 by hand, no tool."""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass

SYMTAB = 2
NOBITS = 8
SVAL = 4
REGISTERS, FRAME = 0x2F, 0x11
"""Attributes of ``.nv.info``: (symbol, value) pairs; the numbers were read from cubins whose ptxas log is known."""
BUILD_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?=\x00)")


@dataclass(frozen=True, kw_only=True)
class KernelCode:
    """One kernel of a cubin; bytes and registers a thread."""

    name: str
    sass_sha256: str
    registers: int
    stack: int
    shared: int
    """Static, as the section says: from sm_90 on it includes what the driver reserves (1 KiB)."""


@dataclass(frozen=True, kw_only=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int


def _sections(data: bytes) -> list[_Section]:
    """Every section; empty for what is no 64-bit little-endian ELF file or is cut short."""
    if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01":
        return []
    start = struct.unpack_from("<Q", data, 0x28)[0]
    width, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    if start + width * count > len(data) or names_at >= count:
        return []
    heads = [struct.unpack_from("<IIQQQQI", data, start + i * width) for i in range(count)]
    names = heads[names_at][4]
    return [_Section(name=_text(data, names + h[0]), kind=h[1], offset=h[4], size=h[5], link=h[6]) for h in heads]


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode(errors="replace") if at < len(data) else ""


def _symbols(data: bytes, sections: list[_Section]) -> list[str]:
    table = next((s for s in sections if s.kind == SYMTAB), None)
    if table is None:
        return []
    strings = sections[table.link].offset
    return [
        _text(data, strings + struct.unpack_from("<I", data, at)[0])
        for at in range(table.offset, table.offset + table.size, 24)
    ]


def _attributes(data: bytes, sections: list[_Section]) -> dict[tuple[int, str], int]:
    """(attribute, kernel) to value, from the cubin's common ``.nv.info``."""
    info = next((s for s in sections if s.name == ".nv.info"), None)
    if info is None:
        return {}
    names, found = _symbols(data, sections), {}
    at, end = info.offset, info.offset + info.size
    while at + 4 <= end:
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == SVAL:
            if size == 8:
                symbol, value = struct.unpack_from("<II", data, at)
                found[attribute, names[symbol] if symbol < len(names) else ""] = value
            at += size
    return found


def kernels(data: bytes) -> tuple[KernelCode, ...]:
    """The kernels of a cubin in the order of their names; empty for anything that is not one."""
    try:
        sections = _sections(data)
        said = _attributes(data, sections)
    except (struct.error, ValueError, IndexError):
        return ()
    shared = {s.name.removeprefix(".nv.shared."): s.size for s in sections if s.name.startswith(".nv.shared.")}
    found = []
    for section in sections:
        if section.name.startswith(".text.") and section.kind != NOBITS:
            name = section.name.removeprefix(".text.")
            code = data[section.offset : section.offset + section.size]
            found.append(
                KernelCode(
                    name=name,
                    sass_sha256=hashlib.sha256(code).hexdigest(),
                    registers=said.get((REGISTERS, name), 0),
                    stack=said.get((FRAME, name), 0),
                    shared=shared.get(name, 0),
                )
            )
    return tuple(sorted(found, key=lambda k: k.name))


def build_id(data: bytes) -> str:
    """The build id that a file carries (64 hex digits before a zero byte), empty without one."""
    found = BUILD_ID.search(data)
    return found[0].decode() if found else ""
