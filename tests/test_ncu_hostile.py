"""What a hostile or an unlucky user gives: every file ends in a digest or a named refusal, within bounds."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.ncu import (
    canonical,
    group,
    hotspots,
    limits,
    lines,
    merge,
    quantity,
    reach,
    reader,
    render,
    show,
    wire,
)
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.redact import Redactor
from kernelpilot_helpers.ncu.report import Value
from tests import ncu_files as files
from tests import ncu_made as made
from tests import ncu_rep_build as build
from tests.ncu_rep_build import block, number, report, result, run


def put(folder: Path, name: str) -> str:
    path = folder / name
    path.write_bytes(files.capture(name))
    return str(path)


@pytest.mark.parametrize("name", ["text-smem.session.csv", "smem.source-sass.csv"])
def test_a_page_without_launches_is_refused_by_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a lone source or session page ends as a bug of ours, or the fix does not say what to give with it."""
    path, raw = put(tmp_path, name), put(tmp_path, "copy_vec4.raw.csv")
    assert main(["ncu", "digest", path, "--json"]) == 1
    refused = json.loads(capsys.readouterr().out)["refused"]
    assert refused["code"] == "page.alone"
    assert refused["fix"].startswith(f"kernelpilot ncu digest {path} REPORT.ncu-rep")
    for argv in (["diff", raw, path], ["digest", raw, "--parent", path], ["show", path]):
        assert main(["ncu", *argv]) == 1
        assert "page.alone" in capsys.readouterr().err


def test_each_process_has_the_code_of_its_own_kernel() -> None:
    """Breaks when two processes' code meets under one reference, which each process counts from the same number."""
    found = build.parse(build.capture("two-processes"))
    assert {launch.mangled: found.code[launch.code].functions[0][0] for launch in found.launches} == {
        "_Z9copy_vec4PK6float4PS_m": "_Z9copy_vec4PK6float4PS_m",
        "_Z12copy_stridedPKfPfmm": "_Z12copy_stridedPKfPfmm",
    }


def test_code_is_hashed_and_searched_without_a_copy_of_it() -> None:
    """Breaks when a digest holds tens of megabytes of library code twice."""
    data = report(block(sources=[number(1, 5) + run(4, b"\x7fELF" + bytes(80_000_000))], results=[result()]))
    code = build.parse(memoryview(data)).code["7/5"]
    tracemalloc.start()
    try:
        assert lines.table(code).note == "the machine code is too large to look for lines"
        assert reach.section(code.cubin, "k") == b""
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("option", "value"), [("--min-bytes", "9" * 400), ("--floor-us", "nan"), ("--floor-us", "inf"), ("--floor-us", "0")]
)
def test_absurd_options_are_wrong_usage(option: str, value: str, tmp_path: Path) -> None:
    """Breaks when a number that overflows or compares with nothing reaches the arithmetic."""
    assert main(["ncu", "digest", put(tmp_path, "copy_vec4.raw.csv"), option, value]) == 2


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_absurd_noise_is_wrong_usage(value: str, tmp_path: Path) -> None:
    """Breaks when a diff with noise that is no number ends as a bug of ours."""
    path = put(tmp_path, "copy_vec4.raw.csv")
    assert main(["ncu", "diff", path, path, "--noise", value]) == 2


def test_a_row_that_is_no_csv_is_never_whole() -> None:
    """Breaks when a damaged row whose pieces are as many as the columns passes, and its cells cannot be read later."""
    data = files.capture("copy_vec4.raw.csv").replace(b'"copy_vec4(const', b'"copy_"vec"4(const')
    assert files.code(data) == "raw.truncated"


def test_what_ncu_prints_as_zero_agrees_with_what_it_counted_below_zero() -> None:
    """Breaks when a report and its own export are refused as of different runs: counters taken off each other."""
    assert merge.agree(Value(number=-0.498501), Value(number=0))
    assert merge.agree(Value(number=0), Value(number=-2))
    assert not merge.agree(Value(number=-2), Value(number=2))


def test_lists_of_plain_values_stand_on_one_line() -> None:
    """Breaks when the layout of records changes: each committed record would differ without a reason."""
    plain = {"b": ["x[0]", 'a "{" b', 1.5, None], "a": [{"k": []}, [1, 2]], "c": {}, "é\ud800": True}
    data = canonical.dump(plain)
    assert data == (
        b'{\n "a": [\n  {\n   "k": []\n  },\n  [1, 2]\n ],\n "b": ["x[0]", "a \\"{\\" b", 1.5, null],\n "c": {},\n'
        b' "\xc3\xa9\\ud800": true\n}\n'
    )


