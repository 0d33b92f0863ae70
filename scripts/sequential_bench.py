"""The other side of scripts/screen_speed.py, run in the task's Python: torch's inline extension and a sequential loop.

    python scripts/sequential_bench.py SPEC.json

Builds one kernel with torch.utils.cpp_extension.load_inline into a new folder, checks it with five random trials a
case against the framework's own operators, and times program and operators with 100 samples each: a fill of 256 MB, an
event, one call, an event. Prints one JSON object. It is how kernels are commonly timed; KernelPilot has no part in it.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TRIALS, SAMPLES, WARM = 5, 100, 5
THRASH = 256 << 20
TOLERANCE = 2e-2
EPS = 1e-6
LAUNCHER = """
#include <c10/cuda/CUDAStream.h>
void fused(torch::Tensor x, torch::Tensor r, torch::Tensor w, torch::Tensor o, double eps) {
  const int rows = x.size(0), n = x.size(1);
  NAME<<<rows, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const uint4*>(x.data_ptr()), reinterpret_cast<uint4*>(r.data_ptr()),
      reinterpret_cast<const uint4*>(w.data_ptr()), reinterpret_cast<uint4*>(o.data_ptr()), n / 8, n, (float)eps, 0, 0);
}
"""
DECLARATION = "void fused(torch::Tensor x, torch::Tensor r, torch::Tensor w, torch::Tensor o, double eps);"


def operators(x: Any, r: Any, w: Any, o: Any, eps: float) -> None:
    """The same with the framework's operators, in float32."""
    total = x.float() + r.float()
    r.copy_(total)
    o.copy_(total * (total.square().mean(-1, keepdim=True) + eps).rsqrt() * w.float())


def tensors(torch: Any, rows: int, hidden: int) -> tuple[Any, ...]:
    """New random inputs and an output."""
    x, r = (torch.randn(rows, hidden, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    w = torch.rand(hidden, device="cuda").add(0.5).bfloat16()
    return x, r, w, torch.empty_like(x)


def agrees(torch: Any, fused: Callable[..., None], rows: int, hidden: int) -> bool:
    """Five trials on new content."""
    for _ in range(TRIALS):
        x, r, w, o = tensors(torch, rows, hidden)
        r2, o2 = r.clone(), torch.empty_like(o)
        fused(x, r, w, o, EPS)
        operators(x, r2, w, o2, EPS)
        for got, want in ((r, r2), (o, o2)):
            if not torch.allclose(got.float(), want.float(), rtol=TOLERANCE, atol=TOLERANCE):
                return False
    return True


def timed(torch: Any, call: Callable[..., None], args: tuple[Any, ...], thrash: Any) -> float:
    """Mean microseconds over the samples, an event pair a call."""
    for _ in range(WARM):
        call(*args, EPS)
    found = []
    for _ in range(SAMPLES):
        thrash.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call(*args, EPS)
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) * 1000)
    return statistics.fmean(found)


def main(path: Path) -> int:
    """Import, build, check, time; say how long each took."""
    marks = [time.perf_counter()]
    spec = json.loads(path.read_text())
    import torch  # noqa: PLC0415
    from torch.utils.cpp_extension import load_inline  # noqa: PLC0415

    torch.cuda.init()
    marks.append(time.perf_counter())
    with tempfile.TemporaryDirectory() as folder:
        module = load_inline(
            name=f"fused_{spec['nonce']}", cpp_sources=DECLARATION, functions=["fused"], build_directory=folder,
            cuda_sources=spec["kernel"] + LAUNCHER.replace("NAME", spec["name"]), extra_cuda_cflags=["-O3"],
        )  # fmt: skip
        marks.append(time.perf_counter())
        right = all(agrees(torch, module.fused, *shape) for shape in spec["shapes"])
        marks.append(time.perf_counter())
        thrash = torch.empty(THRASH, dtype=torch.uint8, device="cuda")
        cases = []
        for shape in spec["shapes"]:
            args = tensors(torch, *shape)
            ours, theirs = (timed(torch, call, args, thrash) for call in (module.fused, operators))
            cases.append({"shape": shape, "us": round(ours, 3), "operators_us": round(theirs, 3)})
        marks.append(time.perf_counter())
    steps = ("import_s", "build_s", "check_s", "time_s")
    spent = {n: round(b - a, 3) for n, a, b in zip(steps, marks, marks[1:], strict=False)}
    print(json.dumps({**spent, "correct": right, "cases": cases}))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
