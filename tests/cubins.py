"""A small ELF file as a GPU compiler writes it, made by hand: kernels with code, registers and a stack frame."""

from __future__ import annotations

import struct
from collections.abc import Mapping

MACHINE = 190


def cubin(
    code: Mapping[str, bytes], *, registers: Mapping[str, int], frame: Mapping[str, int], extra: bytes = b""
) -> bytes:
    """Sections: names, strings, symbols, .nv.info (one entry a figure), .nv.global.init, and .text.NAME each."""
    names = list(code)
    strings = b"\0" + b"".join(n.encode() + b"\0" for n in names)
    symbols, at = bytes(24), 1
    for name in names:
        symbols += struct.pack("<IBBHQQ", at, 0x12, 0, 0, 0, 0)
        at += len(name) + 1
    info = b""
    for attribute, values in ((0x2F, registers), (0x11, frame)):
        for name, value in values.items():
            info += struct.pack("<BBHII", 4, attribute, 8, names.index(name) + 1, value)
    bodies = [("", 0, b""), (".strtab", 3, strings), (".symtab", 2, symbols), (".nv.info", 0x70000000, info)]
    bodies += [(".nv.global.init", 1, extra), *((f".text.{n}", 1, data) for n, data in code.items())]
    return _elf(bodies)


def _elf(bodies: list[tuple[str, int, bytes]]) -> bytes:
    names = b"".join(n.encode() + b"\0" for n, _, _ in bodies) + b".shstrtab\0"
    parts = [*bodies, (".shstrtab", 3, names)]
    data, heads, at = b"", b"", 0
    for name, kind, body in parts:
        link = 1 if kind == 2 else 0
        heads += struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, 64 + len(data), len(body), link, 0, 1, 0)
        data += body
        at += len(name) + 1
    head = b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HHI", 2, MACHINE, 1)
    head += struct.pack("<QQQIHHHHHH", 0, 0, 64 + len(data), 0, 64, 0, 0, 64, len(parts), len(parts) - 1)
    return head + data + heads
