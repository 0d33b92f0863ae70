"""CUDA C++ through NVRTC: int8 mma on tiles that follow the number of rows; any size, stride and offset."""

from __future__ import annotations

from typing import Any

import torch
from kernelpilot_runtime import build

MODULE = build.nvrtc("kernel.cu")
SUFFIX = {torch.bfloat16: "bf16", torch.float16: "f16"}
TILES = (("few", 16, 32, 64, 16), ("some", 64, 64, 128, 512), ("many", 128, 128, 256, 2**31))
"""Name, rows and columns of a tile, threads, and the most rows of ``a`` it is used for."""
KERNELS = {
    (name, dtype): MODULE.kernel(f"int8_mm_{name}_{suffix}")
    for name in ("few", "some", "many", "any")
    for dtype, suffix in SUFFIX.items()
}


def _tiled(a: Any, b: Any, out: Any, *vectors: Any) -> bool:
    """Whether 16-byte loads and 4-byte stores are possible: K contiguous in both, whole chunks, aligned rows."""
    inputs = a.stride(1) == 1 and b.stride(0) == 1 and not (a.shape[1] % 16 or a.stride(0) % 16 or b.stride(1) % 16)
    pairs = out.stride(1) == 1 and not (out.stride(0) % 2 or out.shape[1] % 2 or out.data_ptr() % 4)
    return inputs and pairs and not (a.data_ptr() % 16 or b.data_ptr() % 16) and all(v.stride(0) == 1 for v in vectors)


def entry(*, a: Any, b: Any, scale_a: Any, scale_b: Any, out: Any, bias: Any = None) -> None:
    """Write out = (a @ b) * scale_a * scale_b + bias into the given tensor."""
    m, k = a.shape
    n = b.shape[1]
    vectors = (scale_a, scale_b) if bias is None else (scale_a, scale_b, bias)
    steps = [build.i64(s) for s in (a.stride(0), b.stride(1), out.stride(0))]
    args = (a, b, scale_a, scale_b, build.i64(0) if bias is None else bias, out, m, n, k, *steps)
    if _tiled(a, b, out, *vectors):
        name, rows, cols, threads, _ = next(tile for tile in TILES if m <= tile[4])
        grid = (-(-m // rows), -(-n // cols), 1)
        KERNELS[name, out.dtype](grid, (threads, 1, 1), args)
        return
    more = [
        a.stride(1),
        b.stride(0),
        out.stride(1),
        *(v.stride(0) for v in vectors),
        *([] if bias is not None else [0]),
    ]
    KERNELS["any", out.dtype]((-(-m * n // 256), 1, 1), (256, 1, 1), (*args, *(build.i64(s) for s in more)))
