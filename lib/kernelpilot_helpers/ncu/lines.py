"""Source and PTX lines of machine code, from the line tables that a cubin carries when built with ``-lineinfo``."""

from __future__ import annotations

import bisect
import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernelpilot_helpers.ncu import limits, line_program, reach
from kernelpilot_helpers.ncu.report import Code

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

MAX_SECTION = 16 * 1024 * 1024
MAX_SECTIONS = 65_535
MAX_DEPTH = 16
"""Call sites that are followed outward."""
SOURCE = ".debug_line"
PTX = ".nv_debug_line_sass"
_PTX_TEXT = b".nv_debug_ptx_txt"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A source line, and the call sites that it was inlined at, innermost first."""

    file: str
    line: int
    callers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Lines by function and offset. Empty with a note where the code holds no table that can be read."""

    starts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    places: Mapping[str, tuple[Place | None, ...]] = field(default_factory=dict)
    """None: past the end of the function."""
    note: str = ""

    def at(self, symbol: str, offset: int) -> Place | None:
        """The line of the instruction at a byte offset of a function; None where the table says nothing."""
        starts = self.starts.get(symbol)
        found = bisect.bisect_right(starts, offset) - 1 if starts else -1
        return self.places[symbol][found] if found >= 0 else None


def table(code: Code) -> Table:
    """The source line of every instruction. Never raises: damage gives an empty table with a note."""
    return _guarded(code.cubin, SOURCE, _table)


def ptx_table(code: Code) -> Table:
    """The PTX line of every instruction: ``Place.line`` counts in ``ptx_text``. Never raises."""
    return _guarded(code.cubin, PTX, _table)


def ptx_text(code: Code) -> tuple[str, ...]:
    """Lines of the PTX that the machine code was made from; empty where the cubin holds none. Never raises."""
    if code.ptx:
        return tuple(code.ptx.splitlines())
    texts: list[bytes] = []

    def read(elf: ELFFile, _section: str) -> Table:
        texts.append(_bytes(elf, _PTX_TEXT.decode()))
        return Table()

    _guarded(code.cubin, _PTX_TEXT.decode(), read)
    return tuple(text.decode("utf-8", "replace") for text in texts[0].split(b"\0")) if texts else ()


def symbol_index(code: Code, symbol: str) -> int | None:
    """Position of a function in the cubin's symbol table; None where it is not there. Never raises."""
    found: list[int] = []

    def read(elf: ELFFile, _section: str) -> Table:
        symbols = _sized(elf, ".symtab", 24)
        names = enumerate(symbols.iter_symbols()) if symbols is not None else ()
        found.extend(at for at, entry in names if entry.name == symbol)
        return Table()

    _guarded(code.cubin, ".symtab", read)
    return found[0] if found else None


def text_line(code: Code, file: str, line: int) -> str:
    """A line of an imported source file; empty where the report does not hold it."""
    text = code.files.get(file)
    if text is None:
        tail = file.rsplit("/", 1)[-1]
        same = [held for path, held in code.files.items() if path.rsplit("/", 1)[-1] == tail]
        text = same[0] if len(same) == 1 else None
    rows = text.splitlines() if text is not None else []
    return rows[line - 1].strip()[: limits.MAX_NAME] if 0 < line <= len(rows) else ""


def _guarded(held: bytes | memoryview, section: str, read: Callable[[ELFFile, str], Table]) -> Table:
    if not held:
        return Table(note="the report holds no machine code")
    if len(held) > limits.MAX_BYTES:
        return Table(note="the machine code is too large to look for lines")
    # by the heads: a search through 30 MB of library code takes longer than the rest of a digest
    names = {name for name, _, _ in reach.sections(held)}
    cubin = b"" if names and section not in names else bytes(held)
    if section.encode() not in cubin:
        return Table(note="the machine code was built without -lineinfo")
    # elftools takes 50 ms to import: paid only by code that has a table
    from elftools.common.exceptions import DWARFError, ELFError  # noqa: PLC0415
    from elftools.construct import ConstructError  # noqa: PLC0415

    try:
        return read(_elf(cubin), section)
    except (
        ELFError, DWARFError, ConstructError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
        AssertionError, OSError, struct.error, MemoryError,
    ) as fault:  # fmt: skip
        return Table(note=f"the line table is damaged: {str(fault)[:100] or type(fault).__name__}")


