"""The baseline of the card: the int8 kernel that SGLang serves with, as it is installed (the package sgl-kernel)."""

from __future__ import annotations

from typing import Any

from sgl_kernel import int8_scaled_mm


def _aligned(tensor: Any) -> Any:
    """The kernel loads 16 bytes at a time; the framework never gives it others, an edge case of the referee does."""
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


def entry(*, a: Any, b: Any, scale_a: Any, scale_b: Any, out: Any, bias: Any = None) -> None:
    """Write out = (a @ b) * scale_a * scale_b + bias into the given tensor.

    The operator returns a new tensor, so a copy of [M, N] is timed along with it: state in the end what the gain is
    where the framework takes the returned tensor as it is.
    """
    out.copy_(int8_scaled_mm(_aligned(a), _aligned(b), scale_a, scale_b, out.dtype, bias))
