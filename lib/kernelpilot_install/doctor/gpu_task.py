"""A repo whose target is a GPU: what this machine can and cannot do for it, and what a build finds here."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelpilot_install.doctor.ask import ask
from kernelpilot_install.doctor.check import Check, Here
from kernelpilot_install.doctor.machine import candidates, gpus

PROBE = """
import ctypes, glob, importlib.metadata, importlib.util, json, os, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except Exception:
        return ""
found = {name: version(name) for name in ("torch", "triton", "ninja")}
spec = importlib.util.find_spec("torch")
said = os.path.join(os.path.dirname(spec.origin), "version.py") if spec and spec.origin else ""
facts = {}
if os.path.isfile(said):
    with open(said) as file:
        exec(file.read(), facts)
found["cuda"] = facts.get("cuda") or ""
names = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
homes = [os.path.join(entry or ".", "nvidia", "*") for entry in sys.path]
homes += [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)] + ["/usr/local/cuda"]
places = [os.path.join(home, sub, name) for home in homes for sub in ("lib", "lib64") for name in names]
held = [path for place in places for path in sorted(glob.glob(place))]
def loads(name):
    try:
        return bool(ctypes.CDLL(name))
    except OSError:
        return False
found["nvrtc"] = (held + [name + " (by the loader)" for name in names if not held and loads(name)] + [""])[0]
print("\\n" + json.dumps(found))
"""
CANNOT = "not lock, try, verify, bench, tune or attempt"
CAN = "this machine can plan, build, export and import jobs, and judge (gate, report)"
TORCH_FIX = (
    "export KERNELPILOT_PYTHON=$(which python3)  # with a python3 whose torch was built for CUDA; to make one: "
    "python3 -m venv ~/torch && ~/torch/bin/pip install torch && export KERNELPILOT_PYTHON=~/torch/bin/python"
)


@dataclass(frozen=True, kw_only=True)
class _Python:
    argv: tuple[str, ...]
    facts: dict[str, str] = field(default_factory=dict)

    def has(self, name: str) -> str:
        return str(self.facts.get(name) or "")


def able(here: Here) -> Iterator[Check]:
    """One warning for each thing without which a GPU task cannot be measured here, then what a build finds."""
    if not here.gpu_target:
        return
    python = _python(here)
    name = shlex.join(python.argv) or "no python3"
    if not gpus(here)[0]:
        what = f"the contract's target.gpu is {here.gpu_target!r}, and no NVIDIA GPU is here: {CAN}, {CANNOT}"
        yield Check(name="gpu-task", status="warn", what=what, fix=_elsewhere(here))
    elif not python.has("cuda"):
        lacks = "has a torch without CUDA" if python.has("torch") else "has no torch"
        what = f"the task's Python {name} {lacks}: {CAN}, {CANNOT}"
        yield Check(name="gpu-task", status="warn", what=what, fix=TORCH_FIX)
    else:
        what = f"{name} has torch {python.has('torch')} for CUDA {python.has('cuda')}: this machine can measure"
        yield Check(name="gpu-task", status="ok", what=what)
    yield from _tools(here, python, name)


def _tools(here: Here, python: _Python, name: str) -> Iterator[Check]:
    """Compilers: none of them is needed by every candidate, so that none is there is no fault."""
    nvcc = shutil.which("nvcc", path=here.at.path) or ""
    ninja = shutil.which("ninja", path=here.at.path) or (python.has("ninja") and f"{python.has('ninja')} in {name}")
    found = {
        "nvcc": (nvcc, "on PATH: CUDA C++ is compiled through NVRTC, and torch extensions are not"),
        "nvrtc": (python.has("nvrtc"), f"beside {name} or in /usr/local/cuda: CUDA C++ is compiled through nvcc"),
        "ninja": (ninja, "here: torch extensions are not built"),
        "triton": (python.has("triton") and f"{python.has('triton')} in {name}", f"in {name}: no Triton candidates"),
    }
    for tool, (where, without) in found.items():
        yield Check(name=tool, status="ok", what=where or f"none {without}")


def _python(here: Here) -> _Python:
    """The named Python; else the first whose torch was built for CUDA, the first with torch, the first."""
    asked = [_asked(argv, here) for argv in ([here.task_argv] if here.task_argv else candidates(here))]
    ranked = sorted(asked, key=lambda p: (not p.has("cuda"), not p.has("torch")))
    return ranked[0] if ranked else _Python(argv=())


def _asked(argv: tuple[str, ...], here: Here) -> _Python:
    answer = ask([*argv, "-I", "-B", "-c", PROBE], env=here.env, cwd=here.folder)
    try:
        facts = json.loads(answer.out.strip().rpartition("\n")[2])
    except ValueError:
        facts = {}
    return _Python(argv=argv, facts=facts if isinstance(facts, dict) else {})


def _elsewhere(here: Here) -> str:
    root = here.root or here.folder
    steps = f"git clone HOST:{shlex.quote(str(root))} && cd {shlex.quote(root.name)}"
    return (
        f"{steps} && kernelpilot plan && kernelpilot lock  # on a machine with an NVIDIA GPU, HOST being this one; "
        "git pull then brings the lock here, and kernelpilot job export works on both"
    )
