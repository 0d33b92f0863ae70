"""Line tables, registers, and the ranking of hotspots; on our own captures the true line is known from the source."""

from __future__ import annotations

import dataclasses
import io
import itertools
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kernelpilot_helpers.ncu import dataflow, hotspots, line_program, lines, sass
from kernelpilot_helpers.ncu.already import already
from kernelpilot_helpers.ncu.report import Code, Launch, Line, Report, Series, Value
from tests.ncu_files import capture, read

ONE, TWO = "_Z3onePfi", "_Z3twoPfPKfi"
BASE = 0x7F0000001000
NOT_ISSUED = "smsp__pcsamp_warps_issue_stalled_{}_not_issued"


def two() -> Code:
    """A cubin of two kernels: ``one`` (lines 4 to 7) and ``two`` (8 to 14); both inline line 2."""
    return Code(cubin=capture("hot-two.cubin"), functions=((ONE, BASE), (TWO, BASE + 0x1000)))


def launch(series: Mapping[str, Mapping[int | str, float]], *, symbol: str = "k", **metrics: float) -> Launch:
    """A launch with values by offset or opcode."""
    made = {
        name: Series(keys=tuple(BASE + k if isinstance(k, int) else k for k in held), values=tuple(held.values()))
        for name, held in series.items()
    }
    made["launch__function_pcs"] = Series(keys=(0,), values=(BASE,))
    return Launch(
        id="0", kernel=symbol, grid="", block="", device="", cc="", stream="", process="", mangled=symbol, code="c",
        metrics={name: Value(number=number) for name, number in metrics.items()}, series=made,
    )  # fmt: skip


def page(*texts: str) -> tuple[Line, ...]:
    """A source page of one kernel's instructions without metrics."""
    return tuple(
        Line(kernel="k", view="sass", address=BASE + 16 * n, file="", line=None, text=text, metrics={})
        for n, text in enumerate(texts)
    )


def find(made: Launch, *texts: str, name: str = "lat.dependency") -> tuple[hotspots.Hotspot, ...]:
    """Hotspots of a launch that has only a page of instructions beside its values."""
    return hotspots.find(Report(files=(), launches=(made,), lines=page(*texts)), made, class_name=name)


def test_each_function_of_a_cubin_has_its_own_lines() -> None:
    """Breaks when the addresses of two functions, which both start at 0, are put into one table."""
    table = lines.table(two())
    assert table.note == ""
    assert table.at(ONE, 0x0) == lines.Place(file="/src/two.cu", line=4)
    assert table.at(TWO, 0x0) == lines.Place(file="/src/two.cu", line=8)
    assert table.at(ONE, 0xC0) == lines.Place(file="/src/two.cu", line=2, callers=(("/src/two.cu", 6),))
    assert table.at(ONE, 0xC8) == table.at(ONE, 0xC0)
    assert table.at(ONE, 0x10_000) is None
    assert table.at("absent", 0) is None


def test_code_stored_as_loaded_has_offsets_too() -> None:
    """Breaks when the absolute addresses of code that ncu 2022.1 stored are taken for offsets."""
    data = bytearray(two().cubin)
    elf = ELFFile(io.BytesIO(bytes(data)))
    symbols, table = elf.get_section_by_name(".symtab"), elf.get_section_by_name(".debug_line")
    for relocation in elf.get_section_by_name(".rela.debug_line").iter_relocations():
        at = symbols["sh_offset"] + 24 * relocation["r_info_sym"] + 8
        operand = table["sh_offset"] + relocation["r_offset"]
        base = BASE + 0x100 * relocation["r_info_sym"]
        data[at : at + 8] = data[operand : operand + 8] = base.to_bytes(8, "little")
    moved = lines.table(Code(cubin=bytes(data)))
    assert moved.at(TWO, 0x3D0) == lines.table(two()).at(TWO, 0x3D0) != None  # noqa: E711


def test_ptx_of_an_instruction() -> None:
    """Breaks when the second table, whose lines count in the cubin's own PTX, is read as source lines."""
    place, text = lines.ptx_table(two()).at(ONE, 0xC0), lines.ptx_text(two())
    assert place is not None
    assert text[place.line - 1].split()[0] == "fma.rn.f32"


