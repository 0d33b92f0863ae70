"""Which Python runs the task: one with numpy or torch, never the tool's own by accident."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from kernelpilot_helpers import contract
from kernelpilot_helpers.errors import BadRecord, KernelPilotError, ToolMissing
from kernelpilot_helpers.records import parse_toml
from kernelpilot_install import taskpython

VARIABLE = "KERNELPILOT_PYTHON"
LOCAL_FILE = ".kernelpilot/local.toml"
OLDEST = (3, 10)
PROBE_S = 60.0
PROBE = """
import importlib.util, json, os, sys
found = {"python": list(sys.version_info[:2]), "prefix": sys.prefix, "framework": "", "version": ""}
def torch():
    spec = importlib.util.find_spec("torch")
    said = os.path.join(os.path.dirname(spec.origin), "version.py")
    facts = {}
    if os.path.isfile(said):
        with open(said) as file:
            exec(file.read(), facts)
        return facts["__version__"], facts.get("cuda")
    module = __import__("torch")
    return module.__version__, module.version.cuda
for name in sys.argv[1:]:
    try:
        if name == "torch":
            version, cuda = torch()
            found["cuda"] = cuda or ""
        else:
            version = __import__(name).__version__
    except Exception:
        continue
    found.update(framework=name, version=version)
    break
print("\\n" + json.dumps(found))
"""
"""torch is asked by the file in which it says its version: importing it takes seconds, at each of our commands."""
EITHER = ("numpy", "torch")
GPU_FIX = (
    "export KERNELPILOT_PYTHON=$(which python3)  # with a python3 whose torch was built for CUDA; to make one: "
    "python3 -m venv ~/torch && ~/torch/bin/pip install torch && export KERNELPILOT_PYTHON=~/torch/bin/python"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPython:
    """A Python that can run the runtime. ``framework`` is numpy where it is there and will do, else torch."""

    argv: tuple[str, ...]
    framework: Literal["numpy", "torch"]
    version: str
    """The framework's own version."""
    cuda: str = ""
    """CUDA version that its torch was built for; empty without torch, and for a torch of the CPU alone."""
    note: str = ""
    """What was passed over before it, and why."""


_probed: dict[tuple[str, ...], dict[str, Any]] = {}


def explicit_argv(repo: Path, environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """What the user named: the variable first, then ``python.argv`` of ``.kernelpilot/local.toml``; else None.

    Raises BadRecord where either cannot be read.
    """
    named = environ.get(VARIABLE, "").strip()
    if named:
        try:
            return tuple(shlex.split(named))
        except ValueError as fault:
            raise BadRecord(str(fault), where=VARIABLE, fix=taskpython.how_to_make(environ)) from fault
    path = repo / LOCAL_FILE
    if not path.is_file():
        return None
    fix = 'write it as\n[python]\nargv = ["/path/to/python"]'
    data = parse_toml(path.read_bytes(), at=LOCAL_FILE, fix=fix)
    python = data.get("python", {})
    argv = python.get("argv") if isinstance(python, dict) else python
    if argv is None:
        return None
    if not isinstance(argv, list) or not argv or not all(isinstance(part, str) for part in argv):
        raise BadRecord("python.argv: want a list of strings", where=LOCAL_FILE, fix=fix)
    return tuple(argv)


def framework_for(repo: Path) -> Literal["any", "torch"]:
    """What the repo's contract needs of a Python: torch for a GPU target; any where it cannot be read."""
    try:
        made = contract.parse((repo / contract.CONTRACT_PATH).read_bytes(), at=contract.CONTRACT_PATH)
    except (OSError, KernelPilotError):
        return "any"
    return "torch" if contract.device(made.target) == "gpu" or made.call.framework == "torch" else "any"


def find(
    *,
    explicit: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    framework: Literal["any", "torch"] = "any",
) -> TaskPython:
    """The task's Python: the named one, else the active virtual environment's, ``python3`` on PATH, the small venv.

    The last is the one that ``install.sh --demo`` or the fix's own line makes; it is never preferred to the user's.
    With ``framework = "torch"`` the first one whose torch was built for CUDA, else the first with torch; ``note`` says
    what was passed over. Raises ToolMissing saying what was wrong with each one tried; a named one that fails is never
    passed over.
    """
    environ = os.environ if environ is None else environ
    wanted = ("torch",) if framework == "torch" else EITHER
    fix = GPU_FIX if framework == "torch" else taskpython.how_to_make(environ)
    if explicit:
        found, why = _try(tuple(explicit), wanted, own_allowed=True)
        if found is None:
            raise ToolMissing(f"the named Python {shlex.join(explicit)} {why}", fix=fix)
        return found
    tried: list[str] = []
    second: TaskPython | None = None
    for argv in _candidates(environ):
        found, why = _try(argv, wanted, own_allowed=False)
        if found is not None and (framework == "any" or found.cuda):
            return replace(found, note="; ".join(tried))
        second = second or found
        tried.append(f"{argv[0]} {why or 'has a torch without CUDA'}")
    if second is not None:
        return replace(second, note="; ".join(tried))
    raise ToolMissing(f"no Python with {' or '.join(wanted)}: " + ("; ".join(tried) or "no python3 on PATH"), fix=fix)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    venv = environ.get("VIRTUAL_ENV")
    if venv:
        yield (str(Path(venv) / "bin" / "python"),)
    python3 = shutil.which("python3", path=environ.get("PATH", os.defpath))
    if python3:
        yield (python3,)
    small = taskpython.made(environ)
    if small is not None:
        yield (str(small),)


def _try(argv: tuple[str, ...], wanted: tuple[str, ...], *, own_allowed: bool) -> tuple[TaskPython | None, str]:
    facts = _probe(argv, wanted)
    if "error" in facts:
        return None, facts["error"]
    if tuple(facts["python"]) < OLDEST:
        return None, f"is Python {'.'.join(map(str, facts['python']))}, older than 3.10"
    own = sys.prefix != sys.base_prefix and Path(facts["prefix"]).resolve() == Path(sys.prefix).resolve()
    if own and not own_allowed:
        return None, "is the tool's own"
    if not facts["framework"]:
        return None, "has neither numpy nor torch" if wanted == EITHER else "has no torch, which the task needs"
    cuda = str(facts.get("cuda", ""))
    return TaskPython(argv=argv, framework=facts["framework"], version=facts["version"], cuda=cuda), ""


def _probe(argv: tuple[str, ...], wanted: tuple[str, ...]) -> dict[str, Any]:
    program = shutil.which(argv[0])
    if program is None:
        return {"error": "does not exist or is not executable"}
    key = (*argv, str(Path(program).stat().st_mtime_ns), *wanted)
    if key not in _probed:
        _probed[key] = _ask([program, *argv[1:], "-I", "-c", PROBE, *wanted])
    return _probed[key]


def _ask(argv: list[str]) -> dict[str, Any]:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PROBE_S, check=False)
        facts = json.loads(done.stdout.strip().rpartition("\n")[2])
    except (OSError, ValueError, subprocess.TimeoutExpired) as fault:
        return {"error": f"cannot be asked for its packages ({type(fault).__name__})"}
    whole = isinstance(facts, dict) and {"python", "prefix", "framework", "version"} <= set(facts)
    return facts if whole else {"error": "answers nonsense"}
