"""Known kernels get their known class, one next step and true numbers; what is missing is never taken for zero."""

from __future__ import annotations

import msgspec
import pytest

from kernelpilot_helpers import ncu, records
from tests import ncu_files as files

MICRO = {
    "copy_vec4": ("mem.dram_bw", "edit", "fewer-bytes"),
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
    assert group.evidence["duration"] == ncu.Reading(metric="gpu__time_duration.sum", value=534464.0, unit="ns")
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
    assert found.groups[0].next_step.kind == "stop"
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
    half = {**CLEAN, "memory_l2_theoretical_sectors_global_ideal": ("sector", "1,000,000")}
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
    assert found.next_step.family == "split-work"
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