def test_damage_gives_no_table_and_a_note() -> None:
    """Breaks when a damaged cubin ends in a traceback or takes long."""
    whole, rng = two().cubin, random.Random(6)
    notes = set()
    for n in range(150):
        data = bytearray(whole)
        if n % 3 == 0:
            del data[rng.randrange(len(data)) :]
        for _ in range(n % 30):
            data[rng.randrange(64 if n % 2 else len(data) - 1) % max(1, len(data))] = rng.randrange(256) if data else 0
        code = Code(cubin=bytes(data))
        table = lines.table(code)
        assert table.note or table.starts
        lines.ptx_text(code), lines.symbol_index(code, ONE)
        notes.add(table.note.partition(":")[0])
    assert "the line table is damaged" in notes
    assert lines.table(Code()).note == "the report holds no machine code"
    assert lines.table(Code(cubin=b"\x7fELF")).note == "the machine code was built without -lineinfo"


@pytest.mark.parametrize("count", [0, 0xFFFF])
def test_section_heads_that_lead_nowhere(count: int) -> None:
    """Breaks when a count or size of section heads makes the reader go round in one place."""
    data = bytearray(two().cubin)
    data[58:60] = (0).to_bytes(2, "little")  # e_shentsize
    data[60:62] = count.to_bytes(2, "little")
    assert lines.table(Code(cubin=bytes(data))).note == "the line table is damaged: section heads outside the file"


def test_a_program_that_lies_about_a_length() -> None:
    """Breaks when an extended statement may reach beyond its program."""
    head = line_program.Head(opcode_base=10, line_base=-5, line_range=14, least=1, lengths=(0,) * 9)
    with pytest.raises(ValueError, match="wrong length"):
        list(line_program.sequences(b"\0\x7f\x02", 0, 3, head, {}))
    with pytest.raises(ValueError, match="64 bits"):
        list(line_program.sequences(b"\x02" + b"\xff" * 40, 0, 41, head, {}))


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("@!P0 LDG.E.64 R4, desc[UR6][R2.64+0x10]", "R4 R5", "P0 R2 R3 UR6"),
        ("LDS.128 R4, [R2+UR5+0x10]", "R4 R5 R6 R7", "R2 UR5"),
        ("STG.E.128 desc[UR6][R4.64], R8", "", "R4 R5 R8 R9 R10 R11 UR6"),
        ("ISETP.GE.AND P0, PT, R9, 0x1, PT", "P0", "R9"),
        ("SHFL.BFLY PT, R5, R4, 0x1, 0x1f", "R5", "R4"),
        ("IADD3 R10, P1, R2, R3, RZ", "P1 R10", "R2 R3"),
        ("IADD3.X R11, R5, R6, RZ, P1, !PT", "R11", "P1 R5 R6"),
        ("IMAD.WIDE R2, R15.reuse, 0x4, R4", "R2 R3", "R15 R4 R5"),
        ("HMMA.16816.F32 R4, R8, R12, R4", "R4 R5 R6 R7", "R4 R5 R6 R7 R8 R9 R10 R11 R12 R13"),
        ("@UP0 UIADD3 UR4, UR4, 0x1, URZ", "UR4", "UP0 UR4"),
        ("FADD R6, |R6|, -R3", "R6", "R3 R6"),
        ("EXIT", "", ""),
    ],
)
def test_registers_of_an_instruction(text: str, writes: str, reads: str) -> None:
    """Breaks when a result is taken for a source, or a wide operand for one register."""
    effect = dataflow.effect(text)
    assert (effect.writes, effect.reads) == (frozenset(writes.split()), frozenset(reads.split()))


