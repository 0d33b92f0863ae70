"""Known kernels get their known class, one next step and true numbers; what is missing is never taken for zero."""

from __future__ import annotations

import dataclasses
import json

import msgspec
import pytest

from kernelpilot_helpers import ncu, records
from kernelpilot_helpers.errors import BadRecord, NewerFormat
from kernelpilot_helpers.ncu import canonical, examine, facts_file, load, render
from kernelpilot_helpers.ncu.report import Report, Rule, Session
from tests import ncu_files as files
from tests import ncu_made as made

MICRO = {
    "copy_vec4": ("mem.dram_bw", "stop", "fewer-bytes"),
    "fma_bound": ("exec.pipe_bound:fma", "stop", "at-roof"),
    "low_occupancy": ("lat.occupancy", "edit", "resource-cut"),
    "reg_spill": ("mem.spill", "edit", "fewer-live-registers"),
    "smem_conflict": ("mem.smem_conflict", "edit", "shared-layout"),
    "tail_wave": ("exec.imbalance", "edit", "even-work"),
    "tiny_launch": ("launch.grid_small", "edit", "fewer-launches"),
}
LIBRARY = {
    "embedding": ("mem.bytes_in_flight", "edit"),
    "gemm_large": ("exec.tensor_bound", "stop"),
    "gemm_small_m": ("launch.grid_small", "edit"),
    "gemv": ("mem.dram_bw", "edit"),
    "sdpa": ("exec.tensor_bound", "edit"),
    "triton_rms": ("mem.dram_bw", "edit"),
}
SOL = {
    "gpu__time_duration.sum": ("ns", "50,000"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "20.50"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "90.50"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "90.50"),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": ("%", "0"),
}
CLEAN = {
    "derived__local_spilling_requests": ("", "0"),
    "memory_l2_theoretical_sectors_global": ("sector", "2,000,000"),
    "memory_l2_theoretical_sectors_global_ideal": ("sector", "2,000,000"),
}
MOVED = {"dram__bytes_read.sum": ("Mbyte", "100.50"), "dram__bytes_write.sum": ("Mbyte", "100.50")}


@pytest.mark.parametrize("kernel", MICRO)
def test_a_kernel_of_known_bottleneck_gets_that_class_and_the_edit_for_it(kernel: str) -> None:
    """Breaks when a rule, a threshold, an alias or the order of the decision list goes wrong."""
    found = files.digest(files.capture(f"{kernel}.raw.csv"))
    assert (found.name, found.next_step.kind, found.next_step.family) == MICRO[kernel]
    assert found.confidence == ("medium" if kernel == "tiny_launch" else "high")


@pytest.mark.parametrize("kernel", LIBRARY)
def test_a_library_kernel_gets_a_class_that_its_design_allows(kernel: str) -> None:
    """Breaks when a one-block-an-SM tensor kernel is blamed for occupancy, or a GEMV for missing tensor cores."""
    found = files.digest(files.capture(f"{kernel}.raw.csv"))
    assert (found.name, found.next_step.kind) == LIBRARY[kernel]
    assert found.confidence in ("medium", "high")


def test_thirteen_kernels_do_not_share_one_verdict() -> None:
    """Breaks when the digest says the same of everything."""
    names = [*MICRO, *LIBRARY]
    assert len({files.digest(files.capture(f"{k}.raw.csv")).name for k in names}) == 9


def test_numbers_carry_base_units_and_their_column() -> None:
    """Breaks when the row of units is not applied or the provenance is lost."""
    group = files.digest(files.capture("two-processes.raw.csv")).groups[1]
    assert group.kernel.startswith("copy_vec4")
    duration = group.evidence["duration"]
    assert (duration.metric, duration.value, duration.unit) == ("gpu__time_duration.sum", 534464.0, "ns")
    assert (duration.file, duration.alias) == (0, 0)
    assert duration.row is not None
    assert group.evidence["shared"].value == 1024.0  # printed as 1.024000 Kbyte/block
    assert group.duration_us == 534.464
    assert group.time_share == pytest.approx(0.534464 / (0.534464 + 1.918208), abs=1e-5)