def _elf(cubin: bytes) -> ELFFile:
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415

    if cubin[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    elf = ELFFile(io.BytesIO(cubin))
    start, size, count = elf["e_shoff"], elf["e_shentsize"], elf["e_shnum"]
    # a size of 0 would read one head again and again; a count of 0 takes the count from that head
    if size != 64 or not 0 < count <= MAX_SECTIONS or start + size * count > len(cubin):
        raise ValueError("section heads outside the file")
    return elf


def _bytes(elf: ELFFile, name: str) -> bytes:
    section = elf.get_section_by_name(name)
    if section is None:
        raise ValueError(f"no section {name}")
    if section["sh_flags"] & 0x800 or section["sh_size"] > MAX_SECTION:
        raise ValueError(f"section {name} is compressed or too large")
    data: bytes = section.data()
    if len(data) != section["sh_size"]:
        raise ValueError(f"section {name} ends outside the file")
    return data


def _sized(elf: ELFFile, name: str, entry: int) -> Any:
    """A section of records; Any: elftools has a class for each kind and promises the common one."""
    section = elf.get_section_by_name(name)
    if section is not None and (section["sh_entsize"] != entry or section["sh_size"] > MAX_SECTION):
        raise ValueError(f"section {name} has records of a wrong size")
    return section


def _symbols(elf: ELFFile, section: str, bases: dict[str, int]) -> dict[int, str]:
    """Name of the function by the offset of each address in a line table; ``bases`` get their addresses."""
    names: dict[int, str] = {}
    table_of = _sized(elf, ".symtab", 24)
    for prefix, size in ((".rela", 24), (".rel", 16)):
        relocations = _sized(elf, prefix + section, size)
        if relocations is not None and table_of is not None:
            for one in relocations.iter_relocations():
                symbol = table_of.get_symbol(one["r_info_sym"])
                names[one["r_offset"]] = symbol.name
                bases[symbol.name] = symbol["st_value"]
    return names


def _table(elf: ELFFile, section: str) -> Table:
    bases: dict[str, int] = {}
    data, symbols = _bytes(elf, section), _symbols(elf, section, bases)
    texts = [s.name[len(".text.") :] for s in elf.iter_sections() if s.name.startswith(".text.")]
    only = texts[0] if len(texts) == 1 else None
    starts: dict[str, tuple[int, ...]] = {}
    places: dict[str, tuple[Place | None, ...]] = {}
    strings = _bytes(elf, ".debug_line_str") if elf.get_section_by_name(".debug_line_str") else b""
    at = 0
    while at + 4 < len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        end = at + 4 + length
        if end > len(data):
            raise ValueError("a line program ends outside its section")
        head, begin, names = _head(data, at, strings)
        for relocated, rows in line_program.sequences(data, begin, end, head, symbols):
            symbol = relocated or only
            if symbol and rows:
                # ncu 2022.1 and older stored code as loaded: its addresses are absolute, in symbols and tables alike
                base = bases.get(symbol, 0)
                found = _places(rows, names, base if base <= rows[0].address else 0)
                starts[symbol] = tuple(found)
                places[symbol] = tuple(found.values())
        at = end
    note = "" if starts else "the line table names no function"
    return Table(starts=starts, places=places, note=note)


def _head(data: bytes, at: int, strings: bytes) -> tuple[line_program.Head, int, Mapping[int, str]]:
    """A program's head, where its statements begin, and the file names by number."""
    from elftools.common.utils import struct_parse  # noqa: PLC0415
    from elftools.dwarf.structs import DWARFStructs  # noqa: PLC0415

    version = int.from_bytes(data[at + 4 : at + 6], "little")
    if not 2 <= version <= 5:
        raise ValueError(f"DWARF version {version}")
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8, dwarf_version=version)
    raw = struct_parse(structs.Dwarf_lineprog_header, io.BytesIO(data), at)
    head = line_program.Head(
        opcode_base=raw["opcode_base"],
        line_base=raw["line_base"],
        line_range=raw["line_range"],
        least=raw["minimum_instruction_length"],
        lengths=tuple(raw["standard_opcode_lengths"]),
    )
    begin = at + (12 if version == 5 else 10) + raw["header_length"]
    return head, begin, _names(raw, version, strings)


def _names(raw: Any, version: int, strings: bytes) -> Mapping[int, str]:
    def text(value: bytes | int) -> str:
        if isinstance(value, int):
            value = strings[value : strings.index(b"\0", value)]
        return value.decode("utf-8", "replace")[: limits.MAX_NAME]

    if version == 5:
        folders = [text(entry["DW_LNCT_path"]) for entry in raw["directories"]]
        files = [(text(e["DW_LNCT_path"]), e["DW_LNCT_directory_index"] or 0) for e in raw["file_names"]]
        first = 0
    else:
        folders = ["", *(text(entry) for entry in raw["include_directory"])]
        files = [(text(e["name"]), e["dir_index"]) for e in raw["file_entry"] if e["name"]]
        first = 1
    named = {}
    for number, (name, folder) in enumerate(files, start=first):
        held = folders[folder] if 0 <= folder < len(folders) else ""
        named[number] = name if name.startswith("/") or not held else f"{held.rstrip('/')}/{name}"
    return named


def _places(rows: tuple[line_program.Row, ...], names: Mapping[int, str], base: int) -> dict[int, Place | None]:
    """Lines of a sequence by offset, ascending.

    Of several rows at one address the last one holds, as a call site comes before what it calls.
    """
    found: dict[int, Place | None] = {}
    for row in rows[:-1]:
        callers: list[tuple[str, int]] = []
        at = row.caller
        while 0 < at <= len(rows) and len(callers) < MAX_DEPTH:
            outer = rows[at - 1]
            callers.append((names.get(outer.file, ""), outer.line))
            at = outer.caller
        found[row.address - base] = Place(file=names.get(row.file, ""), line=row.line, callers=tuple(callers))
    found[rows[-1].address - base] = None
    return dict(sorted(found.items()))