@pytest.mark.parametrize(
    ("reason", "at", "texts", "made"),
    [
        ("long_scoreboard", 3, ["LDG.E R2, [R4.64]", "LDG.E R6, [R4.64+4]", "MOV R9, R8", "FADD R9, R6, R9"], 1),
        ("long_scoreboard", 2, ["LDG.E.64 R2, [R4.64]", "MOV R8, 0x1", "FADD R9, R3, R8"], 0),
        ("long_scoreboard", 2, ["LDG.E R3, [R4.64]", "MOV R3, 0x1", "FADD R9, R3, R8"], None),  # overwritten
        ("short_scoreboard", 2, ["LDG.E R3, [R4.64]", "LDS R8, [R5]", "FADD R9, R3, R8"], 1),
        # software pipelined: the loop's last load feeds its next turn, which is nearer than the one before the loop
        ("long_scoreboard", 1, ["LDG.E R3, [R4.64]", "FADD R9, R3, R9", "LDG.E R3, [R6.64]", "@P0 BRA 0x10"], 2),
        ("long_scoreboard", 2, ["LDGSTS.E [R2], [R4.64]", "LDGDEPBAR", "DEPBAR.LE SB0, 0x1"], 0),
        ("long_scoreboard", 1, ["SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R4+URZ], R5", "@!P0 BRA 0x0"], 0),
        ("barrier", 1, ["LDG.E R2, [R4.64]", "FADD R9, R2, R2"], None),
    ],
)
def test_what_a_stalled_instruction_waits_for(reason: str, at: int, texts: list[str], made: int | None) -> None:
    """Breaks when the writer of an unrelated register, or one whose value was overwritten, is named."""
    assert dataflow.producer([(16 * n, text) for n, text in enumerate(texts)], at, reason) == made


SERIES: Mapping[str, Mapping[int | str, float]] = {
    "derived__memory_l2_theoretical_sectors_global_excessive": {0: 30, 16: 10},
    "derived__memory_l1_wavefronts_shared_excessive": {32: 9, 48: 1},
    "memory_l2_theoretical_sectors_local": {64: 5},
    "inst_executed": {80: 700, 96: 300},
    "thread_inst_executed_true": {80: 22400, 96: 0},
    NOT_ISSUED.format("barrier"): {112: 60, 128: 0},
    NOT_ISSUED.format("wait"): {112: 20, 128: 20},
    NOT_ISSUED.format("selected"): {144: 900},
    "smsp__pcsamp_sample_count": {144: 1000},
}


@pytest.mark.parametrize(
    ("name", "pc", "share", "metric"),
    [
        ("mem.uncoalesced", "0x0", 0.75, "derived__memory_l2_theoretical_sectors_global_excessive"),
        ("mem.smem_conflict", "0x20", 0.9, "derived__memory_l1_wavefronts_shared_excessive"),
        ("mem.spill", "0x40", 1.0, "memory_l2_theoretical_sectors_local"),
        ("exec.pipe_bound:fma", "0x50", 0.7, "inst_executed"),
        ("exec.divergence", "0x60", 1.0, "32 x inst_executed - thread_inst_executed_true"),
        ("lat.barrier", "0x70", 1.0, NOT_ISSUED.format("barrier")),
        ("lat.dependency", "0x70", 0.8, "stall samples not issued"),  # (60 + 20) / 100: selected is no stall
    ],
)
def test_each_class_ranks_by_its_own_metric(name: str, pc: str, share: float, metric: str) -> None:
    """Breaks when a class is located by another class's metric, or by issued samples."""
    first = find(launch(SERIES), name=name)[0]
    assert (first.pc, first.share, first.metric, first.target) == (pc, share, metric, True)


def test_older_reports_state_sectors_without_the_excess() -> None:
    """Breaks when the excess is not taken as the difference to the ideal."""
    old = {"memory_l2_sectors_global": {0: 32, 16: 40}, "memory_l2_sectors_global_ideal": {0: 8, 16: 32}}
    first = find(launch(old), name="mem.uncoalesced")[0]
    assert (first.pc, first.share) == ("0x0", 0.75)  # 24 of 24 + 8


def test_without_counts_there_is_no_hotspot() -> None:
    """Breaks when a launch without values by instruction gets an invented place."""
    assert find(launch({})) == ()
    assert find(launch({"inst_executed": {0: 0}}), name="exec.tensor_bound") == ()


def test_instructions_of_one_line_are_one_hotspot() -> None:
    """Breaks when the shares of a line's instructions are not added up."""
    counted = {"derived__memory_l2_theoretical_sectors_global_excessive": {0xC0: 1, 0xD0: 2, 0xE0: 1}}
    code = dataclasses.replace(two(), files={"/src/two.cu": "\n" * 5 + "  if(i<n) a[i]=sq(a[i])*3.0f;\n"})
    made = launch(counted, symbol=ONE)
    found = hotspots.find(Report(files=(), launches=(made,), code={"c": code}), made, class_name="mem.uncoalesced")
    assert [(h.line, h.share, h.instructions, h.pc) for h in found] == [(6, 0.75, 2, "0xd0"), (2, 0.25, 1, "0xc0")]
    assert found[0].source == "if(i<n) a[i]=sq(a[i])*3.0f;"
    assert found[1].callers == ("/src/two.cu:6",)


