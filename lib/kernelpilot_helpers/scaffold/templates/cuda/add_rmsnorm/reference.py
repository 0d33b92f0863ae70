"""R: what is correct. Called with float64 inputs by the process that judges, never where candidates run."""

from __future__ import annotations

from typing import Any


def ref(*, x: Any, residual: Any, weight: Any, eps: float) -> tuple[Any, Any]:
    """(residual, out) in the order of the contract's outputs; x and residual [M, N], weight [N], all float64."""
    total = x + residual
    return total, total * (total.square().mean(-1, keepdim=True) + eps).rsqrt() * weight
