"""Phases from PM sampling, and the constituent that makes a throughput: made up, and on our own captures."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernelpilot_helpers.ncu import breakdown, phases
from kernelpilot_helpers.ncu.report import Launch, Series, Value
from tests import ncu_rep_build as build

ACTIVE = "TPC.TriageCompute.sm__cycles_active.avg"
TENSOR = "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed"
DRAM = "FBSP.TriageCompute.dramc__throughput.avg.pct_of_peak_sustained_elapsed"
PCT = ".avg.pct_of_peak_sustained_elapsed"


def launch(series: dict[str, Series] | None = None, metrics: dict[str, Value] | None = None) -> Launch:
    return Launch(
        id="0", kernel="k", grid="(1, 1, 1)", block="(32, 1, 1)", device="0", cc="9.0", stream="7", process="1",
        metrics=metrics or {}, series=series or {},
    )  # fmt: skip


def sampled(values: Sequence[float], *, begin: int = 5_000, step: int = 1000) -> Series:
    """A series over time, with the stamp of 0 that samplers write first."""
    stamps = (0, *(begin + step * place for place in range(1, len(values))))
    return Series(keys=stamps, values=tuple(values), kind=1)


def test_ramp_steady_and_tail_are_shares_of_the_kernels_own_samples() -> None:
    """Breaks when idle samples before and after the kernel count, or a phase begins one sample off."""
    values = [0, 0, 10, 30, 100, 100, 100, 0, 0, 100, 100, 100, 20, 10, 10, 10, 0, 0, 0]
    found = phases.phases(launch({ACTIVE: sampled(values)}))
    assert found is not None
    assert (found.metric, found.samples, found.interval_ns) == (ACTIVE, 14, 1000.0)
    assert (found.ramp_up, found.steady, found.tail) == (2 / 14, 8 / 14, 4 / 14)
    assert (found.gaps, found.idle) == (1, 2 / 14)


def test_fewer_than_ten_samples_say_nothing() -> None:
    """Breaks when three samples of a short kernel become percentages."""
    assert phases.phases(launch({ACTIVE: sampled([0, *[5.0] * 9, 0, 0, 0])})) is None
    assert phases.phases(launch({ACTIVE: sampled([0, *[5.0] * 10, 0, 0, 0])})) is not None
    assert phases.phases(launch({ACTIVE: sampled([0.0] * 30)})) is None
    assert phases.phases(launch()) is None


def test_a_tail_longer_than_the_steady_part_is_still_a_tail() -> None:
    """Breaks when the steady level is the median of all samples: then the tail is called steady."""
    found = phases.phases(launch({ACTIVE: sampled([0, *[100.0] * 4, *[2.0] * 16])}))
    assert found is not None
    assert (found.steady, found.tail) == (0.2, 0.8)


def test_math_and_copies_in_turns() -> None:
    """Breaks when turns are not seen, or are claimed for a kernel that overlaps them."""
    active = sampled([0, *[100.0] * 20])
    tensor = sampled([0, *[90.0, 90.0, 5.0, 5.0] * 5])
    turns = phases.phases(launch({ACTIVE: active, TENSOR: tensor, DRAM: sampled([0, *[10.0, 10.0, 60.0, 60.0] * 5])}))
    assert turns is not None
    assert turns.alternation == pytest.approx(-1)
    assert turns.alternates
    overlap = phases.phases(launch({ACTIVE: active, TENSOR: tensor, DRAM: tensor}))
    assert overlap is not None
    assert (overlap.alternation, overlap.alternates) == (pytest.approx(1), False)


def test_series_of_different_passes_are_not_joined() -> None:
    """Breaks when two runs of the kernel are laid side by side by absolute time."""
    active = sampled([0, *[100.0] * 20])
    tensor = sampled([0, *[90.0, 5.0] * 10], begin=900_000)
    found = phases.phases(launch({ACTIVE: active, TENSOR: tensor, DRAM: sampled([0, *[5.0, 90.0] * 10])}))
    assert found is not None
    assert (found.alternation, found.alternates) == (None, False)


def test_phases_of_captures() -> None:
    """Breaks when real names or stamps are not understood: one kernel ends in one block, the other all at once."""
    tail = phases.phases(build.parse(build.capture("tail_wave")).launches[0])
    even = phases.phases(build.parse(build.capture("smem_conflict")).launches[0])
    assert tail is not None
    assert even is not None
    assert (tail.samples, round(tail.steady, 3), round(tail.tail, 3)) == (161, 0.081, 0.919)
    assert (even.samples, round(even.steady, 3), even.gaps) == (1414, 0.999, 0)


def test_the_limiting_part_of_a_throughput() -> None:
    """Breaks when the roll-up itself, an absent part or a smaller one is named."""
    listed = f"sm__pipe_fma_cycles_active{PCT},sm__inst_issued{PCT}, sm__absent{PCT}"
    metrics = {
        f"breakdown:sm__throughput{PCT}": Value(number=None, text=listed),
        f"sm__throughput{PCT}": Value(number=71.0, unit="%"),
        f"sm__pipe_fma_cycles_active{PCT}": Value(number=70.5, unit="%"),
        f"sm__inst_issued{PCT}": Value(number=20.0, unit="%"),
        f"sm__other{PCT}": Value(number=99.0, unit="%"),
    }
    assert breakdown.limiting(launch(metrics=metrics), "sm") == (f"sm__pipe_fma_cycles_active{PCT}", 70.5)
    assert breakdown.limiting(launch(metrics=metrics), "memory") is None
    del metrics[f"sm__pipe_fma_cycles_active{PCT}"]
    assert breakdown.limiting(launch(metrics=metrics), "sm") is None


def test_limiting_parts_of_captures() -> None:
    """Breaks when a tier without its own breakdown takes a part that does not make its number."""
    conflict = build.parse(build.capture("smem_conflict")).launches[0]
    named = {t: breakdown.limiting(conflict, t) for t in ("sm", "memory", "l1", "l2")}
    assert [found and found[0].removesuffix(PCT) for found in named.values()] == [
        "sm__issue_active", "l1tex__data_pipe_lsu_wavefronts", "l1tex__data_pipe_lsu_wavefronts", None,
    ]  # fmt: skip
    copy = build.parse(build.capture("two-processes")).launches[0]
    assert breakdown.limiting(copy, "dram") == breakdown.limiting(copy, "memory")
    assert breakdown.limiting(copy, "l2") is None
