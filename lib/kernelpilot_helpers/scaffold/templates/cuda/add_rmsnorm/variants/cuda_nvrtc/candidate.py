"""CUDA C++ through NVRTC: 16-byte loads, one block a row, sums in float32; any size, stride and offset."""

from __future__ import annotations

from typing import Any

from kernelpilot_runtime import build

MODULE = build.nvrtc("kernel.cu")
VECTORS = {count: MODULE.kernel(f"add_rmsnorm_v{count}") for count in (1, 2, 4)}
ANY = MODULE.kernel("add_rmsnorm_any")
FEW_ROWS = 512
"""Below this many rows a row gets more threads, since the GPU is not full anyway."""


def _vectors(rows: int, n: int) -> int:
    """Vectors of 8 elements a thread holds; 0 where the row fits no kernel."""
    threads = 1024 if rows < FEW_ROWS else 512
    return next((count for count in VECTORS if n <= 8 * count * (threads if count < 4 else 1024)), 0)


def _aligned(weight: Any, *matrices: Any) -> bool:
    rows = all(t.stride(1) == 1 and t.stride(0) % 8 == 0 and t.data_ptr() % 16 == 0 for t in matrices)
    return rows and weight.stride(0) == 1 and weight.data_ptr() % 16 == 0


def entry(*, x: Any, residual: Any, weight: Any, out: Any, eps: float) -> None:
    """Write into the given tensors: residual += x, out = residual / rms(residual) * weight."""
    rows, n = x.shape
    count = _vectors(rows, n) if n % 8 == 0 and _aligned(weight, x, residual, out) else 0
    steps = [build.i64(t.stride(0)) for t in (x, residual, out)]
    if count:
        threads = -(-n // (8 * count * 32)) * 32
        VECTORS[count]((rows, 1, 1), (threads, 1, 1), (x, residual, weight, out, n, eps, *steps))
        return
    steps += [build.i64(t.stride(-1)) for t in (x, residual, out, weight)]
    threads = min(-(-n // 32) * 32, 1024)
    ANY((rows, 1, 1), (threads, 1, 1), (x, residual, weight, out, n, eps, *steps))
