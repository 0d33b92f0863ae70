"""Static resources of GPU kernels: what ptxas said, completed from the cubin."""

from __future__ import annotations

import re
from typing import Any

from . import cubin

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\w+)'")
PROPERTIES = re.compile(r"Function properties for '?([^'\s]+)'?")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


def parse(log: str) -> dict[str, dict[str, int]]:
    """Kernel's symbol to registers, spill_stores, spill_loads, shared and stack, from the text of ``ptxas -v``.

    Lines of device functions that were not inlined are left out: only entry functions are launched.
    """
    found: dict[str, dict[str, int]] = {}
    entry = spoken = ""
    for line in log.splitlines():
        if match := ENTRY.search(line):
            entry = spoken = match[1]
            found.setdefault(entry, {})
        elif match := PROPERTIES.search(line):
            spoken = match[1]
        elif (match := STACK.search(line)) and spoken == entry and entry:
            found[entry].update(stack=int(match[1]), spill_stores=int(match[2]), spill_loads=int(match[3]))
        elif (match := USED.search(line)) and entry:
            shared = SHARED.search(line)
            found[entry].update(registers=int(match[1]), shared=int(shared[1]) if shared else 0)
    return found


def of_build(data: bytes, log: str) -> list[dict[str, Any]]:
    """The fields of ``raw.KernelUsage`` for each kernel of a built file, ordered by name.

    A cubin names its kernels; for a shared library, whose device code is packed, the log is all there is. Where
    there is no log (Triton's cubins) registers and stack are the cubin's own words and spills are not known.
    """
    said = parse(log)
    inside = {k.name: k for k in cubin.kernels(data)} if is_cubin(data) else {}
    found: list[dict[str, Any]] = []
    for name in sorted(inside or said):
        own, code = said.get(name, {}), inside.get(name)
        found.append({
            "name": readable(name),
            "registers": own.get("registers", code.registers if code else 0),
            "spill_stores": own.get("spill_stores", 0),
            "spill_loads": own.get("spill_loads", 0),
            "shared": own.get("shared", code.shared if code else 0),
            "stack": own.get("stack", code.stack if code else 0),
            "sass_sha256": code.sass_sha256 if code else "",
        })  # fmt: skip
    return found


def is_cubin(data: bytes) -> bool:
    """An ELF file for a GPU (machine 190)."""
    return data[:4] == b"\x7fELF" and data[18:20] == (190).to_bytes(2, "little")


def readable(symbol: str) -> str:
    """The plain name in a C++ symbol (``_Z4normILi128EEvPf`` is ``norm<128>``); others as they are.

    Names, nested names and arguments that are whole numbers are read; anything else keeps the symbol, since a
    wrong name is worse than an ugly one.
    """
    match = re.match(r"_ZN?", symbol)
    if match is None:
        return symbol
    parts, rest = [], symbol[match.end() :]
    while digits := re.match(r"\d+", rest):
        size = int(digits[0])
        parts.append(rest[digits.end() : digits.end() + size])
        rest = rest[digits.end() + size :]
    if not parts:
        return symbol
    name = "::".join("(anonymous)" if p.startswith("_GLOBAL__N_") else p for p in parts)
    if not rest.startswith("I"):
        return name
    values = re.match(r"I((?:L[a-z]n?\d+E)+)E", rest)
    if values is None:
        return symbol
    words = [w.replace("n", "-") for w in re.findall(r"L[a-z](n?\d+)E", values[1])]
    return f"{name}<{', '.join(words)}>"
