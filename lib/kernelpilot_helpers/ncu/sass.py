"""The text of each instruction: from a source page, or by NVIDIA's disassembler where it is installed.

Nothing of a report is ever executed: the disassembler gets a temporary file with the machine code, and a time limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernelpilot_helpers.ncu import lines
from kernelpilot_helpers.ncu.report import Launch, Report

TIMEOUT_S = 20.0
MAX_TEXT = 200
"""Characters of an instruction that are kept."""
MAX_INSTRUCTIONS = 500_000
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+),")
_LABEL = re.compile(r"(\.L_x_\w+):")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,8})\*/\s+(.*?)\s*;?\s*$")
_TARGET = re.compile(r"`\((\.L_x_\w+)\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """Instructions of a launch's code by function and byte offset, in the order of the code."""

    source: str = "none"
    """``page``, ``nvdisasm`` or ``none``."""
    functions: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    note: str = ""

    def text(self, symbol: str, offset: int) -> str:
        """The instruction; empty where there is no text of it."""
        return self.functions.get(symbol, {}).get(offset, "")


def tool() -> Path | None:
    """NVIDIA's disassembler, of the optional package ``nvidia-cuda-nvdisasm`` or on PATH; None where it is absent."""
    import importlib.util  # noqa: PLC0415
    import shutil  # noqa: PLC0415

    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for found in sorted(Path(folder).glob("*/bin/nvdisasm*")):
            if found.is_file():
                return found
    on_path = shutil.which("nvdisasm")
    return Path(on_path) if on_path else None


def listing(report: Report, launch: Launch, *, symbol: str, disassembler: Path | None) -> Listing:
    """Text of a launch's instructions, from the report's source page, else from the disassembler if one is given."""
    page = _page(report, launch, symbol)
    if page.functions or disassembler is None:
        return page
    code = report.code.get(launch.code)
    if code is None or not code.cubin:
        return Listing(note="the report holds no machine code")
    index = lines.symbol_index(code, symbol)
    if index is None:
        return Listing(note="the machine code does not name the kernel")
    return _disassembled(code.cubin, index, disassembler)


def _disassembled(cubin: bytes | memoryview, index: int, disassembler: Path) -> Listing:
    # Few digests ask for a disassembly, and running programs takes 20 ms to import.
    import tempfile  # noqa: PLC0415

    from kernelpilot_helpers import proc  # noqa: PLC0415
    from kernelpilot_helpers.errors import KernelPilotError  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="kernelpilot-") as folder:
        path = Path(folder) / "code.cubin"
        path.write_bytes(cubin)
        try:
            done = proc.run([str(disassembler), "-c", "-ndf", "-fun", str(index), str(path)], timeout=TIMEOUT_S)
        except KernelPilotError as fault:
            return Listing(note=fault.what)
    if done.code != 0:
        return Listing(note=f"nvdisasm cannot read this machine code (exit {done.code})")
    return Listing(source="nvdisasm", functions=parse(done.out))


def parse(text: str) -> Mapping[str, Mapping[int, str]]:
    """Instructions by function and offset of a disassembler's listing; branch targets become offsets.

    >>> parse(".section .text.f,\\n.L_x_1:\\n/*0010*/ FADD R1, R1, R2 ;\\n/*0020*/ @P0 BRA `(.L_x_1) ;")
    {'f': {16: 'FADD R1, R1, R2', 32: '@P0 BRA 0x10'}}
    """
    functions: dict[str, dict[int, str]] = {}
    labels: dict[str, int] = {}
    waiting: list[str] = []
    current: dict[int, str] = {}
    for count, line in enumerate(text.splitlines()):
        if count > 2 * MAX_INSTRUCTIONS:
            break
        if section := _SECTION.match(line):
            current = functions.setdefault(section[1], {})
        elif label := _LABEL.match(line):
            waiting.append(label[1])
        elif found := _INSTRUCTION.match(line):
            offset = int(found[1], 16)
            current[offset] = " ".join(found[2].split())[:MAX_TEXT]
            labels.update(dict.fromkeys(waiting, offset))
            waiting.clear()

    def offset_of(match: re.Match[str]) -> str:
        return hex(labels[match[1]]) if match[1] in labels else match[0]

    return {name: {at: _TARGET.sub(offset_of, text) for at, text in held.items()} for name, held in functions.items()}


def page_lines(report: Report, launch: Launch) -> list[tuple[int, int]]:
    """(address, index in ``Report.lines``) of the launch's instructions on a source page, in the order of addresses."""
    mine = [n for n, line in enumerate(report.lines) if line.view == "sass" and line.address is not None]
    kernels = {report.lines[n].kernel for n in mine}
    if kernels and kernels != {""}:
        named = [n for n in mine if same_kernel(report.lines[n].kernel, launch)]
        mine = named if named or len(kernels) > 1 or launch.kernel else mine
    return sorted((report.lines[n].address or 0, n) for n in mine)


def same_kernel(name: str, launch: Launch) -> bool:
    """Whether a source page's kernel is the launch's."""
    return bool(name) and name in (launch.kernel, launch.function, launch.mangled)


def _page(report: Report, launch: Launch, symbol: str) -> Listing:
    found = page_lines(report, launch)
    if not found:
        return Listing()
    base, texts = found[0][0], {}
    last = found[-1][0]
    for address, index in found:
        text = report.lines[index].text
        texts[address - base] = re.sub(
            r"0x([0-9a-f]{6,16})",
            lambda m: hex(int(m[1], 16) - base) if base <= int(m[1], 16) <= last else m[0],
            text,
        )[:MAX_TEXT]
    return Listing(source="page", functions={symbol: texts})
