"""The binary reader: our own captures whole, and small reports made up message by message."""

from __future__ import annotations

import json
import math
import tracemalloc

import pytest

from kernelpilot_helpers.ncu import rep_units
from kernelpilot_helpers.ncu.report import Report
from tests import ncu_files as files
from tests import ncu_rep_build as build
from tests.ncu_rep_build import block, metric, number, report, result, run


def read(name: str) -> Report:
    return build.parse(build.capture(name))


@pytest.mark.parametrize("name", ["smem_conflict", "tail_wave"])
def test_every_aggregate_equals_the_vendors_reader(name: str) -> None:
    """Breaks when a value type, a name id or the string table is misread, or an absent metric becomes 0."""
    truth = json.loads(files.capture(f"{name}.truth.json"))
    found = read(name)
    assert len(found.launches) == len(truth) == 1
    (launch,), (true,) = found.launches, truth
    assert (launch.function, launch.kernel) == (true["name"], true["demangled"])
    wrong = []
    absent = 0
    for metric_name, value in true["metrics"].items():
        held = launch.metrics.get(metric_name)
        if held is None:
            # Its reader answers 0 for metrics that have instances only, and NaN where nothing was measured.
            absent += 1
            if not (value is None or math.isnan(value) or (value == 0 and metric_name in launch.series)):
                wrong.append(metric_name)
        elif (held.text if held.number is None else held.number) != value:
            wrong.append(metric_name)
    assert wrong == []
    assert absent == 14
    assert set(launch.metrics) <= set(true["metrics"])
    assert len(launch.rules) == true["rules"]


def test_identity_of_a_launch() -> None:
    """Breaks when a field of the result is taken for another one."""
    (launch,) = read("tail_wave").launches
    assert (launch.id, launch.kernel, launch.function) == ("0", "tail_wave(float *, int)", "tail_wave")
    assert (launch.grid, launch.block, launch.mangled) == ("(970, 1, 1)", "(256, 1, 1)", "_Z9tail_wavePfi")
    assert (launch.device, launch.cc, launch.stream, launch.context) == ("0", "9.0", "7", "1")
    assert (launch.kind, launch.place, launch.process) == ("kernel", "result 1", "2260")
    assert "SpeedOfLight" in launch.sections
    assert len(launch.sections) == 21


def test_units_are_base_units() -> None:
    """Breaks when a duration, rate or share is given the unit of another kind of metric."""
    (launch,) = read("tail_wave").launches
    expected = {
        "gpu__time_duration.sum": (241376.0, "ns"),
        "launch__registers_per_thread": (16, "register/thread"),
        "launch__waves_per_multiprocessor": (0.9185606060606061, ""),
        "launch__shared_mem_per_block_driver": (1024, "byte/block"),
    }
    assert {n: (launch.metrics[n].number, launch.metrics[n].unit) for n in expected} == expected
    for name, unit in {
        "dram__bytes.sum.per_second": "byte/s",
        "gpc__cycles_elapsed.avg.per_second": "hz",
        "dram__bytes.sum.peak_sustained": "byte/cycle",
        "sm__inst_executed.avg.per_cycle_active": "inst/cycle",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "sector",
        "TPC.TriageCompute.sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed": "%",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": "byte/sector",
        "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed": "",
    }.items():
        assert rep_units.unit(name) == unit, name


def test_rules_with_the_numbers_of_the_file() -> None:
    """Breaks when the API's rule types are used, local and global are swapped, or a link stays in the text."""
    rules = {rule.title: rule for rule in read("smem_conflict").launches[0].rules}
    high, issue, stall = (rules[t] for t in ("High Throughput", "Issue Slot Utilization", "Mio Throttle Stalls"))
    assert (high.id, high.section, high.type, high.speedup) == ("SOLBottleneck", "SpeedOfLight", "ok", None)
    assert (issue.type, issue.scope, round(issue.speedup or 0, 5)) == ("optimization", "local", 0.06434)
    assert issue.focus[0][0] == "smsp__issue_active.avg.per_cycle_active"
    assert issue.focus[0][1] == pytest.approx(0.0548, abs=1e-4)
    assert (stall.id, stall.type, stall.scope) == ("CPIStall", "optimization", "global")
    assert [pc % 4096 for pc, _ in stall.markers] == [864, 928, 960]
    assert "Check the Warp Stall Sampling (All Samples) table" in rules["Warp Stall"].text
    assert not [r for r in rules.values() if "@section" in r.text or "@url" in r.text]


def test_code_files_and_functions() -> None:
    """Breaks when the function's base, the imported source or the machine code is lost."""
    found = read("smem_conflict")
    code = found.code[found.launches[0].code]
    assert code.cubin[:4] == b"\x7fELF"
    assert len(code.cubin) == 9272
    ((symbol, base),) = code.functions
    assert (symbol, code.arch) == ("_Z13smem_conflictPfi", "sm_90")
    ((path, source),) = code.files.items()
    assert path.endswith("smem_conflict.cu")
    assert "__global__" in source
    first = min(k for k in found.launches[0].series["inst_executed"].keys if isinstance(k, int))
    assert first == base


def test_series_by_family() -> None:
    """Breaks when instances lose their keys, or a series over time is taken for instances of an aggregate."""
    series = read("tail_wave").launches[0].series
    opcodes = series["sass__inst_executed_per_opcode"]
    assert opcodes.kind == 0
    assert "FFMA" in opcodes.keys
    active = series["TPC.TriageCompute.sm__cycles_active.avg"]
    assert (active.kind, len(active.keys), len(active.values)) == (1, 332, 332)


