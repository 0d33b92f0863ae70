"""Roofline by numbers worked out by hand."""

from __future__ import annotations

import pytest

from kernelpilot_helpers.ncu.report import Launch, Value
from kernelpilot_helpers.ncu.roofline import roofline
from tests.ncu_files import capture, read

OP = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
FP32 = {
    # 10 + 20 + 2 x 35 = 100 operations a cycle at 1 GHz = 100 GFLOP/s; roof 2 x 500 x 1 GHz = 1 TFLOP/s
    OP.format("fadd"): 10.0,
    OP.format("fmul"): 20.0,
    OP.format("ffma"): 35.0,
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 500.0,
    "smsp__cycles_elapsed.avg.per_second": 1e9,
    # roof 100 x 2 GHz = 200 GB/s; the ridge is 1e12 / 200e9 = 5 operations a byte
    "dram__bytes.sum.peak_sustained": 100.0,
    "dram__cycles_elapsed.avg.per_second": 2e9,
}
BYTES = "dram__bytes.sum.per_second"
TENSOR = "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off"


def launch(metrics: dict[str, float]) -> Launch:
    """A launch with nothing but metrics."""
    return Launch(
        id="0", kernel="k", grid="", block="", device="", cc="", stream="", process="",
        metrics={name: Value(number=number) for name, number in metrics.items()},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("moved", "intensity", "roof", "percent"),
    [
        (100e9, 1.0, "dram", 50.0),  # 100 of 200 GB/s
        (10e9, 10.0, "compute", 10.0),  # 100 of 1000 GFLOP/s
    ],
)
def test_which_roof(moved: float, intensity: float, roof: str, percent: float) -> None:
    """Breaks when the roof is chosen on the wrong side of the ridge, or a fused multiply-add counts once."""
    found = roofline(launch({**FP32, BYTES: moved}))
    assert (found.kind, found.flops, found.ridge) == ("fp32", 100e9, 5.0)
    assert (found.intensity, found.roof, found.percent) == (intensity, roof, pytest.approx(percent))
    assert (found.flop_origin, found.byte_origin, found.missing) == ("reported", "reported", "")


def test_a_measured_ceiling_goes_before_the_reported_one() -> None:
    """Breaks when the referee's own measurement is ignored, or not said to be one."""
    measured = {"read@64MiB": 160.0, "write@64MiB": 150.0, "floor_us": 900.0, "matmul@bf16": 5.0}
    found = roofline(launch({**FP32, BYTES: 80e9}), measured=measured)
    assert (found.byte_roof, found.byte_origin) == (160e9, "measured")
    assert (found.flop_roof, found.flop_origin) == (1e12, "reported")  # no matmul of fp32 was measured
    assert (found.roof, found.percent) == ("dram", pytest.approx(50.0))


def test_tensor_operations_have_the_roof_of_their_type() -> None:
    """Breaks when tensor work is set against the roof of ordinary arithmetic, or bf16 against another type's."""
    metrics = {
        **FP32, BYTES: 1e9, f"{TENSOR}.sum.per_second": 600e12,
        f"{TENSOR}.sum.peak_sustained_elapsed.per_second": 800e12,
    }  # fmt: skip
    found = roofline(launch(metrics))
    assert (found.kind, found.roof, found.percent) == (
        "tensor hgmma_src_bf16_dst_fp32_sparsity_off", "compute", pytest.approx(75.0),
    )  # fmt: skip
    better = roofline(launch(metrics), measured={"matmul@bf16": 750.0, "matmul@fp8": 1500.0})
    assert (better.flop_roof, better.flop_origin, better.percent) == (750e12, "measured", pytest.approx(80.0))


def test_packed_halves_and_doubles() -> None:
    """Breaks when a packed half-precision instruction counts one value."""
    half = {OP.format(f"h{op}"): n for op, n in (("add", 0.0), ("mul", 0.0), ("fma", 25.0))}
    peak = {"sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained": 100.0}
    idle = {OP.format(f"f{op}"): 0.0 for op in ("add", "mul", "fma")}
    found = roofline(launch({**FP32, **half, **peak, **idle, BYTES: 1e9}))
    assert (found.kind, found.flops, found.flop_roof) == ("fp16", 100e9, 400e9)  # 2 values x 2 operations


def test_no_arithmetic_is_a_place_under_the_dram_roof() -> None:
    """Breaks when a copy, whose intensity is 0, is not computable or called compute-bound."""
    idle = {OP.format(f"f{op}"): 0.0 for op in ("add", "mul", "fma")}
    found = roofline(launch({**FP32, **idle, BYTES: 150e9}))
    assert (found.kind, found.intensity, found.roof, found.percent) == ("", 0.0, "dram", pytest.approx(75.0))


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (BYTES, f"not computable: {BYTES} missing"),
        ("dram__bytes.sum.peak_sustained", "not computable: dram__bytes.sum.peak_sustained missing"),
        (OP.format("fmul"), f"not computable: {OP.format('fmul')} missing"),
        ("smsp__cycles_elapsed.avg.per_second", "not computable: gpc__cycles_elapsed.avg.per_second missing"),
    ],
)
def test_what_is_missing_is_named(gone: str, words: str) -> None:
    """Breaks when an absent metric counts as 0 or a table of devices fills in."""
    metrics = {name: value for name, value in {**FP32, BYTES: 1e9}.items() if name != gone}
    found = roofline(launch(metrics))
    assert (found.missing, found.percent, found.roof) == (words, None, "")


def test_a_real_report() -> None:
    """Breaks when a real report's names or units are no longer met: 1504 bytes a cycle at 3.2 GHz is 4.8 TB/s."""
    found = roofline(read(capture("smem_conflict.ncu-rep")).launches[0])
    assert (found.kind, found.roof, found.missing) == ("fp32", "compute", "")
    assert found.byte_roof == pytest.approx(4.812e12, rel=1e-3)
