"""R: what is correct. Called with float64 inputs by the process that judges, never where candidates run."""

from __future__ import annotations

from typing import Any


def ref(*, x: Any, residual: Any, weight: Any, eps: float) -> tuple[Any, Any]:
    """(residual, out) in the order of the contract's outputs; x and residual [M, N], weight [N].

    Only operators that numpy arrays and torch tensors share, so that either can be given.
    """
    total = x + residual
    return total, total / ((total * total).mean(-1, keepdims=True) + eps) ** 0.5 * weight