def test_session_of_a_capture() -> None:
    """Breaks when the version, GPU, clocks, cache control or replay mode is not carried over."""
    session = read("app-range").session
    assert (session.gpu, session.cc, session.cuda, session.ncu) == ("NVIDIA H200", "9.0", "13.0", "2025.3.1.0")
    assert (session.clocks, session.cache, session.replay) == ("none", "all", "app-range")
    assert session.command.split()[0].endswith("/ncu")


@pytest.mark.parametrize(
    ("name", "kind", "metrics", "rules"), [("app-range", "range", 529, 2), ("graph", "graph", 2100, 6)]
)
def test_a_range_and_a_graph_are_one_workload(name: str, kind: str, metrics: int, rules: int) -> None:
    """Breaks when their fields are read by a kernel's numbers, or a grid or kernel's code is claimed for them."""
    (launch,) = read(name).launches
    assert (launch.kind, launch.kernel, launch.grid, launch.block, launch.code) == (kind, kind, "", "", "")
    assert (len(launch.metrics), len(launch.rules)) == (metrics, rules)
    assert launch.metrics["gpu__time_duration.sum"].unit == "ns"


def test_two_processes_are_numbered_as_ncu_numbers_them() -> None:
    """Breaks when ids follow the file: the process that ended first stands first there."""
    found = read("two-processes")
    assert [(x.id, x.process, x.function, x.place) for x in found.launches] == [
        ("0", "1235", "copy_vec4", "result 2"),
        ("1", "1236", "copy_strided", "result 1"),
    ]


def test_absent_is_never_zero() -> None:
    """Breaks when an empty value, NaN, infinity or damage gets a number, or a true zero is lost."""
    names = ["zero", "empty", "none", "nan", "inf", "huge", "big", "text"]
    found = build.parse(
        report(
            block(
                names=names,
                results=[
                    result(
                        metric(0, number(5, 0)),
                        metric(1, b"", [(number(5, 4), number(5, 9))]),
                        run(13, number(1, 2)),
                        metric(3, build.double(3, math.nan)),
                        metric(4, build.double(3, -math.inf)),
                        metric(5, build.double(3, 1e300)),
                        metric(6, number(5, 2**53 + 1)),
                        metric(7, run(1, "naïve")),
                    )
                ],
            )
        )
    )
    metrics = found.launches[0].metrics
    assert {name: value.number for name, value in metrics.items()} == {"zero": 0, "big": 9007199254740993, "text": None}
    assert (metrics["text"].text, metrics["big"].row) == ("naïve", 7)
    assert found.launches[0].series["empty"].keys == (4,)
    assert found.launches[0].series["empty"].values == (9,)


def test_later_blocks_mean_the_last_string_table_that_is_not_empty() -> None:
    """Breaks when an empty table resets the names, or a new one changes results read before."""
    one = [result(metric(0, number(5, 1)))]
    found = build.parse(
        report(block(names=["a"], results=one), block(results=one), block(names=["b"], results=one), block(pid=9))
    )
    assert [list(launch.metrics) for launch in found.launches] == [["a"], ["a"], ["b"]]


def test_code_sent_again_without_its_cubin_is_merged() -> None:
    """Breaks when the second message of a reference overwrites the first."""
    whole = number(1, 5) + run(4, b"ELF!") + number(6, 0x80009)
    again = number(1, 5) + run(3, "ptx")
    found = build.parse(report(block(sources=[whole]), block(sources=[again], names=["a"], results=[result()])))
    assert dict(found.code)["7/5"].cubin == b"ELF!"
    assert (found.code["7/5"].ptx, found.code["7/5"].arch) == ("ptx", "sm_89")


def test_nvtx_ranges_of_the_launching_thread() -> None:
    """Breaks when another thread's ranges are claimed, a domain is lost, or the order is turned round."""
    domains = run(1, number(1, 0) + run(2, "<default domain>")) + run(1, number(1, 1) + run(2, "lib"))
    mine = run(2, number(1, 31) + run(2, number(1, 0) + run(3, run(1, "outer")) + run(3, run(1, "inner"))))
    other = run(2, number(1, 32) + run(2, number(1, 0) + run(3, run(1, "not mine"))))
    started = run(3, number(1, 1) + run(3, number(1, 3) + run(2, "step")))
    made = result(extra=number(1, 31) + run(21, domains + mine + other + started))
    assert build.parse(report(block(results=[made]))).launches[0].nvtx == ("outer", "inner", "lib@step")


def test_unknown_fields_are_listed_and_passed_over() -> None:
    """Breaks when a field of a later version stops the reader or goes unmentioned."""
    made = result(metric(0, number(5, 3)), extra=run(77, "new") + number(78, 1))
    found = build.parse(report(block(names=["a"], results=[made], extra=number(40, 2))))
    assert found.launches[0].metrics["a"].number == 3
    assert found.unknown_fields == {"block": (40,), "result.kernel": (77, 78)}


def test_settings_win_over_the_command_line() -> None:
    """Breaks when the profiled program's own options are taken for ncu's, or the settings are not read."""
    settings = run(10, run(8, "Base") + run(11, "Kernel"))
    command = run(11, "/opt/ncu --clock-control none --cache-control=none ./train --cache-control all")
    session = build.parse(report(block(session=settings + command, results=[result()]))).session
    assert (session.clocks, session.cache, session.replay) == ("base", "none", "kernel")
    bare = build.parse(report(block(results=[result()]))).session
    assert (bare.clocks, bare.cache, bare.replay) == ("", "", "")


def test_code_and_instances_are_not_copied_until_somebody_asks() -> None:
    """Breaks when a report's cubins, most of its bytes, are held in memory for a digest that never looks at them."""
    data = report(block(sources=[number(1, 5) + run(4, bytes(20_000_000))]), block(results=[result()]))
    tracemalloc.start()
    try:
        found = build.parse(memoryview(data))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    assert len(found.code["7/5"].cubin) == 20_000_000
