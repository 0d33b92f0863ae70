"""The builders on a real GPU: built once, loaded by a second process, launched, captured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers.executors.deploy import deploy
from kernelpilot_helpers.runtime.build_worker import arch_here

PYTHON = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON") or sys.executable
KERNEL = r"""
extern "C" __global__ void scale(const float* x, float* o, int n, float a, long long shift) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) o[i] = x[i] * a + (float)(shift >> 33);
}
extern "C" __global__ void big(float* o) {
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < 20480; i += blockDim.x) s[i] = i;
  __syncthreads();
  o[threadIdx.x] = s[20479 - threadIdx.x];
}
"""
SCRIPT = """
import sys
from importlib import util
from pathlib import Path

folder, source, target, arch, known = sys.argv[1:6]
spec = util.spec_from_file_location(
    "kernelpilot_runtime", Path(folder) / "__init__.py", submodule_search_locations=[folder]
)
sys.modules["kernelpilot_runtime"] = util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["kernelpilot_runtime"])
import torch
from kernelpilot_runtime import build

x = torch.arange(1000, device="cuda", dtype=torch.float32)
out = torch.zeros_like(x)
session = build.Session(
    source=Path(source), target=Path(target), key="k", known={"kernel.cubin": known} if known else {}, gpu=True,
    during=lambda on: None, admit=lambda path: None, arch=arch, device=object(),
)
build.begin(session)
module = build.nvrtc("kernel.cu")
assert session.artifacts[0]["build_id"] == build.hex_id("k")
scale = module.kernel("scale")
with torch.cuda.stream(torch.cuda.Stream()):
    scale(4, 256, (x, out, 1000, 2.0, build.i64(3 << 33)))
torch.cuda.synchronize()
assert torch.equal(out, 2 * x + 3)
graph = torch.cuda.CUDAGraph()
out.zero_()
with torch.cuda.graph(graph):
    build.launch_ex(scale, 4, 256, (x, out, 1000, 4.0, build.i64(0)), pdl=True)
graph.replay()
torch.cuda.synchronize()
assert torch.equal(out, 4 * x)
module.kernel("big")(1, 256, (out,), shared=80 * 1024)
torch.cuda.synchronize()
assert out[0].item() == 20479.0
try:
    module.kernel("big")(1, 256, (out,), shared=1 << 20)
except build.LaunchError as refused:
    assert "CUDA_ERROR_INVALID_VALUE" in str(refused)
else:
    raise AssertionError("a megabyte of shared memory was granted")
print(build.sha256(Path(target) / "kernel.cubin"))
"""


def process(runtime: Path, base: Path, known: str) -> str:
    argv = [PYTHON, "-c", SCRIPT, str(runtime), str(base / "src"), str(base / "out"), arch_here(), known]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


@pytest.mark.gpu
@pytest.mark.skipif(not arch_here(), reason="no NVIDIA GPU here")
def test_a_kernel_is_built_once_and_launched_by_every_process(tmp_path: Path) -> None:
    """Breaks when a cubin is not the one that was stamped, or an argument, attribute or limit reaches it wrongly."""
    for name in ("src", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "src" / "kernel.cu").write_text(KERNEL)
    runtime = deploy(tmp_path / "cache")
    built = process(runtime, tmp_path, "")
    assert process(runtime, tmp_path, built) == built
