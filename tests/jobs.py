"""A small real job for tests: fused residual add + RMSNorm, a numpy or torch baseline against C candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelpilot_helpers.attempt.job import (
    Arm,
    Job,
    JobCase,
    Limits,
    Phase,
    TensorSpec,
    TimeSpec,
    VerifySpec,
)

REFERENCE = """
def ref(*, x, residual, weight, eps):
    total = x + residual
    mean = (total * total).sum(-1) / total.shape[-1]
    return total, total / ((mean + eps) ** 0.5).reshape(-1, 1) * weight


def check(inputs, outputs, ref):
    return [] if outputs["out"].shape == ref["out"].shape else ["shape"]
"""

OPERATORS = """
def entry(*, x, residual, weight, eps, out):
    residual[...] = x + residual
    mean = (residual * residual).sum(-1) / residual.shape[-1]
    out[...] = residual / ((mean + eps) ** 0.5).reshape(-1, 1) * weight
"""

KERNEL = """
#include <math.h>
void kernel(const float *x, float *r, const float *w, float *o, long rows, long n, float eps) {
    for (long i = 0; i < rows; i++) {
        const float *xi = x + i * n; float *ri = r + i * n, *oi = o + i * n;
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
        long j = 0;
        for (; j + 8 <= n; j += 8) {
            float a0 = xi[j]+ri[j], a1 = xi[j+1]+ri[j+1], a2 = xi[j+2]+ri[j+2], a3 = xi[j+3]+ri[j+3];
            float a4 = xi[j+4]+ri[j+4], a5 = xi[j+5]+ri[j+5], a6 = xi[j+6]+ri[j+6], a7 = xi[j+7]+ri[j+7];
            ri[j]=a0; ri[j+1]=a1; ri[j+2]=a2; ri[j+3]=a3; ri[j+4]=a4; ri[j+5]=a5; ri[j+6]=a6; ri[j+7]=a7;
            s0+=a0*a0; s1+=a1*a1; s2+=a2*a2; s3+=a3*a3; s4+=a4*a4; s5+=a5*a5; s6+=a6*a6; s7+=a7*a7;
        }
        for (; j < n; j++) { float a = xi[j] + ri[j]; ri[j] = a; s0 += a * a; }
        float s = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
        float inv = 1.0f / sqrtf(s / (float)n + eps);
        for (j = 0; j < n; j++) oi[j] = ri[j] * inv * w[j];
    }
}
"""

WRAPPER = """
import ctypes

from kernelpilot_runtime import build

LIB = build.cc("kernel.c", flags=("-O3",), libs=("m",))
P, L = ctypes.c_void_p, ctypes.c_long
LIB.kernel.argtypes = [P, P, P, P, L, L, ctypes.c_float]


def entry(*, x, residual, weight, eps, out):
    p = build.ptr
    LIB.kernel(p(x), p(residual), p(weight), p(out), x.shape[0], x.shape[1], eps)
"""

C_CANDIDATE = {"candidate.py": WRAPPER, "kernel.c": KERNEL}
BASELINE = {"candidate.py": OPERATORS}


def tensors(rows: int, cols: int) -> tuple[TensorSpec, ...]:
    """x, residual (in place), weight (static), eps, out."""

    def full(name: str, role: str) -> TensorSpec:
        return TensorSpec(name=name, role=role, dtype="float32", shape=(rows, cols), stride=(cols, 1))

    return (
        full("x", "in"),
        full("residual", "inout"),
        TensorSpec(name="weight", role="static", dtype="float32", shape=(cols,), stride=(1,), gen="uniform(0.5,1.5)"),
        TensorSpec(name="eps", role="scalar", dtype="float32", shape=(), stride=(), value=1e-6),
        full("out", "out"),
    )


def norm_case(rows: int, cols: int, *, timed: bool = True) -> JobCase:
    return JobCase(
        case_id=f"r{rows}_n{cols}", axes={"R": rows, "N": cols}, flags={}, tensors=tensors(rows, cols),
        required=timed, edge=not timed, held_out=False, timed=timed,
    )  # fmt: skip


def materialise(
    folder: Path,
    *,
    a: Mapping[str, str] = BASELINE,
    b: Mapping[str, str] = C_CANDIDATE,
    z: Mapping[str, str] | None = None,
    cases: Sequence[JobCase] = (norm_case(4, 64), norm_case(3, 33, timed=False)),
    phases: tuple[Phase, ...] = ("verify",),
    time: TimeSpec | None = None,
    verify: VerifySpec | None = None,
    limits: Limits | None = None,
    **fields: object,
) -> Job:
    """Write the sources and the oracle below ``folder`` and return the job (job.json is the lab's to write).

    A is the baseline unless ``z`` is given.
    """
    sources = {"A": a, "B": b, **({"Z": z} if z is not None else {})}
    arms = []
    for name, files in sources.items():
        for file, text in files.items():
            path = folder / "arms" / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        baseline = name == ("A" if z is None else "Z")
        key = name.lower() * 64
        entry = "candidate.py:entry"
        arms.append(Arm(name=name, source=f"arms/{name}", entry=entry, build_key=key, is_baseline=baseline))
    (folder / "oracle").mkdir(parents=True, exist_ok=True)
    (folder / "oracle" / "reference.py").write_text(REFERENCE)
    known = {
        "job_id": "test", "phases": phases, "cases": tuple(cases), "arms": tuple(arms),
        "time": time or (TimeSpec(pairs=2, blocks=4, sample_us=50.0) if "time" in phases else None),
        "verify": verify or (VerifySpec() if "verify" in phases else None),
        "limits": limits or Limits(call_s=5.0, build_s=30.0, wall_s=60.0),
    }  # fmt: skip
    return Job(**{**known, **fields})
