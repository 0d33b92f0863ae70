"""Triton: int8 tiles on the tensor cores, int32 sums, the epilogue in registers. Any size, stride and offset."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def int8_mm(  # noqa: PLR0913, PLR0917 - a kernel takes what it needs
    a, b, scale_a, scale_b, bias, out, m, n, k,
    a_row, a_col, b_row, b_col, sa_step, sb_step, bias_step, o_row, o_col,
    HAS_BIAS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """One BM x BN tile of out; tiles of the same columns run side by side, so that b comes from memory once."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a + rows[:, None].to(tl.int64) * a_row + depth[None, :] * a_col
    b_at = b + depth[:, None] * b_row + cols[None, :].to(tl.int64) * b_col
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for done in range(0, k, BK):
        inside = depth < k - done
        left = tl.load(a_at, mask=(rows < m)[:, None] & inside[None, :], other=0)
        right = tl.load(b_at, mask=inside[:, None] & (cols < n)[None, :], other=0)
        total = tl.dot(left, right, total, out_dtype=tl.int32)
        a_at += BK * a_col
        b_at += BK * b_row
    result = total.to(tl.float32) * tl.load(scale_a + rows * sa_step, mask=rows < m, other=0.0)[:, None]
    result *= tl.load(scale_b + cols * sb_step, mask=cols < n, other=0.0)[None, :]
    if HAS_BIAS:
        result += tl.load(bias + cols * bias_step, mask=cols < n, other=0.0).to(tl.float32)[None, :]
    where = out + rows[:, None].to(tl.int64) * o_row + cols[None, :] * o_col
    tl.store(where, result, mask=(rows < m)[:, None] & (cols < n)[None, :])


def _tiles(m: int) -> dict[str, int]:
    """Narrow tiles for a few rows, where reading b is all; square ones for many."""
    if m <= 16:
        return {"BM": 16, "BN": 32, "BK": 256, "num_warps": 4, "num_stages": 4}
    if m <= 256:
        return {"BM": 64, "BN": 64, "BK": 128, "num_warps": 4, "num_stages": 4}
    return {"BM": 128, "BN": 128, "BK": 128, "num_warps": 8, "num_stages": 3}


def entry(*, a: Any, b: Any, scale_a: Any, scale_b: Any, out: Any, bias: Any = None) -> None:
    """Write into ``out``."""
    m, k = a.shape
    n = b.shape[1]
    tiles = _tiles(m)
    grid = (triton.cdiv(m, tiles["BM"]), triton.cdiv(n, tiles["BN"]))
    extra = scale_b if bias is None else bias
    steps = (*a.stride(), *b.stride(), *scale_a.stride(), *scale_b.stride(), *extra.stride(), *out.stride())
    int8_mm[grid](a, b, scale_a, scale_b, extra, out, m, n, k, *steps, HAS_BIAS=bias is not None, **tiles)
