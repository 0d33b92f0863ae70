"""Details, source and session pages, instances and merged files hold what the binary report and the raw page hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelpilot_helpers.ncu import load, merge
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import Launch, Report
from tests import ncu_files as files

TRUTH = json.loads(files.capture("smem_conflict.truth.json"))[0]["metrics"]
DIVERGED = "smsp__pcsamp_warps_issue_stalled_short_scoreboard"
LONG = (
    "ID,Process ID,Kernel Name,Stream,Block Size,Grid Size,Device,CC,Section Name,Metric Name,Metric Unit,Metric Value"
)


def one(name: str) -> Launch:
    """The only launch of a capture."""
    (launch,) = files.read(files.capture(name)).launches
    return launch


def long(*rows: tuple[str, str, str, str], head: str = LONG) -> bytes:
    """A details page of one launch: section, name, unit and value of each metric."""
    cells = [["0", "1", "k(int)", "7", "(256, 1, 1)", "(8, 1, 1)", "0", "9.0", *row] for row in rows]
    return files.page([head.split(","), *cells])


def wide(*metrics: tuple[str, str, str], head: str = "") -> bytes:
    """A raw page of one launch: name, unit and value of each metric."""
    return head.encode() + files.made({name: (unit, text) for name, unit, text in metrics})


@pytest.mark.parametrize("name", ["smem_conflict.raw.csv", "text-smem_conflict.details.csv", "smem_conflict.ncu-rep"])
def test_every_form_of_a_launch_holds_the_numbers_that_were_measured(name: str) -> None:
    """Breaks when a label is taken for another metric, a unit is scaled wrongly, or a digit is lost."""
    found = one(name).metrics
    assert len(found) == {"s": 2212, "t": 86}[name[0]] or name.endswith("rep")
    for metric, value in found.items():
        want = TRUTH[metric]
        if value.number is None:
            assert value.text == want or not value.text
        else:
            assert abs(value.number - want) <= merge.ROUNDING * max(1.0, abs(want)), metric


def test_scaled_named_and_localised_pages_of_a_report_agree() -> None:
    """Breaks when auto units, names instead of labels, UTF-16 or missing separators of thousands change a number.

    The pages print two decimals: what is below 0.005 in its own unit is 0 on them, and no more is promised.
    """
    scaled = one("text-smem.raw-instances.csv")
    for page in ("smem.details-utf16.csv", "text-smem.details-deDE.csv"):
        found = one(page)
        assert len(found.metrics) == 86
        assert (found.id, found.function, found.grid) == ("0", "smem_conflict", "(1056, 1, 1)")
        for metric, value in found.metrics.items():
            assert merge.agree(scaled.metrics[metric], value), (page, metric)
    assert scaled.metrics["gpu__time_duration.sum"].number == pytest.approx(4238912.0)
    assert scaled.metrics["derived__pct_occupancy_per_shared_mem_size"].number == pytest.approx(9860.0, abs=5)


def test_a_label_means_what_its_section_says() -> None:
    """Breaks when "Memory Throughput", percent in one section and byte/s in the other, is one metric."""
    metrics = one("text-smem_conflict.details.csv").metrics
    percent = metrics["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"]
    assert (percent.number, percent.unit) == (99.94, "%")
    assert (metrics["dram__bytes.sum.per_second"].number, metrics["dram__bytes.sum.per_second"].unit) == (
        1150000.0,
        "byte/s",
    )


def test_an_older_page_counts_busy_pipes_per_active_cycle() -> None:
    """Breaks when a label that changed its metric in 2025 is read as the new one in an old file."""
    row = ("Compute Workload Analysis", "SM Busy", "%", "5.48")
    old = long(row, ("Launch Statistics", "Waves Per SM", "", "1.50"))
    new = long(row, ("Memory Workload Analysis", "Local Memory Spilling Requests", "", "0"))
    assert [next(iter(files.read(page).launches[0].metrics)) for page in (old, new)] == [
        "sm__instruction_throughput.avg.pct_of_peak_sustained_active",
        "sm__instruction_throughput.avg.pct_of_peak_sustained_elapsed",
    ]
    assert list(files.numbers(files.read(long(row)).launches[0])) == ["Compute Workload Analysis/SM Busy"]


def test_an_unknown_label_is_kept_apart_and_told() -> None:
    """Breaks when a label of a later version is dropped in silence or passes for a metric."""
    report = files.read(long(("Some Section", "Some Label", "%", "3.00")))
    assert list(report.launches[0].metrics) == ["Some Section/Some Label"]
    assert report.notes == ("1 labels without a known metric name: Some Section/Some Label",)


def test_rules_come_with_type_scope_and_speedup() -> None:
    """Breaks when a rule row is taken for a metric, or a local speedup for a global one."""
    rules = one("text-smem_conflict.details.csv").rules
    assert len(rules) == 12
    assert {(r.id, r.type, r.scope) for r in rules} >= {
        ("SOLBottleneck", "ok", ""),
        ("SharedMemoryConflicts", "optimization", "global"),
        ("HighPipeUtilization", "optimization", "local"),
    }
    (found,) = (r for r in rules if r.id == "SharedMemoryConflicts")
    assert (found.section, round(found.speedup or 0)) == ("MemoryWorkloadAnalysis_Tables", 97)
    assert "32.0 - way bank conflict" in found.text


def test_live_output_and_the_long_form_of_named_metrics_are_read() -> None:
    """Breaks when banners end the table, or a run with --metrics gives no launches."""
    live = files.read(files.capture("text-live.details.csv"))
    assert (live.ignored_lines, live.launches[0].metrics["gpu__time_duration.sum"].number) == (3, 536512.0)
    named = files.read(files.capture("metrics-only.csv"))
    assert [launch.function for launch in named.launches][:2] == [
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
        "vectorized_elementwise_kernel",
    ]
    assert named.launches[0].metrics["gpu__time_duration.sum"].number == 173952.0


def test_units_belong_to_rows_on_the_long_form() -> None:
    """Breaks when one row's prefix is used for the metric of all launches."""
    head, *_ = long().decode().splitlines()
    rows = [("0", "Kbyte", "1.50"), ("1", "byte", "256"), ("2", "Mbyte", "2.25")]
    table = [
        [ident, "1", "k", "7", "", "", "0", "9.0", "Command line profiler metrics", "dram__bytes_write.sum", unit, text]
        for ident, unit, text in rows
    ]
    report = files.read(files.page([head.replace('"', "").split(","), *table]))
    assert [files.numbers(launch) for launch in report.launches] == [
        {"dram__bytes_write.sum": 1500.0},
        {"dram__bytes_write.sum": 256.0},
        {"dram__bytes_write.sum": 2250000.0},
    ]