def test_no_name_moves_the_cursor_of_a_table() -> None:
    """Breaks when a kernel's or a file's name puts line ends or control characters into CSV or a printed table."""
    found = made.report([made.launch(1e5, kernel="a\n\x1b[2Jb\u202ec(int)")])
    text = show.as_csv(show.rows(found, metric="gpu__time*"))
    assert len(text.splitlines()) == 2
    assert "a [2Jbc(int)" in text


def test_domains_and_short_addresses_are_hidden_and_placeholders_stay() -> None:
    """Breaks when a domain or a short IPv6 address is left, or facts.json reads otherwise than its report."""
    text = "box77.corp.example.com box77.lan box77.cu 2001:db8::1 fd00::2 a::b 12:30:45"
    assert Redactor(hosts=["box77"]).text(text) == "[host] [host] [host].cu [ip] [ip] a::b 12:30:45"
    assert Redactor(hosts=["[ip]", "[host]"]).text("10.0.0.1 [host]") == "[ip] [host]"


def test_the_work_that_a_file_asks_for_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a small file of many messages holds the reader for minutes."""
    many = report(block(results=[b"\x50\x01" * 400] * 4))
    assert len(build.parse(many).launches) == 4
    monkeypatch.setattr(wire.Budget.__init__, "__defaults__", (1000,))
    with pytest.raises(RefusedInput, match=r"report\.too_large: more than \d+ fields"):
        build.parse(many)
    monkeypatch.undo()
    monkeypatch.setattr(limits, "MAX_LAUNCHES", 3)
    with pytest.raises(RefusedInput, match=r"report\.too_large: more than 3 launches"):
        build.parse(many)
    with pytest.raises(RefusedInput, match="more entries than its bytes can hold, or than any report has"):
        build.parse(report(block(results=[b""] * 100_001)))


def test_a_program_of_thousands_of_kernels_gives_a_digest_of_the_first() -> None:
    """Breaks when equal shares of time make thousands of groups, each diagnosed and written."""
    found = group.grouping(made.report([made.launch(1e5, ix=ix, kernel=f"k{ix}(int)") for ix in range(1000)]))
    assert (len(found.shown), len(found.other)) == (256, 744)


def test_a_place_in_a_header_of_the_toolkit_is_the_call_of_it() -> None:
    """Breaks when a step tells somebody to edit a file of NVIDIA's."""
    header = "/usr/local/cuda/bin/../targets/x86_64-linux/include/sm_32_intrinsics.hpp"
    inlined = lines.Place(file=header, line=183, callers=(("/src/k.cuh", 9), ("/src/k.cu", 22)))
    own = hotspots.own(inlined)
    assert (own.file, own.line, own.callers) == ("/src/k.cuh", 9, (("/src/k.cu", 22),))
    assert hotspots.own(lines.Place(file=header, line=183)).file == header
    mine = lines.Place(file="/src/cuda/k.cu", line=1)
    assert hotspots.own(mine) == mine


def test_a_pipe_is_read_and_a_silent_one_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a report cannot be piped in, or a named pipe without a writer is waited for without an end."""
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    monkeypatch.setattr(reader, "PIPE_WAIT_S", 0.01)
    with pytest.raises(BadRecord, match="a pipe into which nothing was written"):
        reader.read(pipe)
    whole = report(block(results=[result()]))
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, whole)
        os.close(write_end)
        assert reader.read(Path(f"/dev/fd/{read_end}")).data == whole
    finally:
        os.close(read_end)


def test_frames_in_a_row_are_one_report() -> None:
    """Breaks when only the first frame of a compressed report is read."""
    data = build.capture("two-processes")
    pack = zstandard.ZstdCompressor().compress
    assert len(build.parse(pack(data[:50_000]) + pack(data[50_000:])).launches) == 2


def test_another_kernel_as_parent_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a report of another kernel looks like the parent that an edit made faster."""
    path, other = put(tmp_path, "copy_vec4.raw.csv"), put(tmp_path, "fma_bound.raw.csv")
    assert main(["ncu", "digest", path, "--parent", other]) == 0
    out = capsys.readouterr().out
    assert "parent   improved against another kernel, fma_bound(float *, int): time -75.4 %" in out
    assert len(out.splitlines()) <= render.LINES
    assert ", 1 launch, 100% of the file's time" in out


@pytest.mark.parametrize("value", [5e-324, 1e-31, 1e31, float("inf"), float("nan")])
def test_a_number_whose_quotients_overflow_is_absent(value: float) -> None:
    """Breaks when a denormal count divides another to infinity, which no record can hold."""
    name = "sm__cycles_active.avg"
    found = build.parse(report(block(names=[name], results=[result(build.metric(0, build.double(3, value)))])))
    assert name not in found.launches[0].metrics
    assert quantity.number(f"{value!r}", "C") is None
