"""Error statistics: units, ratios and places worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from kernelpilot_helpers.runtime import stats
from kernelpilot_helpers.runtime.frames import NumpyFrame
from kernelpilot_helpers.runtime.oracle import Oracle
from kernelpilot_helpers.runtime.spec import Case, Tensor

F = NumpyFrame()


def want(values: np.ndarray, dtype: str = "float32", *, unit: float | None = None) -> stats.Want:
    ref = np.asarray(values, dtype=np.float64)
    exact = not dtype.startswith("float")
    size = None if exact else stats.unit_of(F, dtype, np.abs(ref)) if unit is None else np.full(ref.shape, unit)
    return stats.Want(ref=ref, unit=size, dtype=dtype, exact=exact)


def test_unit_is_the_spacing_of_the_dtype_and_never_below_the_smallest_normals() -> None:
    sizes = np.array([[1.0, 1.999, 2.0, 0.0, 1e-60]])
    u32 = stats.unit_of(F, "float32", sizes)
    assert u32.tolist() == [[2.0**-23, 2.0**-23, 2.0**-22, 2.0**-149, 2.0**-149]]
    assert stats.unit_of(F, "float16", np.array([[1.0]])).tolist() == [[2.0**-10]]
    assert stats.unit_of(F, "bfloat16", np.array([[1.0]])).tolist() == [[2.0**-7]]
    assert math.isfinite(stats.unit_of(F, "float32", np.array([[np.inf]]))[0, 0])


def test_error_is_counted_in_units() -> None:
    w = want(np.full((64, 64), 1.0))
    got = np.full((64, 64), 1.0, np.float32)
    got[3, 5] = np.float32(1.0 + 4 * 2.0**-23)
    m = stats.measure(F, got, w)
    assert (m.max, m.n) == (4.0, 4096)
    assert m.rms == pytest.approx(4.0 / 64)
    assert m.bias == pytest.approx(4.0 / 4096)
    s = stats.summary(F, m, w, None)
    assert (s["row_ix"], s["col_ix"], s["tile_ix"]) == (3, 5, (0, 0))
    assert s["row_ratio"] == pytest.approx(4.0 / 8 / 0.29)  # one 4 in 64: rms 0.5 over the floor
    assert s["nonfinite_equal"] and not s["exact"]


def test_one_look_at_a_device_tells_what_many_tell_on_the_host() -> None:
    """Breaks when figures taken at once differ from those taken one by one, also where they must be taken twice."""

    class Remote(NumpyFrame):
        device = "somewhere"

    ref = np.linspace(-3.0, 3.0, 70 * 130).reshape(70, 130)
    for spoil in (None, np.nan, np.inf):
        got = (ref * (1 + 1e-6)).astype(np.float32)
        if spoil is not None:
            got[3, 4] = spoil
        told = []
        for frame in (F, Remote()):
            with np.errstate(all="ignore"):
                m = stats.measure(frame, got, want(ref))
            told.append((m.max, m.rms, m.bias, stats.summary(frame, m, want(ref), stats.lean(m))))
        assert told[0] == told[1]
        assert told[0][3]["nonfinite_equal"] is (spoil is None)
        assert math.isfinite(told[0][0])


def test_ratios_divide_by_the_baselines_own_part_where_it_is_larger() -> None:
    w = want(np.full((64, 128), 1.0))
    base_got = np.full((64, 128), 1.0, np.float32)
    base_got[:, 7] += np.float32(2 * 2.0**-23)
    base = stats.measure(F, base_got, w)
    mine = np.full((64, 128), 1.0, np.float32)
    mine[:, 7] += np.float32(6 * 2.0**-23)
    mine[:, 100] += np.float32(2 * 2.0**-23)
    s = stats.summary(F, stats.measure(F, mine, w), w, base)
    assert s["base_max"] == 2.0
    # column 7: 6 over the baseline's own 2; column 100: 2 over the floor 0.29 is the worse one
    assert (s["col_ix"], s["col_ratio"]) == (100, pytest.approx(2 / 0.29))
    assert s["tile_ix"] == (0, 0)  # 6 in one of 64 columns is rms 0.75, 2 is 0.25


def test_thin_rows_and_columns_are_pooled_so_that_one_honest_ulp_is_no_outlier() -> None:
    w = want(np.full((1, 128), 1.0))
    got = np.full((1, 128), 1.0, np.float32)
    got[0, 70] += np.float32(2.0**-22)
    s = stats.summary(F, stats.measure(F, got, w), w, None)
    assert s["col_ratio"] == pytest.approx(2 / math.sqrt(32) / 0.29)
    assert s["col_ix"] == 64


def test_nan_where_a_number_is_due_is_a_mismatch_and_the_poison_is_counted() -> None:
    w = want(np.full((2, 64), 1.0))
    poison = np.full((2, 64), 0x7FC5A5A5, np.uint32).view(np.float32)
    got = np.full((2, 64), 1.0, np.float32)
    got[1, 60:] = poison[1, 60:]
    m = stats.measure(F, got, w, poison)
    s = stats.summary(F, m, w, None)
    assert (s["nonfinite_equal"], s["unwritten"], s["max"]) == (False, 4, 0.0)
    found = stats.where(F, m, w, 2.0)
    assert found is not None
    assert (found["bad_rows"], found["bad_cols"], found["bad"]) == ([(1, 2)], [(60, 64)], 4)
    assert found["sample"] == [(1, 60, 1e308, 1.0)]


def test_the_same_infinity_is_equal_and_the_opposite_one_is_not() -> None:
    w = want(np.array([[1e39, -1e39, 1.0, 1.0]]))
    good = np.array([[np.inf, -np.inf, 1.0, 1.0]], np.float32)
    assert stats.summary(F, stats.measure(F, good, w), w, None)["nonfinite_equal"]
    bad = np.array([[np.inf, np.inf, 1.0, 1.0]], np.float32)
    assert not stats.summary(F, stats.measure(F, bad, w), w, None)["nonfinite_equal"]


def test_at_the_edge_of_overflow_an_ulp_decides_between_the_largest_number_and_infinity() -> None:
    """Breaks as on an H200: an honest float16 GEMM gave -inf where the reference rounds -65519.9 to -65504."""
    w = want(np.array([[-65519.9, 65520.1, 65504.0, 65504.0]]), "float16")
    got = np.array([[-np.inf, 65504.0, np.inf, 65504.0]], np.float16)
    assert stats.summary(F, stats.measure(F, got, w), w, None)["nonfinite_equal"]
    for bad in ([[np.inf, 65504.0, 65504.0, 65504.0]], [[-65504.0, np.inf, -np.inf, 65504.0]]):
        m = stats.measure(F, np.array(bad, np.float16), w)
        assert not stats.summary(F, m, w, None)["nonfinite_equal"]
    far = want(np.array([[70000.0, 60000.0]]), "float16")
    assert stats.measure(F, np.array([[65504.0, 60000.0]], np.float16), far).max == pytest.approx(70.25)  # / 2^6
    m = stats.measure(F, np.array([[np.inf, np.inf]], np.float16), far)
    assert not stats.summary(F, m, far, None)["nonfinite_equal"]


def test_the_unit_of_a_quantized_product_does_not_shrink_where_the_bias_cancels_it(tmp_path: Path) -> None:
    """Breaks as on an H200: one element of an honest int8 GEMM was 70 ulp off where its bias left next to nothing."""
    (tmp_path / "r.py").write_text("def ref(a, b, s, bias):\n    return (a.astype(float) @ b) * s + bias\n")
    made = Oracle(F, tmp_path, "r.py:ref", "")
    tensors = [
        *((name, "in", "int8", (1, 1)) for name in ("a", "b")),
        *((name, "in", "float32", (1,)) for name in ("s", "bias")),
        ("out", "out", "float32", (1, 1)),
    ]
    made_of = [
        Tensor(name=n, role=r, dtype=d, shape=sh, stride=sh, offset=0, align=1, gen="normal", value=None)
        for n, r, d, sh in tensors
    ]
    case = Case(case_id="c", axes={}, flags={}, timed=True, tensors=tuple(made_of))
    for a, bias in ((-128, 1024.0), (100, -800.0)):  # -128 * 8 + 1024 = 100 * 8 - 800 = 0
        given = {"a": np.array([[a]], np.int8), "b": np.array([[8]], np.int8)}
        given |= {"s": np.array([1.0], np.float32), "bias": np.array([bias], np.float32)}
        unit = float(made.want(case, given)["out"].unit[0, 0])
        assert unit == 2.0**-13, "2^10 * 2^-23: at 127 * 8 + 1024 = 2040, and at 100 * 8 + 800 = 1600"


def test_whole_numbers_are_exact_and_counted_in_ones() -> None:
    w = want(np.array([[1, 2, 3, 4]]), "int32")
    m = stats.measure(F, np.array([[1, 2, 3, 6]], np.int32), w)
    s = stats.summary(F, m, w, None)
    assert (s["exact"], s["max"]) == (True, 2.0)
    found = stats.where(F, m, w, 1e9)
    assert found is not None and found["bad_cols"] == [(3, 4)]


def test_where_is_silent_inside_the_limit_and_lists_runs_beyond_it() -> None:
    w = want(np.full((4, 64), 1.0))
    got = np.full((4, 64), 1.0, np.float32)
    got[:, [0, 1, 5]] += np.float32(8 * 2.0**-23)
    m = stats.measure(F, got, w)
    assert stats.where(F, m, w, 8.0) is None
    found = stats.where(F, m, w, 7.0)
    assert found is not None
    assert found["bad_cols"] == [(0, 2), (5, 6)]
    assert (found["n_bad_cols"], found["n_bad_rows"], found["bad"]) == (3, 4, 12)