def test_ids_that_start_again_in_another_table_are_other_launches() -> None:
    """Breaks when the processes of a live run, each with its own table and ids from 0, fall together."""
    page = long(("Launch Statistics", "Grid Size", "", "8"))
    assert len(files.read(page + b"==PROF== Connected to process 2\n" + page).launches) == 2
    raw = wide(("launch__grid_size", "", "8"))
    both = files.read(raw + b"done\n" + files.made({"launch__grid_size": ("", "9"), "a__b.sum": ("Kbyte", "1")}))
    assert [files.numbers(launch) for launch in both.launches] == [
        {"launch__grid_size": 8.0},
        {"launch__grid_size": 9.0, "a__b.sum": 1000.0},
    ]


def test_columns_of_2019_and_of_nvtx_are_no_metrics() -> None:
    """Breaks when a time column or a column of NVTX ranges hides the launch, or sizes are demanded of an old page."""
    nvtx = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    head = ["ID", "Process ID", "Kernel Name", "Kernel Time", "Context", "Stream", nvtx, "sm__throughput.sum"]
    row = ["0", "1", "k", "2019-Jan-1 10:00", "1", "7", '46  "<default domain>:step:none:none:none:none:none:none" ']
    (found,) = files.read(files.page([head, ["", "", "", "", "", "", "", "%"], [*row, "50.25"]])).launches
    assert (files.numbers(found), found.nvtx, found.grid) == ({"sm__throughput.sum": 50.25}, ("step",), "")