def test_the_headline_is_the_group_with_most_to_win_not_the_first_or_the_longest() -> None:
    """Breaks when the class of the first launch, or of the longest kernel at its roof, becomes the headline."""
    found = files.digest(files.capture("multi-detailed.raw.csv"))
    assert [g.name for g in found.groups] == [
        "exec.tensor_bound",
        "exec.pipe_bound:issue",
        "mem.dram_bw",
        "mem.bytes_in_flight",
        "mem.bytes_in_flight",
    ]
    assert found.headline == 1
    assert found.groups[0].step_kind == "stop"
    assert [g.next_step is not None for g in found.groups] == [False, True, False, False, False]
    assert sum(g.time_share or 0 for g in found.groups) == pytest.approx(1.0, abs=1e-5)


def test_a_basic_capture_asks_for_the_sections_that_decide() -> None:
    """Breaks when a file without waste metrics gives a confident class, or a capture that would not decide."""
    found = files.digest(files.capture("two-processes.raw.csv"))
    assert (found.name, found.confidence, found.next_step.kind) == ("none.insufficient", "none", "capture")
    for section in ("MemoryWorkloadAnalysis_Tables", "SourceCounters", "WarpStateStats"):
        assert f"--section {section}" in found.next_step.command
    assert found.refused is None


def test_a_raw_page_without_throughput_is_a_digest_and_no_refusal() -> None:
    """Breaks when missing speed of light is read as 0 % and called a latency problem."""
    found = files.digest(files.made({"gpu__time_duration.sum": ("ns", "1,000"), "launch__block_size": ("", "256")}))
    assert (found.name, found.confidence, found.refused) == (ncu.INSUFFICIENT, "none", None)
    assert "--section SpeedOfLight" in found.next_step.command
    assert "sm_sol" not in found.groups[0].evidence


def test_one_missing_speed_of_light_is_not_zero() -> None:
    """Breaks when a lone memory figure decides against a compute figure that nobody measured."""
    metrics = {k: v for k, v in {**SOL, **CLEAN}.items() if not k.startswith("sm__throughput")}
    assert files.digest(files.made(metrics)).name == ncu.INSUFFICIENT


def test_dram_at_its_roof_is_a_stop_only_near_the_least_bytes() -> None:
    """Breaks when 90 % DRAM while moving twice the least bytes is called done."""
    data = files.made({**SOL, **CLEAN, **MOVED})
    near, twice, unsaid = (files.digest(data, min_bytes=b) for b in (200_000_000, 100_000_000, None))
    assert (near.name, near.next_step.kind) == ("none.at_limit", "stop")
    assert [(d.name, d.next_step.kind, d.next_step.family) for d in (twice, unsaid)] == [
        ("mem.dram_bw", "edit", "fewer-bytes")
    ] * 2
    assert "2.01e+08 byte" in unsaid.next_step.expect


def test_waste_is_named_before_bandwidth() -> None:
    """Breaks when an uncoalesced kernel is told that it is bound by DRAM."""
    half = {
        **CLEAN,
        "memory_l2_theoretical_sectors_global_ideal": ("sector", "1,000,000"),
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": ("byte/sector", "16"),
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio": ("byte/sector", "32"),
    }
    found = files.digest(files.made({**SOL, **half}))
    assert (found.name, found.next_step.family) == ("mem.uncoalesced", "coalesce")
    assert found.groups[0].evidence["excess_share"].value == 0.5


def test_no_loads_is_not_zero_bytes_per_sector() -> None:
    """Breaks when a ratio of 0, which means no loads at all, is taken for the worst coalescing."""
    none = {**CLEAN, "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": ("byte/sector", "0")}
    assert files.digest(files.made({**SOL, **none})).name == "mem.dram_bw"


def test_indexed_local_arrays_are_not_called_spills() -> None:
    """Breaks when local traffic without a spilled register is called a spill."""
    local = {
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": ("sector", "9,000,000"),
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": ("sector", "9,000,000"),
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sector", "1,000,000"),
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("sector", "1,000,000"),
    }
    found = files.digest(files.made({**SOL, **CLEAN, **local}))
    assert found.name == "mem.dram_bw"
    assert [r.why for r in found.groups[0].rejected if r.name == "mem.spill"] == ["local traffic is arrays, not spills"]


