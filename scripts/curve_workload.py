"""The workload of scripts/operating_curve.py: eight shapes of a fused add and RMSNorm, and one kernel whose cost can be
raised by any small share at any size.

Every block of the first wave waits for a given number of dependent instructions before it begins, so the whole kernel
moves by that time, whether it lasts 2 us or 300 us. How long one of them takes is calibrated per shape on the spot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelpilot_helpers.attempt.job import Arm, Job, JobCase, Limits, Phase, TensorSpec, TimeSpec

SHAPES = (
    (1, 4096), (16, 4096), (128, 4096), (512, 8192), (2048, 4096), (4096, 8192), (16384, 4096), (16384, 8192),
)  # fmt: skip
GUESS_US = (2.4, 2.7, 3.4, 11.9, 20.7, 70.6, 131.9, 268.6)
"""About how long each takes on one fast GPU: only where the calibration starts."""
GUESS_STEP_NS = 2.5
"""About what one waiting step costs; calibrated before it is used."""

REFERENCE = """
def ref(*, x, residual, weight, eps):
    total = x + residual
    return total, total * (total.square().mean(-1, keepdim=True) + eps).rsqrt() * weight
"""

KERNEL = r"""
#include <cuda_bf16.h>
// one block a row; a thread holds up to 4 vectors of 8 elements
__device__ __forceinline__ float2 two(unsigned w) { return __bfloat1622float2(*reinterpret_cast<__nv_bfloat162*>(&w)); }
__device__ __forceinline__ unsigned one(float a, float b) {
  __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<unsigned*>(&v);
}
/*UNUSED*/
extern "C" __global__ void __launch_bounds__(256) NAME(const uint4* x, uint4* r, const uint4* w, uint4* o, int vectors,
                                                       int n, float eps, int wait, int first) {
  if (blockIdx.x < first) {
    unsigned v = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < wait; ++i) v = v * 1664525u + 1013904223u;  // each needs the one before; no closed form
    if (v == 0x9e3779b9u && wait < 0) r[0] = make_uint4(v, v, v, v);  // not reached: the loop has a use
  }
  const size_t row = (size_t)blockIdx.x * vectors;
  float total[4][8], squares = 0.f;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int at = threadIdx.x + 256 * k;
    if (at >= vectors) break;
    const uint4 a = x[row + at], b = r[row + at];
    const unsigned p[4] = {a.x, a.y, a.z, a.w}, q[4] = {b.x, b.y, b.z, b.w};
    unsigned kept[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 s = two(p[i]), t = two(q[i]);
      total[k][2 * i] = s.x + t.x;
      total[k][2 * i + 1] = s.y + t.y;
      squares += total[k][2 * i] * total[k][2 * i] + total[k][2 * i + 1] * total[k][2 * i + 1];
      kept[i] = one(total[k][2 * i], total[k][2 * i + 1]);
    }
    r[row + at] = make_uint4(kept[0], kept[1], kept[2], kept[3]);
  }
  __shared__ float part[8];
#pragma unroll
  for (int step = 16; step; step >>= 1) squares += __shfl_xor_sync(~0u, squares, step);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = squares;
  __syncthreads();
  squares = 0.f;
#pragma unroll
  for (int i = 0; i < 8; ++i) squares += part[i];
  const float scale = rsqrtf(squares / n + eps);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int at = threadIdx.x + 256 * k;
    if (at >= vectors) break;
    const uint4 g = w[at];
    const unsigned q[4] = {g.x, g.y, g.z, g.w};
    unsigned done[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 t = two(q[i]);
      done[i] = one(total[k][2 * i] * scale * t.x, total[k][2 * i + 1] * scale * t.y);
    }
    o[row + at] = make_uint4(done[0], done[1], done[2], done[3]);
  }
}
"""

WRAPPER = """
import torch
from kernelpilot_runtime import build

KERNEL = build.nvrtc("kernel.cu").kernel("NAME")
WAIT = TABLE
FIRST = 5 * torch.cuda.get_device_properties(0).multi_processor_count  # 48 registers: 5 blocks each


def whole(t):
    return t.is_contiguous() and t.data_ptr() % 16 == 0


def entry(*, x, residual, weight, eps, out):
    rows, n = x.shape
    if n % 8 or n > 8192 or not all(map(whole, (x, residual, weight, out))):  # shapes that the workload does not time
        total = x.float() + residual.float()
        residual.copy_(total)
        out.copy_(total * (total.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float())
        return
    KERNEL((rows, 1, 1), (256, 1, 1), (x, residual, weight, out, n // 8, n, eps, WAIT.get((rows, n), 0), FIRST))
"""
UNUSED = "__device__ float never(float a) { return a > 3.f ? a * 2.f : a; }  // nobody calls this\n"


def case_id(rows: int, hidden: int) -> str:
    """Name of one case."""
    return f"m{rows}_n{hidden}"


CASES = tuple(case_id(*shape) for shape in SHAPES)


def program(wait: Mapping[str, int] | None = None, *, name: str = "add_rms", unused: bool = False) -> dict[str, str]:
    """Files of one variant: ``wait`` steps by case (none: 0), the kernel's name, and dead code if wanted."""
    table = {shape: int((wait or {}).get(case_id(*shape), 0)) for shape in SHAPES}
    return {
        "candidate.py": WRAPPER.replace("NAME", name).replace("TABLE", repr(table)),
        "kernel.cu": KERNEL.replace("NAME", name).replace("/*UNUSED*/\n", UNUSED if unused else ""),
    }


def _case(rows: int, hidden: int) -> JobCase:
    def full(name: str, role: str) -> TensorSpec:
        return TensorSpec(name=name, role=role, dtype="bfloat16", shape=(rows, hidden), stride=(hidden, 1))  # type: ignore[arg-type]

    return JobCase(
        case_id=case_id(rows, hidden),
        axes={"M": rows, "N": hidden},
        flags={},
        tensors=(
            full("x", "in"),
            full("residual", "inout"),
            TensorSpec(
                name="weight", role="static", dtype="bfloat16", shape=(hidden,), stride=(1,), gen="uniform(0.5,1.5)"
            ),
            TensorSpec(name="eps", role="scalar", dtype="float32", shape=(), stride=(), value=1e-6),
            full("out", "out"),
        ),
        required=True,
        edge=False,
        held_out=False,
        timed=True,
    )


def make_job(
    folder: Path,
    *,
    a: Mapping[str, str],
    b: Mapping[str, str],
    time: TimeSpec,
    arena_gib: float,
    phases: tuple[Phase, ...] = ("time",),
    shapes: Sequence[tuple[int, int]] = SHAPES,
    wall_s: float = 500.0,
) -> Job:
    """Write both arms and the reference below ``folder``; arm A is the incumbent and the yardstick of errors."""
    arms = []
    for name, files in (("A", a), ("B", b)):
        source = folder / "arms" / name
        source.mkdir(parents=True)
        for file, text in files.items():
            (source / file).write_text(text)
        key = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
        arms.append(
            Arm(name=name, source=f"arms/{name}", entry="candidate.py:entry", build_key=key, is_baseline=name == "A")  # type: ignore[arg-type]
        )
    (folder / "oracle").mkdir()
    (folder / "oracle" / "reference.py").write_text(REFERENCE)
    return Job(
        job_id="curve",
        device="gpu",
        framework="torch",
        phases=phases,
        cases=tuple(_case(*shape) for shape in shapes),
        arms=tuple(arms),
        time=time,
        limits=Limits(wall_s=wall_s, arena_bytes=int(arena_gib * 2**30)),
    )