def test_instances_are_kept_beside_the_aggregate() -> None:
    """Breaks when the first instance is taken for the aggregate, or a series without one becomes a number."""
    data = wide(
        ("a__x.sum", "Kbyte", "5.1 (4; 6.5; n/a)"), ("a__y.sum", "", "(1; 2)"), ("a__z.sum", "", "240; 241"),
        ("a__w", "", "Spread (Spread)"), ("pmsampling:a__v.sum", "", "(0.5)"),
    )  # fmt: skip
    (found,) = files.read(data).launches
    assert files.numbers(found) == {"a__x.sum": 5100.0, "a__w": "Spread"}
    assert {k: s.values for k, s in found.series.items()} == {
        "a__x.sum": (4000.0, 6500.0, None),
        "a__y.sum": (1.0, 2.0),
        "a__z.sum": (240.0, 241.0),
        "a__w": ("Spread",),
        "pmsampling:a__v.sum": (0.5,),
    }
    assert [found.series[k].kind for k in ("a__x.sum", "pmsampling:a__v.sum")] == [0, 1]


def test_an_ambiguous_locale_is_decided_by_duration_and_cycles() -> None:
    """Breaks when 117.344 ns, which cycles and clock put at 117344 ns, is read a thousand times too short."""

    def duration(text: str, cycles: str, clock: str) -> tuple[str, float | int | None]:
        report = files.read(
            wide(
                ("gpu__time_duration.sum", "ns", text),
                ("gpc__cycles_elapsed.max", "Kcycle", cycles),
                ("gpc__cycles_elapsed.avg.per_second", "Ghz", clock),
            )
        )
        return report.locale, report.launches[0].metrics["gpu__time_duration.sum"].number

    assert duration("117.344", "208", "1,773") == ("comma", 117344.0)
    assert duration("117,344", "208", "1.773") == ("C", 117344.0)
    assert duration("117,344", "9", "1.773") == ("C assumed", 117344.0)
    assert files.read(wide(("launch__grid_size", "", "1.056"))).launches[0].metrics["launch__grid_size"].number == 1056


def test_a_source_page_gives_instructions_with_counts() -> None:
    """Breaks when a column is shifted, renamed wrongly, or an address lost."""
    report = files.read(files.capture("smem.source-sass.csv"))
    assert (len(report.lines), report.launches, report.files[0].form) == (104, (), "source")
    first, hot = report.lines[0], max(report.lines, key=lambda line: line.metrics[DIVERGED])
    assert (first.kernel, first.view, first.address) == ("smem_conflict(float *, int)", "sass", 0x7F5B4B7A0000)
    assert first.text == "LDC R1, c[0x0][0x28]"
    assert (first.metrics["inst_executed"], first.metrics["smsp__pcsamp_sample_count"]) == (8448.0, 14.0)
    assert hot.text.startswith("FADD") and sum(line.metrics["inst_executed"] for line in report.lines) == 242770176.0
    assert "Address Space" not in first.metrics


def test_source_lines_and_their_instructions_stay_together() -> None:
    """Breaks when instructions of the mixed view lose their line, or a quote in the code shifts the cells."""
    mixed = files.read(files.capture("text-smem.source-cuda-sass.csv")).lines
    assert {line.view for line in mixed} == {"cuda", "sass"}
    conflict = [line for line in mixed if line.line == 16]
    assert conflict[0].view == "cuda" and "acc+=t[x*32+((y+i)&31)]" in conflict[0].text
    assert sum(line.metrics["derived__memory_l1_wavefronts_shared_excessive"] for line in conflict[1:]) == 1072693248.0
    assert {line.file for line in mixed} == {"/tmp/mk/smem_conflict.cu"}
    plain = files.read(files.capture("text-smem.source-cuda.csv")).lines
    assert 'fprintf(stderr,"%s:%d %s\\n",__FILE__,__LINE__' in plain[7].text
    ptx = files.read(files.capture("text-smem.source-ptx.csv")).lines
    assert (ptx[8].view, ptx[8].line, ptx[8].text) == ("ptx", 9, ".version 9.0")


def test_a_source_page_of_two_kernels_names_each() -> None:
    """Breaks when the second kernel's lines are counted to the first."""
    page = files.capture("smem.source-sass.csv")
    twice = page + page.replace(b"smem_conflict(float *, int)", b"other(int)", 1)
    assert [line.kernel for line in files.read(twice).lines][103:105] == ["smem_conflict(float *, int)", "other(int)"]


def test_a_session_page_says_how_it_was_profiled() -> None:
    """Breaks when the clock setting, which the command line gives, is lost."""
    said = files.read(files.capture("text-smem.session.csv")).session
    assert (said.gpu, said.cc, said.cuda, said.ncu) == ("NVIDIA H200", "9.0", "13.0", "2025.3.1.0")
    assert (said.clocks, said.cache, said.replay) == ("none", "all", "kernel")


