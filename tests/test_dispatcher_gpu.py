"""The generated dispatcher of a GPU task: what is copied, builds for the tensors' device, the caller's process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers import contract, dispatcher, plan
from kernelpilot_helpers.dispatcher import code
from kernelpilot_helpers.executors import deploy
from kernelpilot_helpers.scaffold import binding
from tests import taskpy
from tests.test_dispatcher import MATMUL, generated, mm_map

GPU_MATMUL = MATMUL.replace(b'gpu = "cpu"', b'gpu = "H200"')
TWO = GPU_MATMUL.replace(b'py:run"}]', b'py:run"}, {id = "c", fn = "baseline/c.py:run"}]')
LOADED = """
import importlib.util, json, sys
at = sys.argv[1] + "/__init__.py"
spec = importlib.util.spec_from_file_location("copy", at, submodule_search_locations=sys.argv[1:])
package = importlib.util.module_from_spec(spec)
sys.modules["copy"] = package
spec.loader.exec_module(package)
import copy.build
print(json.dumps(sorted(n.partition(".")[2] + ".py" for n in sys.modules if n.startswith("copy."))))
"""


def write(files: dict[str, bytes], folder: Path) -> Path:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder / "dispatch"


def ask(python: str, script: str, *argv: str, **env: str) -> str:
    done = subprocess.run(
        [python, "-c", script, *argv], capture_output=True, text=True, check=False, timeout=120,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_copied_is_what_the_builder_imports(tmp_path: Path) -> None:
    """Breaks when the builder gets a module that the copy lacks, or the referee's own modules are given away."""
    names = dispatcher.closure({p.name: p.read_bytes() for p in deploy.source_dir().glob("*.py")})
    real = json.loads(ask(sys.executable, LOADED.replace("copy", "kpcopy"), str(deploy.source_dir())))
    assert list(names) == real
    folder = write(generated(mm_map(), contract.parse(GPU_MATMUL, at="c")).files, tmp_path) / "kernelpilot_runtime"
    assert sorted(p.name for p in folder.iterdir()) == sorted(["__init__.py", *names])
    assert json.loads(ask(sys.executable, LOADED.replace("copy", "kpcopy"), str(folder))) == real


def test_closure_by_hand() -> None:
    """Breaks when a lazy import, a chain or a cycle is missed, or a file that nobody imports comes along."""
    files = {
        "build.py": b"from .a import x\nfrom . import b\nimport os\nfrom ..up import no\n",
        "a.py": b"def f():\n    from . import c\n",
        "b.py": b"from .a import y\nfrom .gone import z\n",
        "c.py": b"this is no Python",
        "d.py": b"",
    }
    assert dispatcher.closure(files) == ("a.py", "b.py", "build.py", "c.py")
    assert dispatcher.closure({"a.py": b""}) == ()


