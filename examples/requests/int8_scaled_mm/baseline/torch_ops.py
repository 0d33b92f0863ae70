"""A baseline that needs no package beside torch: its int8 matrix product, then the epilogue in its operators."""

from __future__ import annotations

from typing import Any

import torch

ROWS = 32
"""torch._int_mm wants more than 16 rows on a GPU: fewer are padded."""


def _product(a: Any, b: Any) -> Any:
    """[M, N] int32, exact. Layouts that torch._int_mm refuses go through float64, which is exact too."""
    rows, depth = a.shape
    plain = a.stride(1) == 1 and b.stride(0) == 1 and not (a.stride(0) % 16 or b.stride(1) % 16)
    fits = depth % 16 == 0 and b.shape[1] % 8 == 0 and b.shape[1] >= 16
    if not (plain and fits and a.data_ptr() % 16 == 0 and b.data_ptr() % 16 == 0):
        return (a.double() @ b.double()).int()
    if rows > 16:
        return torch._int_mm(a, b)
    padded = a.new_zeros(ROWS, depth)
    padded[:rows] = a
    return torch._int_mm(padded, b)[:rows]


def entry(*, a: Any, b: Any, scale_a: Any, scale_b: Any, out: Any, bias: Any = None) -> None:
    """Write out = (a @ b) * scale_a * scale_b + bias into the given tensor, rounding once."""
    total = _product(a, b).float() * scale_a[:, None] * scale_b
    out.copy_(total if bias is None else total + bias.float())
