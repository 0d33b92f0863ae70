"""Two ways past the timing's graph that only a GPU can answer: is there a hole? Prints and writes span times in us.

    PYTHONPATH=lib PYTHON scripts/gpu_holes.py --out docs/measurements/gpu-holes.json    # PYTHON: torch for CUDA

1. A kernel that lets its successor start at once (griddepcontrol.launch_dependents), then an empty successor launched
   programmatically that never waits: does the span's end mark wait for the first kernel? ``early`` much below ``full``
   would be a hole.
2. Memory read with L2::evict_last: is it in the cache after the flush? ``last`` much below ``plain`` would be a hole;
   ``hot`` is what the same read takes without a flush.
"""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import argparse
import json
import sys
import tempfile
from importlib import import_module, util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

FOLDER = Path(__file__).resolve().parents[1] / "lib/kernelpilot_helpers/runtime"
SOURCE = r"""
extern "C" __global__ void work(float* x, int early, int n) {
  if (early) asm volatile("griddepcontrol.launch_dependents;");
  float v = threadIdx.x;
  for (int i = 0; i < n; i++) v = v * 1.0001f + 0.5f;
  x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void load(const float4* x, float* o, int n, int last) {
  float s = 0;
  unsigned long long keep;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 v;
    if (last) asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(x + i), "l"(keep));
    else v = x[i];
    s += v.x + v.y + v.z + v.w;
  }
  if (s == 1.2345f) o[0] = s;
}
"""


def runtime() -> Any:
    """The runtime under the name that candidates know, as a worker loads it."""
    spec = util.spec_from_file_location(
        "kernelpilot_runtime", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
    )
    assert spec is not None and spec.loader is not None
    sys.modules["kernelpilot_runtime"] = util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["kernelpilot_runtime"])
    return SimpleNamespace(**{m: import_module(f"kernelpilot_runtime.{m}") for m in ("build", "cuda", "graphs")})


def spans(kp: Any, device: Any, call: Any, *, flush: bool = True, groups: int = 8) -> list[float]:
    """Microseconds of each span of a replayed graph, as the referee records one."""

    def body(tape: Any) -> None:
        for _ in range(groups):
            if flush:
                tape.flush()
            tape.begin()
            call()
            tape.call_done()
            tape.end()

    program = kp.graphs.record(device, body)
    got = [program.replay() for _ in range(6)][-1]
    program.close()
    return [round(n / 1000, 1) for n in got]


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kp = runtime()
    folder = Path(tempfile.mkdtemp(prefix="kp-holes-"))
    (folder / "k.cu").write_text(SOURCE)
    device = kp.cuda.open_device()
    kp.build.begin(kp.build.Session(
        source=folder, target=folder, key="k", known={}, gpu=True, during=lambda _: None, admit=lambda _: None,
        arch=device.facts["arch"], device=device,
    ))  # fmt: skip
    module = kp.build.nvrtc("k.cu")
    work, nothing, load = (module.kernel(n) for n in ("work", "nothing", "load"))
    x = torch.zeros(132 * 256, device="cuda")
    big = torch.zeros((16 << 20) // 4, device="cuda")

    def two(early: int, *, pdl: bool) -> None:
        work(132, 256, (x, early, 40000))
        kp.build.launch_ex(nothing, 1, 32, (), pdl=pdl)

    def read(last: int) -> None:
        load(264, 256, (big, x, big.numel() // 4, last))

    found = {
        "full": spans(kp, device, lambda: two(0, pdl=False)), "early": spans(kp, device, lambda: two(1, pdl=True)),
        "plain": spans(kp, device, lambda: read(0)), "last": spans(kp, device, lambda: read(1)),
        "hot": spans(kp, device, lambda: read(0), flush=False),
    }  # fmt: skip
    for name, us in found.items():
        print(f"{name:6s} {us}")
    if options.out is not None:
        facts = {k: device.facts[k] for k in ("gpu", "arch", "cuda") if k in device.facts}
        document = {
            "command": "PYTHON scripts/gpu_holes.py",
            "gpu": facts,
            "torch": torch.__version__,
            "span_us": found,
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