TORCH = """
import contextlib, types
current = 0
entered = []
class _Cuda(types.ModuleType):
    def get_device_capability(self, index): return {0: (9, 0), 1: (8, 6)}[index]
    def current_device(self): return current
    def is_current_stream_capturing(self): return False
    @contextlib.contextmanager
    def device(self, index):
        global current
        before, current = current, index
        entered.append(index)
        yield
        current = before
cuda = _Cuda("cuda")
def device(kind, index): return f"{kind}:{index}"
class Tensor:
    def __init__(self, shape, place=0, dtype="float32"):
        self.shape, self.place, self.dtype, self.said = shape, place, "torch." + dtype, None
    def get_device(self): return self.place
    def data_ptr(self): return 4096
    def element_size(self): return 4
    def stride(self):
        step, out = 1, []
        for size in reversed(self.shape):
            out.append(step)
            step *= size
        return tuple(reversed(out))
"""
CPP = """
class Versioner:
    def __init__(self): self.entries = {}
JIT_EXTENSION_VERSIONER = Versioner()
JIT_EXTENSION_VERSIONER.entries["mine"] = 3
"""
CANDIDATE = b"""
import os, sys, types
from kernelpilot_runtime import build
import torch.utils.cpp_extension as cpp
SESSION = build.current("test")
SEEN = [os.environ["TRITON_CACHE_DIR"].startswith(str(SESSION.target)), os.environ["TORCH_CUDA_ARCH_LIST"],
        "ext" in cpp.JIT_EXTENSION_VERSIONER.entries, torch.current if (torch := sys.modules["torch"]) else None]
cpp.JIT_EXTENSION_VERSIONER.entries["ext"] = 0
assert "ext" not in sys.modules, "another version's extension"
module = sys.modules["ext"] = types.ModuleType("ext")
module.__file__ = str(SESSION.target / "ext.so")


def entry(*, x, wide, out, bias=None):
    now = build.current("test")
    assert now is SESSION, "a build at the first call would be another version's"
    out.said = [*SEEN, now.arch, str(now.device), now.gpu, "TRITON_CACHE_DIR" in os.environ, torch.current]
"""
PROBE = """
import json, os, sys, threading
sys.path[:0] = sys.argv[1:]
before = dict(os.environ)
import dispatch, torch
import torch.utils.cpp_extension as cpp
T = torch.Tensor
def tensors(m, n, place=0):
    return dict(x=T((m, n), place), wide=T((2 * m,), place), out=T((m, n), place))
said = []
def call(*args):
    given = tensors(*args)
    dispatch.entry(**given)
    said.append(given["out"].said)
for args in ((32, 2048), (128, 512), (32, 2048, 1), (32, 2048)):
    call(*args)
other = threading.Thread(target=call, args=(128, 512))
other.start()
other.join()
try:
    dispatch.entry(**{**tensors(32, 2048), "x": T((32, 2048), 1)})
except ValueError as fault:
    said.append(str(fault))
given = tensors(32, 2048)
dispatch.bind(**given)(**given)
said.append(given["out"].said == said[0])
print(json.dumps([said, before == dict(os.environ), cpp.JIT_EXTENSION_VERSIONER.entries, "ext" in sys.modules,
                  torch.entered]))
"""


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """A folder with a torch that only says where tensors lie."""
    folder = tmp_path / "stub"
    (folder / "torch/utils").mkdir(parents=True)
    (folder / "torch/__init__.py").write_text(TORCH)
    (folder / "torch/utils/__init__.py").write_text("")
    (folder / "torch/utils/cpp_extension.py").write_text(CPP)
    return folder


def test_versions_are_built_for_the_tensors_gpu_and_nothing_of_the_caller_changes(stub: Path, tmp_path: Path) -> None:
    """Breaks when a build lacks its arch or device, the second GPU gets the first one's code, two versions'
    extensions of one name meet, or the caller's environment is left with our caches."""
    tree = {"candidate.py": CANDIDATE}
    made = generated(mm_map(), contract.parse(GPU_MATMUL, at="c"), v001_a=tree, v002_b=tree)
    said, same, entries, left, entered = json.loads(
        ask(sys.executable, PROBE, str(write(made.files, tmp_path)), str(stub))
    )
    first = [True, "9.0a", False, 0, "sm_90a", "cuda:0", True, False, 0]
    second = [True, "8.6", False, 1, "sm_86", "cuda:1", True, False, 1]
    assert said == [first, first, second, first, first, "the tensors lie on more than one device", True]
    assert (same, entries, left) == (True, {"mine": 3}, False)
    assert entered == [1, 1], "once to load and once to call on the other GPU"


FAILS_ONCE = b"""
import os
if not os.path.exists(MARK := os.environ["MARK"]):
    open(MARK, "w").close()
    raise RuntimeError("no compiler")


def entry(*, x, wide, out, bias=None):
    out.said = "served"
"""
TWICE = """
import sys
sys.path[:0] = sys.argv[1:]
import dispatch, torch
T = torch.Tensor
given = dict(x=T((32, 2048), 0), wide=T((64,), 0), out=T((32, 2048), 0))
try:
    dispatch.entry(**given)
except RuntimeError as fault:
    print(fault)
dispatch.entry(**given)
print(given["out"].said)
"""


def test_a_version_that_failed_to_load_can_be_loaded_again(stub: Path, tmp_path: Path) -> None:
    """Breaks when the folder of the failed build is in the way of the next (seen on an H200: FileExistsError)."""
    tree = {"candidate.py": FAILS_ONCE}
    made = generated(mm_map(), contract.parse(GPU_MATMUL, at="c"), v001_a=tree, v002_b=tree)
    said = ask(sys.executable, TWICE, str(write(made.files, tmp_path)), str(stub), MARK=str(tmp_path / "mark"))
    assert said == "no compiler\nserved\n"