def test_a_specialised_kernel_is_never_told_to_raise_occupancy() -> None:
    """Breaks when few warps, the design of a tensor kernel, are called the problem."""
    head, units, row = files.rows_of(files.capture("low_occupancy.raw.csv"))
    at = head.index("sm__pipe_tma_cycles_active.avg.pct_of_peak_sustained_elapsed")
    row[at] = "12.5"
    assert files.digest(files.page([head, units, row])).name != "lat.occupancy"


def test_a_short_kernel_is_judged_and_flagged() -> None:
    """Breaks when a kernel below ten microseconds, where decoding lives, is muted."""
    found = files.digest(files.capture("gemm_small_m.raw.csv"))
    assert found.next_step.family.startswith("split-")
    assert any("shorter than 10 us" in flag for flag in found.groups[0].flags)


def test_contradicting_figures_lower_confidence() -> None:
    """Breaks when a duration that cycles and clock deny is believed."""
    head, units, row = files.rows_of(files.capture("copy_vec4.raw.csv"))
    row[head.index("gpu__time_duration.sum")] = "53,500,800"
    found = files.digest(files.page([head, units, row]))
    assert (found.name, found.confidence) == ("mem.dram_bw", "medium")
    assert any("cycles over clock" in flag for flag in found.groups[0].flags)


def test_launches_of_one_kernel_are_one_group_at_its_median() -> None:
    """Breaks when the last launch wins, or launches of one kernel are counted as several kernels."""
    head, units, row = files.rows_of(files.capture("copy_vec4.raw.csv"))
    at = head.index("gpu__time_duration.sum")
    launches = [[str(n), *row[1:at], ns, *row[at + 1 :]] for n, ns in enumerate(("540,000", "900,000", "535,008"))]
    (group,) = files.digest(files.page([head, units, *launches])).groups
    assert (group.launches, group.duration_us, group.time_share) == (3, 540.0, 1.0)
    assert any("differ 1.7 times" in flag for flag in group.flags)


def test_the_record_survives_its_own_format() -> None:
    """Breaks when a digest cannot be read back, or holds a number that JSON cannot."""
    found = files.digest(files.capture("sdpa.raw.csv"))
    assert records.parse(records.dump(found), ncu.OWNER, at="digest.json") == found
    plain = msgspec.to_builtins(found)
    assert plain["format"] == "kernelpilot.ncu-digest"
    assert {"class", "confidence", "next_step", "groups", "refused"} <= plain.keys()
    assert {"kernel", "time_share", "class"} <= plain["groups"][0].keys()
    assert {"kind", "what", "why", "command", "expect", "guard"} <= plain["next_step"].keys()


@pytest.mark.parametrize("kernel", [*MICRO, *LIBRARY, "multi-detailed", "live-with-banner", "two-processes"])
def test_text_fits_a_screen_and_the_page_is_complete(kernel: str) -> None:
    """Breaks when the first screen outgrows twelve lines or a section or number of the page is left open."""
    found = files.digest(files.capture(f"{kernel}.raw.csv"))
    assert len(ncu.text(found).splitlines()) <= 12
    page = ncu.markdown(found)
    heads = [line for line in page.splitlines() if line.startswith("## ")]
    assert heads == [
        f"## {t}"
        for t in (
            "Environment", "Headline", "Evidence", "Hotspots", "PTX and SASS", "Inference chain", "Next concrete edit",
        )
    ]  # fmt: skip
    assert "fill in" not in page
    assert "0" * 64 in page


def test_hostile_kernel_names_stay_names() -> None:
    """Breaks when a kernel's name can end a table, a code span or a line, colour a terminal or enter a command."""
    name = 'k`</table>|\n# x \x1b[31m\u202e<img src=x>";$(touch x)'
    found = files.digest(files.made(SOL, kernel=name))
    page = ncu.markdown(found)
    assert "\x1b" not in page + ncu.text(found)
    assert "\u202e" not in page + ncu.text(found)
    assert "\n# x" not in page
    assert "k'</table>" in page
    assert "touch" not in found.next_step.command
    row = next(line for line in page.splitlines() if line.startswith("| `k"))
    assert row.count("`") == 4  # two names, each in its own span


