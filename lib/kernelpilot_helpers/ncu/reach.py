"""Whether an edit reached the machine code: the same instructions, new opcodes, spills that came or went."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

import msgspec

from kernelpilot_helpers.ncu.report import Launch, Report, Series

OPCODES = ("sass__inst_executed_per_opcode", "sass__inst_executed_per_opcode_with_modifier_all")
SPILLS = ("derived__local_spilling_requests", "sass__inst_executed_register_spilling")
_HEAD = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_MOST = 20_000
"""Sections of one cubin that are looked at."""


class Build(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is compared of a kernel's machine code."""

    text: str = ""
    """sha256 of the kernel's instructions; empty where the report holds no code."""
    opcodes: tuple[str, ...] = ()
    """Executed ones, sorted; empty where the report does not count them."""
    spills: float | None = None
    """Requests of spilled registers; None where they were not captured."""


class Reach(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The candidate's code against its parent's."""

    same_code: bool | None
    """Whether every instruction is the same; None when a report holds no code."""
    new_opcodes: tuple[str, ...] = ()
    gone_opcodes: tuple[str, ...] = ()
    spills: tuple[float | None, float | None] = (None, None)

    @property
    def text(self) -> str:
        """One line for people."""
        head = {True: "identical machine code: the edit did not reach the GPU", False: "the machine code differs",
                None: "not known: a report holds no machine code"}[self.same_code]  # fmt: skip
        parts = [head]
        parts += [f"new {' '.join(self.new_opcodes[:6])}"] if self.new_opcodes else []
        parts += [f"gone {' '.join(self.gone_opcodes[:6])}"] if self.gone_opcodes else []
        before, after = self.spills
        if before is not None and after is not None and (before or after):
            parts.append(f"spill requests {before:g} to {after:g}")
        return "; ".join(parts)


def build(report: Report, launch: Launch) -> Build:
    """What a report says of one launch's machine code."""
    code = report.code.get(launch.code) if launch.code else None
    text = section(code.cubin, launch.mangled or launch.function) if code is not None and code.cubin else b""
    series = next((found for name in OPCODES if (found := launch.series.get(name)) is not None), None)
    opcodes = tuple(sorted(_executed(series))) if series is not None else ()
    return Build(text=hashlib.sha256(text).hexdigest() if text else "", opcodes=opcodes, spills=_spills(launch))


def _executed(series: Series) -> set[str]:
    pairs = zip(series.keys, series.values, strict=False)
    return {key for key, value in pairs if isinstance(key, str) and isinstance(value, (int, float)) and value > 0}


def _spills(launch: Launch) -> float | None:
    for name in SPILLS:
        value = launch.metrics.get(name)
        if value is not None and value.number is not None:
            return float(value.number)
    return None


def compare(before: Build, after: Build) -> Reach:
    """The candidate's build against the parent's."""
    same = before.text == after.text if before.text and after.text else None
    both = bool(before.opcodes and after.opcodes)
    return Reach(
        same_code=same,
        new_opcodes=tuple(sorted(set(after.opcodes) - set(before.opcodes))) if both else (),
        gone_opcodes=tuple(sorted(set(before.opcodes) - set(after.opcodes))) if both else (),
        spills=(before.spills, after.spills),
    )


def section(cubin: bytes | memoryview, symbol: str) -> bytes:
    """Instructions of one function of a 64-bit ELF; empty when the file is not one, or has no such function."""
    alone: tuple[int, int] | None = None
    count = 0
    texts = (found for found in sections(cubin) if found[0].startswith(".text."))
    for label, start, end in texts:
        if symbol and label == f".text.{symbol}":
            return bytes(cubin[start:end])
        alone, count = (start, end), count + 1
    return bytes(cubin[alone[0] : alone[1]]) if alone is not None and count == 1 else b""


def sections(cubin: bytes | memoryview) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of each section of a 64-bit ELF that lies whole in it; nothing of what is not one."""
    if len(cubin) < _HEAD.size or cubin[:5] != b"\x7fELF\x02":
        return
    head = _HEAD.unpack_from(cubin)
    offset, size, count, names = head[6], head[11], head[12], head[13]
    if size != _SECTION.size or count > _MOST or offset + size * count > len(cubin) or names >= count:
        return
    sections = [_SECTION.unpack_from(cubin, offset + size * ix) for ix in range(count)]
    start, length = sections[names][4], sections[names][5]
    strings = bytes(cubin[start : start + length])
    for name, _, _, _, at, long, *_ in sections:
        label = strings[name : strings.find(b"\0", name)] if name < len(strings) else b""
        if label and at + long <= len(cubin):
            yield label.decode("utf-8", "replace"), at, at + long