def test_one_of_several_baselines_is_the_fallback_and_the_text_says_why() -> None:
    """Breaks when the others vanish without a word, or a plan promises to beat the first alone."""
    made = contract.parse(TWO, at="c")
    files = generated(mm_map(), made).files
    why = "The baseline is b, the first of the contract's: the map compares versions with it; the others (c) serve"
    assert why in files["dispatch/dispatch.py"].decode()
    assert why in files["artifacts/tuning-decisions.md"].decode()
    assert "'baseline': 'base.py:run'" in files["dispatch/dispatch.py"].decode()
    assert code.fallback_words(contract.parse(GPU_MATMUL, at="c")) == ""
    assert "as fast as the fastest, case by case, of its baselines `b`, `c` on H200" in plan.render(made, ())


REAL = """
import sys, warnings
warnings.filterwarnings("ignore")
sys.path.insert(0, sys.argv[1])
import torch
import bindings.torch_op
def call(m):
    x = torch.arange(m * 2048, dtype=torch.float32).reshape(m, 2048)
    out = torch.zeros_like(x)
    torch.ops.kernelpilot.mm(x, None, torch.zeros(2 * m), out)
    return bool((out == 2 * x).all())
print(call(32), call(64), call(30), *bindings.torch_op.dispatcher()._versions)
"""
ADD = b"import torch\n\n\ndef entry(*, x, wide, out, bias=None):\n    torch.add(x, x, out=out)\n"


@taskpy.needs_torch
def test_the_binding_runs_versions_from_the_dispatcher(tmp_path: Path) -> None:
    """Breaks when torch_op.py and a dispatcher of a GPU task do not fit, or tensors in host memory are not served."""
    made = contract.parse(GPU_MATMUL, at="c")
    tree = {"candidate.py": ADD}
    base = {"base.py": ADD.replace(b"entry", b"run")}
    write(generated(mm_map(), made, v001_a=tree, v002_b=tree, baseline=base).files, tmp_path)
    write(binding.binding_files(made), tmp_path)
    said = ask(taskpy.TORCH, REAL, str(tmp_path))
    assert said == "True True True ('v001_a', '') ('baseline', '')\n"


KNOWN = """
import sys, warnings
warnings.filterwarnings("ignore")
sys.path.insert(0, sys.argv[1])
import torch
import dispatch
def call(m=32, n=2048, *, step=1, shift=0, dtype=torch.float32, **more):
    x = torch.zeros(m * n * step + shift)[shift:][: m * n * step].reshape(m, n * step)[:, ::step]
    out = torch.zeros(m, n, dtype=dtype)
    try:
        dispatch.entry(x=x, wide=torch.zeros(2 * m), out=out, **more)
    except ValueError as fault:
        return str(fault)
    return {1: "version", 2: "baseline"}[int(out[0, 0])]
odd = dict(step=2), dict(shift=1), dict(dtype=torch.float64), dict(bias=torch.zeros(2048)), dict(m=30), dict(y=1)
for more in ({}, {}, *odd, *odd, {}):
    print(call(**more))
print(len(dispatch._known))
"""
MARKS = b"def entry(*, x, wide, out, bias=None):\n    out.fill_(1)\n"


@taskpy.needs_torch
def test_a_call_like_an_earlier_one_is_not_looked_at_again_and_an_odd_one_is(tmp_path: Path) -> None:
    """Breaks when what is remembered of a call serves one of other strides, alignment, dtype, shape or arguments."""
    tree, base = {"candidate.py": MARKS}, {"base.py": MARKS.replace(b"entry", b"run").replace(b"1", b"2")}
    aligned = GPU_MATMUL.replace(b"align = 4", b"align = 16")
    made = generated(mm_map(), contract.parse(aligned, at="c"), v001_a=tree, v002_b=tree, baseline=base)
    *said, known = ask(taskpy.TORCH, KNOWN, str(write(made.files, tmp_path))).splitlines()
    odd = [*["baseline"] * 5, "unknown arguments: y"]
    assert said == ["version", "version", *odd, *odd, "version"]
    assert known == "6"