def test_the_same_bytes_give_the_same_digest() -> None:
    """Breaks when a clock, a hash order or a random choice enters."""
    data = files.capture("multi-detailed.raw.csv")
    assert records.dump(files.digest(data)) == records.dump(files.digest(data))


def _bytes(report: Report) -> bytes:
    return examine.dump(examine.digest_of(report).digest)


def test_canonical_bytes_have_sorted_keys_and_six_digits() -> None:
    """Breaks when the record depends on the order of fields or on the last digits of a float."""
    data = _bytes(made.times(123_456.789))
    found = json.loads(data)
    assert data == canonical.dump(found)
    assert list(found) == sorted(found)
    assert found["groups"][0]["evidence"]["duration"]["value"] == 123457.0
    assert data == _bytes(made.times(123_456.789))


@pytest.mark.parametrize(
    "name",
    ["smem_conflict.ncu-rep", "tail_wave.ncu-rep", "two-processes.ncu-rep", "graph.ncu-rep", "multi-detailed.raw.csv"],
)
def test_the_facts_alone_give_the_same_digest(name: str) -> None:
    """Breaks when facts.json lacks something that the digest rests on: a gate could not recompute it."""
    report = load.read(files.capture(name), name=name, sha256="0" * 64)
    found = examine.digest_of(report)
    facts = facts_file.record(report, found.derived, redactor=found.redactor)
    again = facts_file.parse(canonical.dump(msgspec.to_builtins(facts)))
    assert _bytes(again) == examine.dump(found.digest)


def test_the_step_names_the_line_where_the_time_goes() -> None:
    """Breaks when hotspots are found and the step still says "somewhere in the kernel", or every group has its own."""
    name = "smem_conflict.ncu-rep"
    found = examine.digest_of(load.read(files.capture(name), name=name, sha256="0" * 64)).digest
    (group,) = found.groups
    target = found.next_step.target
    assert (target.file.rsplit("/", 1)[-1], target.line) == ("smem_conflict.cu", group.hotspots[0].line)
    assert target.share == group.hotspots[0].share
    assert f"smem_conflict.cu:{target.line}" in ncu.text(found)
    assert group.hotspots[0].pc in ncu.markdown(found)
    assert group.speed_of_light["memory_sol"].limiting.startswith("l1tex__")
    assert group.roofline is not None
    assert group.advice is not None


def test_a_damaged_facts_file_is_an_error_by_name() -> None:
    """Breaks when a facts.json without files, of a newer version or with absurd counts is a traceback."""
    report = made.times(1e5)
    found = examine.digest_of(report)
    plain = msgspec.to_builtins(facts_file.record(report, found.derived, redactor=found.redactor))
    with pytest.raises(BadRecord, match="names no file"):
        facts_file.parse(canonical.dump({**plain, "files": []}))
    with pytest.raises(NewerFormat):
        facts_file.parse(canonical.dump({**plain, "version": 9}))
    with pytest.raises(BadRecord, match="launches"):
        facts_file.parse(canonical.dump({**plain, "launches": [{"id": 1}]}))
    plain["launches"][0]["metrics"]["sm__throughput.avg.pct_of_peak_sustained_elapsed"] = [10**400, "%", 1, 0]
    assert examine.digest_of(facts_file.parse(canonical.dump(plain))).digest.name == ncu.INSUFFICIENT


def test_a_digest_with_no_step_or_with_two_is_not_shown() -> None:
    """Breaks when a renderer shows a file's advice twice, or a digest without any."""
    one = examine.digest_of(made.report([made.launch(1e5), made.launch(9e4, ix=1, kernel="other(int)")])).digest
    assert render.one_step(one) == one.next_step
    first, second = one.groups
    held = first if first.next_step is not None else second
    two = tuple(msgspec.structs.replace(g, next_step=held.next_step) for g in one.groups)
    none = tuple(msgspec.structs.replace(g, next_step=None) for g in one.groups)
    other = msgspec.structs.replace(one.next_step, what="something else")
    for wrong in (
        msgspec.structs.replace(one, groups=two),
        msgspec.structs.replace(one, groups=none),
        msgspec.structs.replace(one, next_step=other),
    ):
        for show in (ncu.text, ncu.markdown):
            with pytest.raises(render.WrongSteps, match="exactly one next step"):
                show(wrong)