def saved(tmp_path: Path, *names: str) -> list[Path]:
    """Captures as files."""
    for name in names:
        (tmp_path / name).write_bytes(files.capture(name))
    return [tmp_path / name for name in names]


def test_files_of_one_report_become_one(tmp_path: Path) -> None:
    """Breaks when a printed number wins over an exact one, or code lines, rules or the session get lost."""
    names = ["text-smem.session.csv", "smem.details-utf16.csv", "smem.source-sass.csv", "text-smem.raw-instances.csv"]
    report = load.load(saved(tmp_path, *names))
    assert [file.form for file in report.files] == ["raw", "details", "source", "session"]
    (launch,) = report.launches
    duration, spread = launch.metrics["gpu__time_duration.sum"], launch.metrics["sm__cycles_elapsed.sum"]
    assert (duration.number, duration.file, spread.file) == (4238912.0, 0, 0)
    assert (len(launch.rules), len(report.lines), report.session.clocks) == (12, 104, "none")
    assert launch.series["inst_executed"].values[0] == 8448.0
    exact = load.load(saved(tmp_path, "text-smem_conflict.details.csv", "smem_conflict.ncu-rep")).launches[0].metrics
    assert exact["gpu__time_duration.sum"].number == TRUTH["gpu__time_duration.sum"]


def test_the_lines_of_a_source_page_add_up_to_the_launch(tmp_path: Path) -> None:
    """Breaks when details and source page together name no cause, though the page counts every conflict."""
    paths = saved(tmp_path, "smem.details-utf16.csv", "text-smem.source-cuda-sass.csv", "smem.source-sass.csv")
    metrics = load.load(paths[:2]).launches[0].metrics
    assert metrics["memory_l1_wavefronts_shared"].number == 1107330048
    assert metrics["memory_l1_wavefronts_shared"].file == 1
    raw = one("text-smem.raw-instances.csv").metrics
    both = ("inst_executed", "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal")
    assert [metrics[name].number for name in both] == [raw[name].number for name in both]
    twice = tmp_path / "twice.csv"
    twice.write_bytes(files.capture("smem.source-sass.csv") * 2)
    assert "memory_l1_wavefronts_shared" not in load.load([paths[0], twice]).launches[0].metrics
    other = saved(tmp_path, "text-smem_conflict.details.csv", "smem_conflict.ncu-rep")
    with pytest.raises(RefusedInput, match="add up to"):
        load.load([*other, paths[2]])


def test_files_of_two_runs_are_refused(tmp_path: Path) -> None:
    """Breaks when two runs are mixed into one launch that never was."""
    for pair in (("smem.details-utf16.csv", "smem_conflict.ncu-rep"), ("gemv.raw.csv", "copy_vec4.raw.csv")):
        with pytest.raises(RefusedInput) as refused:
            load.load(saved(tmp_path, *pair))
        assert refused.value.code == "merge.differ"


def test_kernels_split_over_files_are_all_there(tmp_path: Path) -> None:
    """Breaks when one file for each kernel gives only the first."""
    head, units, first, second = files.capture("two-processes.raw.csv").splitlines(keepends=True)
    (tmp_path / "b.csv").write_bytes(head + units + second)
    (tmp_path / "a.csv").write_bytes(head + units + first)
    report = load.load([tmp_path / "b.csv", tmp_path / "a.csv"])
    assert [launch.id for launch in report.launches] == ["0", "1"]
    whole = files.read(files.capture("two-processes.raw.csv"))
    assert [files.numbers(a) for a in report.launches] == [files.numbers(b) for b in whole.launches]


def test_of_several_files_the_refused_one_is_named(tmp_path: Path) -> None:
    """Breaks when the user has to guess which of the files is wrong."""
    with pytest.raises(RefusedInput, match=r"empty\.log: a log"):
        load.load(saved(tmp_path, "copy_vec4.raw.csv", "empty.log"))


def test_values_agree_within_print_rounding_only() -> None:
    """Breaks when the tolerance hides a thousandfold error or refuses a rounded print."""
    page: Report = files.read(wide(("a__x.sum", "", "1.05"), ("a__y.sum", "", "1.06"), ("a__z", "", "word")))
    x, y, z = (page.launches[0].metrics[name] for name in ("a__x.sum", "a__y.sum", "a__z"))
    assert merge.agree(x, x) and not merge.agree(x, y) and merge.agree(x, z)
