"""A standalone repo with a GPU contract, whole enough for a lock: two baselines, residency, three figures."""

from __future__ import annotations

import sys
from pathlib import Path

from kernelpilot_helpers import scaffold
from tests.referee_sim import TASK

REQUEST = f"""
reference = "ref.py:ref"

[task]
name = "{TASK}"
op = "norm"

[target]
gpu = "H200"
arch = "sm_90a"
memory_gib = 24
speedup = 1.05

[axes]
M = {{var = [1, 16384]}}
N = {{values = [4096]}}

[call]
graph = "must"

[[baseline]]
id = "eager"

[[baseline]]
id = "compiled"
fn = "baseline/compiled.py:entry"

[timing]
decide = {{decode = "isolated"}}
report = ["pipelined", "isolated", "host"]

[tensors]
x = {{role = "inout", dtype = "bf16", shape = ["M", "N"], align = 16, residency = "hot"}}
residual = {{role = "inout", dtype = "bf16", shape = ["M", "N"], align = 16, residency = "hot"}}
weight = {{role = "static", dtype = "bf16", shape = ["N"], align = 16}}
eps = {{role = "scalar", dtype = "f32", gen = "const(1e-6)"}}

[[cases]]
case_id = "decode"
axes = {{M = 16, N = 4096}}
regime = "decode"

[[cases]]
case_id = "prefill"
axes = {{M = 4096, N = 4096}}
regime = "prefill"
"""
CODE = "def entry(*, x, residual, weight, eps):\n    raise RuntimeError('played by FakeLab')\n"


def request(folder: Path) -> scaffold.Request:
    """The request with its code beside it in ``folder``."""
    (folder / "baseline").mkdir(parents=True)
    for name in ("candidate", "compiled"):
        (folder / "baseline" / f"{name}.py").write_text(f"# {name}\n{CODE}")
    (folder / "ref.py").write_text("def ref(*, x, residual, weight, eps):\n    return x, residual\n")
    (folder / "request.toml").write_text(REQUEST)
    return scaffold.parse_request(REQUEST.encode(), str(folder / "request.toml"))


def repo(folder: Path) -> Path:
    """Scaffolded below ``folder``, not locked."""
    return scaffold.make(request(folder / "asked"), folder / "repo", kernelpilot=Path(sys.executable)).path