def test_names_of_people_and_machines_are_hidden_unless_kept() -> None:
    """Breaks when a home folder, a host, a user or an address of the capture reaches a file that is committed."""
    session = Session(host="gpu-box-7", command="/home/ada/run --to 10.1.2.3 --as ada", gpu="GPU A", cc="9.0")
    places = ("\\".join(("C:", "Users", "bob", "k.cu")), "on gpu-box-7,", "/".join(("", "root", "x")))
    rule = Rule(id="R", section="S", type="warning", title="t", text=" ".join(("see", *places)))
    report = made.report([made.launch(1e5, process="/home/ada/bin/run (1)", rules=(rule,))], session=session)
    kept = examine.digest_of(report, keep_paths=True)
    found = examine.digest_of(report)
    facts = facts_file.record(report, found.derived, redactor=found.redactor)
    for text in (examine.dump(found.digest).decode(), canonical.dump(msgspec.to_builtins(facts)).decode(),
                 ncu.text(found.digest), ncu.markdown(found.digest)):  # fmt: skip
        assert [w for w in ("ada", "gpu-box-7", "10.1.2.3", "bob", "/root") if w in text] == []
    assert "~/run --to [ip] --as [user]" in examine.dump(found.digest).decode()
    assert "/home/ada/run --to 10.1.2.3" in examine.dump(kept.digest).decode()


def test_a_name_that_looks_like_a_version_or_a_scope_is_no_address() -> None:
    """Breaks when versions, C++ scopes or metric names are hidden."""
    text = "ncu 2025.3.1.0, driver 580.65.06, a::b::c::d<ns::e>, smsp__inst_executed.sum, @P0 BRA"
    assert examine.redactor_of(made.times(1e5)).text(text) == text


def test_a_slow_first_launch_is_a_warm_up_and_counts_in_the_time() -> None:
    """Breaks when a warm-up is dropped, stands for its group, or makes steady launches look uneven."""
    (group,) = examine.digest_of(made.times(300_000.0, 100_000.0, 101_000.0, 102_000.0)).digest.groups
    assert (group.warm_up, group.launches, group.duration_us, group.total_us) == (True, 4, 101.0, 603.0)
    assert [f for f in group.flags if "times in duration" in f] == []
    (uneven,) = examine.digest_of(made.times(300_000.0, 100_000.0, 250_000.0)).digest.groups
    assert not uneven.warm_up
    assert any("differ 3.0 times in duration" in f for f in uneven.flags)


def test_launches_of_another_class_are_told() -> None:
    """Breaks when a kernel whose bottleneck depends on its data gets one confident class."""
    tensor = {f"sm__pipe_tensor_cycles_active{made.PCT}": 90.0, f"sm__throughput{made.PCT}": 90.0}
    launches = [made.launch(1e5), made.launch(1.05e5, ix=1), made.launch(1.1e5, ix=2, metrics=tensor)]
    (group,) = examine.digest_of(made.report(launches)).digest.groups
    assert any("exec.tensor_bound: it depends on data" in f for f in group.flags)


def test_process_device_and_registers_keep_groups_apart() -> None:
    """Breaks when two GPUs, processes or builds of one kernel are averaged."""
    other = {"launch__registers_per_thread": 64}
    launches = [
        made.launch(1e5),
        made.launch(1e5, ix=1, process="2"),
        made.launch(1e5, ix=2, device="1"),
        made.launch(1e5, ix=3, metrics=other),
        made.launch(1e5, ix=4, kernel="void  scale(float *)"),
    ]
    assert sorted(g.launches for g in examine.digest_of(made.report(launches)).digest.groups) == [1, 1, 1, 2]


