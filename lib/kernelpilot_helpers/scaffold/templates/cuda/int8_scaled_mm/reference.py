"""R: what is correct. Called by the process that judges, never where candidates run."""

from __future__ import annotations

from typing import Any


def ref(*, a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None) -> Any:
    """out [M, N] from a [M, K] and b [K, N] in int8 and float64 scales; sums stay below 2**53, so they are exact."""
    out = (a.double() @ b.double()) * scale_a[:, None] * scale_b
    return out if bias is None else out + bias