def test_a_stall_is_shown_with_the_load_that_it_waits_for() -> None:
    """Breaks when the consumer is blamed alone, or the window misses the neighbours."""
    made = launch({NOT_ISSUED.format("long_scoreboard"): {32: 90, 16: 0}, NOT_ISSUED.format("wait"): {32: 10}})
    first = find(made, "LDG.E R2, [R4.64]", "MOV R3, 0x1", "FADD R9, R2, R3", "EXIT")[0]
    assert (first.reason, first.reason_share) == ("long_scoreboard", 0.9)
    assert (first.stalled, first.producer) == ("0x20 FADD R9, R2, R3", "0x0 LDG.E R2, [R4.64]")
    assert first.window == ("  0x0000 LDG.E R2, [R4.64]", "  0x0010 MOV R3, 0x1", "> 0x0020 FADD R9, R2, R3",
                            "  0x0030 EXIT")  # fmt: skip


TMA: Mapping[str, Mapping[int | str, float]] = {
    NOT_ISSUED.format("long_scoreboard"): {16: 60, 32: 0},
    NOT_ISSUED.format("math_pipe_throttle"): {32: 40},
    "sass__inst_executed_per_opcode": {"UTMALDG": 5, "SYNCS": 50},
}


def test_the_wait_of_a_role_is_no_target() -> None:
    """Breaks when a warp that idles by design at a transaction barrier is called the line to edit."""
    texts = ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R4], R5", "@!P0 BRA 0x0", "FFMA R1, R2, R3, R1")
    work, wait = find(launch(TMA), *texts)
    assert (work.pc, work.role, work.target) == ("0x20", "", True)
    assert (wait.pc, wait.role, wait.target, wait.share) == ("0x10", "wait", False, 0.6)
    unknown, _ = find(launch(TMA))  # without the text nobody knows what waits there
    assert (unknown.pc, unknown.role, unknown.target) == ("0x10", "unknown", False)


def test_a_load_in_an_ordinary_kernel_is_a_target() -> None:
    """Breaks when every scoreboard stall without text is excused as a role."""
    series = {name: held for name, held in TMA.items() if "opcode" not in name}
    assert find(launch(series))[0].target


@pytest.mark.parametrize(
    ("name", "class_name", "line"),
    [
        ("smem_conflict", "mem.smem_conflict", 16),  # acc+=t[x*32+...]
        ("smem_conflict", "lat.dependency", 16),
        ("spill-source-only", "mem.spill", 17),  # v[k]=v[k]*v[(k+37)%96]+...
        ("tail_wave", "launch.tail", 12),  # the loop of the uneven blocks
    ],
)
def test_the_known_line_of_our_captures(name: str, class_name: str, line: int) -> None:
    """Breaks when a real report's program counters, cubin and line table no longer meet."""
    report = read(capture(f"{name}.ncu-rep"))
    found = hotspots.find(report, report.launches[0], class_name=class_name)
    assert (found[0].line, found[0].target) == (line, True)
    assert len(found) <= hotspots.TOP


def test_a_source_page_alone_is_enough() -> None:
    """Breaks when hotspots need the binary report."""
    report = read(capture("text-smem.source-cuda-sass.csv"))
    made = dataclasses.replace(launch({}), kernel=report.lines[0].kernel, mangled="")
    first = hotspots.find(report, made, class_name="mem.smem_conflict")[0]
    assert (first.line, first.share, first.sass.split()[0]) == (16, 1.0, "LDS")
    assert first.source.startswith("for(int i=0;i<iters;++i)")
    other = dataclasses.replace(made, kernel="another(int)")
    assert hotspots.find(report, other, class_name="mem.smem_conflict") == ()


LISTING = """\
\t.section\t.text.{0},"ax",@progbits
{0}:
.L_x_1:
        /*0000*/                   LDG.E R2, desc[UR6][R4.64] ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
"""