def test_the_last_few_percent_are_one_bucket() -> None:
    """Breaks when two hundred tiny kernels fill the page, or their time is lost."""
    big = [made.launch(1e6, ix=ix, kernel=f"big{ix}(int)") for ix in range(10)]
    tiny = [made.launch(1e3, ix=10 + ix, kernel=f"tiny{ix}(int)") for ix in range(50)]
    found = examine.digest_of(made.report([*big, *tiny])).digest
    assert len(found.groups) == 10
    assert found.other is not None
    assert (found.other.groups, found.other.launches) == (50, 50)
    assert found.other.time_share == pytest.approx(0.05 / 10.05, rel=1e-4)


@pytest.mark.parametrize("kind", ["range", "graph"])
def test_a_range_is_one_workload_without_claims_about_kernels(kind: str) -> None:
    """Breaks when the figures of many kernels are called one kernel's bottleneck."""
    found = examine.digest_of(made.report([made.launch(1e5, kind=kind, kernel=kind, grid="", block="")])).digest
    assert (found.name, found.next_step.kind, found.next_step.family) == (ncu.INSUFFICIENT, "capture", "kernels-apart")


def test_nvidias_rules_cost_confidence_where_they_disagree_and_cap_the_bound() -> None:
    """Breaks when a disagreement is silent, or an estimate of a part is taken for one of the kernel."""
    plain = examine.digest_of(made.times(1e5)).digest.groups[0]
    against = Rule(
        id="SOLBottleneck", section="SpeedOfLight", type="warning", title="High Compute Throughput", text="t"
    )
    given = examine.digest_of(made.times(1e5, rules=(against,))).digest.groups[0]
    ranks = {"high": 3, "medium": 2, "low": 1, "none": 0}
    assert ranks[given.confidence] <= ranks[plain.confidence]
    assert given.advice is not None
    assert given.advice.disagrees == ("SOLBottleneck: High Compute Throughput",)
    assert any("NVIDIA's rules name another bottleneck" in f for f in given.flags)
    assert plain.advice is None


def test_the_parent_is_compared_on_the_first_screen() -> None:
    """Breaks when what an edit moved is not beside the next step."""
    found = examine.digest_of(made.times(90_000.0), parent=made.times(100_000.0)).digest
    assert found.parent is not None
    assert found.parent.verdict == "improved"
    assert "parent   improved: time -10.0 %" in ncu.text(found)
    assert "| Duration (`gpu__time_duration.sum`) | 100.0 us | 90.0 us | -10.0 % |" in ncu.markdown(found)


def test_bytes_and_time_stand_beside_what_the_case_needs() -> None:
    """Breaks when 80 % of DRAM looks good while twice the least bytes are moved."""
    given = ncu.Given(min_bytes=500_000_000, floor_us=40.0, case="b8")
    screen = ncu.text(examine.digest_of(made.times(100_000.0), given=given).digest)
    assert "40% of the size-matched floor of 40.0 us; 953.7 MiB through DRAM, 2.00 times the least" in screen
    assert "case     b8, 100.0 us isolated" in screen


def test_a_report_without_launches_is_refused_by_name() -> None:
    """Breaks when a session page alone is a traceback or an empty digest."""
    with pytest.raises(ncu.RefusedInput, match="that holds no launch"):
        examine.digest_of(dataclasses.replace(made.times(1e5), launches=()))


def test_cold_caches_are_said_of_a_report_that_tells_them() -> None:
    """Breaks when cold-cache figures explain a hot benchmark without a word, or known settings are called unknown."""
    flags = examine.digest_of(made.times(1e5)).digest.flags
    assert examine.COLD in flags
    assert [f for f in flags if "does not say how clocks" in f] == []
    silent = dataclasses.replace(made.times(1e5), session=Session())
    assert [f for f in examine.digest_of(silent).digest.flags if "does not say how clocks" in f] != []


def test_many_launches_of_a_tiny_kernel_are_one_problem() -> None:
    """Breaks when the number of launches of a group does not reach the rule about it."""
    names = ("sm__throughput", "gpu__compute_memory_throughput", "gpu__dram_throughput", "sm__issue_active")
    idle = {f"{name}{made.PCT}": 2.0 for name in names}
    few, many = (examine.digest_of(made.times(*[3_000.0] * count, metrics=idle)).digest for count in (2, 40))
    assert many.name == "launch.many_small"
    assert few.name != "launch.many_small"
    assert many.groups[0].launches == 40
