"""R: what is correct. Called with float64 inputs by the process that judges, never where candidates run."""

from __future__ import annotations

from typing import Any


def ref(*, x: Any, weight: Any, bias: Any) -> Any:
    """out [M, N] from x [M, K], weight [N, K] and bias [N]."""
    return x @ weight.T + bias