def tool(folder: Path, body: str) -> Path:
    """A program in place of NVIDIA's disassembler."""
    path = folder / "nvdisasm"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_disassembler_gets_the_code_only(tmp_path: Path) -> None:
    """Breaks when its listing is not read, or it is given more than the machine code and the function's index."""
    (tmp_path / "listing").write_text(LISTING.format(ONE))
    fake = tool(tmp_path, f'echo "$@" > {tmp_path}/argv; cat "$5" > {tmp_path}/got; cat {tmp_path}/listing')
    made = launch({}, symbol=ONE)
    report = Report(files=(), launches=(made,), code={"c": two()})
    found = sass.listing(report, made, symbol=ONE, disassembler=fake)
    assert found.functions == {ONE: {0: "LDG.E R2, desc[UR6][R4.64]", 16: "@!P0 BRA 0x0"}}
    argv = (tmp_path / "argv").read_text().split()
    assert argv[:3] == ["-c", "-ndf", "-fun"]
    assert len(argv) == 5
    assert (tmp_path / "got").read_bytes() == two().cubin
    assert not Path(argv[4]).exists()
    assert sass.listing(report, made, symbol=ONE, disassembler=None).source == "none"


@pytest.mark.parametrize(
    ("body", "symbol", "note"),
    [
        ("exit 3", ONE, "nvdisasm cannot read this machine code (exit 3)"),
        ("exec sleep 5", ONE, "did not finish"),
        ("exit 0", "absent", "the machine code does not name the kernel"),
    ],
)
def test_a_disassembler_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, symbol: str, note: str
) -> None:
    """Breaks when a failing or hanging tool ends the digest."""
    monkeypatch.setattr(sass, "TIMEOUT_S", 0.3)
    made = launch({}, symbol=symbol)
    report = Report(files=(), launches=(made,), code={"c": two()})
    found = sass.listing(report, made, symbol=symbol, disassembler=tool(tmp_path, body))
    assert (found.source, note in found.note) == ("none", True)


def test_the_real_disassembler_names_the_load() -> None:
    """Breaks when the listing of the optional package is no longer understood."""
    real = sass.tool()
    if real is None:
        pytest.skip("nvidia-cuda-nvdisasm is not installed")
    made = launch({NOT_ISSUED.format("long_scoreboard"): {0xC0: 9}}, symbol=ONE)
    report = Report(files=(), launches=(made,), code={"c": two()})
    first = hotspots.find(report, made, class_name="lat.dependency", disassembler=real)[0]
    assert first.sass.startswith("FFMA")
    assert first.producer.split()[1].startswith("LDG")


def test_mechanisms_from_counts_and_from_text() -> None:
    """Breaks when advice cannot be held against the code: an opcode's mechanism is missed, or one not run is named."""
    counted = launch({"sass__inst_executed_per_opcode_with_modifier_all": {
        "UTMALDG.2D": 4, "HGMMA.64x64x16.F32": 8, "LDG.E.128": 1, "LDGSTS.E": 0, "HFMA2.MMA": 3}})  # fmt: skip
    assert already(counted) == {"tma", "wgmma", "vector128"}
    local = launch({"sass__inst_executed_per_opcode": {"LDL": 4}})
    assert already(local) == {"local"}  # an indexed array, until the report counts spills
    assert already(launch({}, derived__local_spilling_requests=7.0, launch__cluster_size=2.0)) == {"spill", "cluster"}
    texts = (
        "@P0 LDGSTS.E.128 [R2], desc[UR4][R4.64]",
        "MUFU.EX2 R1, R2",
        "REDG.E.ADD [R2.64], R4",
        "HMMA.16816.F32 R4, R8, R12, R4",
    )
    listing = sass.Listing(functions={"k": dict(zip(itertools.count(0, 16), texts, strict=False))})
    assert already(launch({}), listing) == {"cp.async", "sfu", "atomics", "mma"}


def test_mechanisms_of_real_kernels() -> None:
    """Breaks when the opcode counts of a report are no longer found."""
    report = read(capture("smem_conflict.ncu-rep"))
    assert already(report.launches[0]) == {"barrier"}


def test_without_the_functions_address_the_first_instruction_run_is_its_start() -> None:
    """Breaks when a report of before 2022.2, which states no addresses, gets absolute offsets."""
    made = launch({"inst_executed": {0: 1, 16: 9}, NOT_ISSUED.format("wait"): {16: 3}})
    series = {name: one for name, one in made.series.items() if name != "launch__function_pcs"}
    assert find(dataclasses.replace(made, series=series))[0].pc == "0x10"
