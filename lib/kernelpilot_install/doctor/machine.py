"""The machine: tools, the command, the task's Python, git's identity, GPU, profiler, disk."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_install import prerequisites, taskpython
from kernelpilot_install.changes import SHIM_MARK
from kernelpilot_install.doctor.ask import ask
from kernelpilot_install.doctor.check import Check, Here, Status
from kernelpilot_install.manifest import Book

PROBE = """
import sys
if sys.version_info < (3, 10):
    sys.exit("is older than Python 3.10")
import importlib.metadata
import importlib.util
torch = ""
if importlib.util.find_spec("torch") is not None:
    try:
        torch = importlib.metadata.version("torch")
    except Exception:
        torch = "of an unknown version"
try:
    import numpy
except Exception:
    if not torch:
        sys.exit("has neither numpy nor torch")
    print(sys.prefix, "", torch, sep="|")
else:
    print(sys.prefix, numpy.__version__, torch, sep="|")
"""
OWN = "is the tool's own"
CPU_ONLY = (
    '# CPU target: nothing to do (gpu = "cpu" under [target]). GPU target: git clone the repo on a machine with one '
    "and run kernelpilot plan and kernelpilot lock there; with that lock, kernelpilot job export works on both"
)
LOW_BYTES = 2 * 10**9
FULL_BYTES = 10**8
DRIVER = Path("/proc/driver/nvidia/params")
STATUS = Path("/proc/self/status")
CAP_SYS_ADMIN = 21
NO_NCU = (
    "ls /usr/local/cuda*/bin/ncu /opt/nvidia/nsight-compute/*/ncu  "
    "# put its folder on PATH, install Nsight Compute, or capture on another machine"
)
CLOSED = (
    "a capture ends in ERR_NVGPUCTRPERM: the driver was loaded with NVreg_RestrictProfilingToAdminUsers=1, its "
    "default, with which only a process that has CAP_SYS_ADMIN may read the GPU's counters. Correctness, timing and "
    "the gate need no counters, and a report or CSV export captured elsewhere can still be digested"
)
OPEN = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf  "
    "# by an administrator of the host, then restart it; in a container: --cap-add=SYS_ADMIN; or once: sudo ncu"
)


def tools(here: Here) -> Iterator[Check]:
    """Python, a C compiler and git."""
    absent = prerequisites.missing(prerequisites.look(here.at.path))
    for what, remedy in absent:
        yield Check(name="tools", status="fail", what=what, fix=remedy)
    if not absent:
        yield Check(name="tools", status="ok", what="Python, cc and git are here")


def command(here: Here) -> Iterator[Check]:
    """Is ``kernelpilot`` on PATH, and which clone does it start?"""
    at = here.at
    first = shutil.which("kernelpilot", path=at.path)
    ours = at.shim.is_file() and SHIM_MARK.encode() in at.shim.read_bytes()[:4096]
    owner = Book(at.manifest).manifest.clone
    install = str(at.clone / "install.sh")
    if not ours:
        what = f"{at.shim} is absent: this clone was not installed for the user"
        yield Check(name="command", status="warn", what=what, fix=shlex.quote(install))
    elif owner not in ("", str(at.clone)):
        what = f"{at.shim} belongs to the clone {owner}; this answer comes from {at.clone}"
        yield Check(
            name="command", status="warn", what=what, fix=f"{shlex.quote(install)} --replace  # or use that clone"
        )
    elif first is None:
        fix = f'export PATH="{at.shim.parent}:$PATH"'
        yield Check(name="command", status="warn", what=f"{at.shim.parent} is not on PATH", fix=fix)
    elif Path(first).resolve() != at.shim.resolve() and Path(first).parent != at.venv(dev=False) / "bin":
        fix = f'export PATH="{at.shim.parent}:$PATH"'
        yield Check(name="command", status="warn", what=f"{first} comes before {at.shim} on PATH", fix=fix)
    else:
        yield Check(name="command", status="ok", what=f"{first} starts the clone {at.clone}")


def task_python(here: Here) -> Iterator[Check]:
    """The Python that measures: the one named, the active venv's, python3, our small venv; never the tool's own."""
    fix = taskpython.how_to_make(here.env)
    if here.task_fault:
        yield Check(name="task-python", status="fail", what=here.task_fault, fix=fix)
        return
    tried = []
    for argv in [here.task_argv] if here.task_argv else candidates(here):
        words, why = _framework(argv, here)
        if words and (here.task_argv or not _is_own(words[0], here)):
            yield Check(name="task-python", status="ok", what=f"{shlex.join(argv)} has {_frameworks(*words[1:])}")
            return
        tried.append(f"{shlex.join(argv)} {why or OWN}")
    what = "; ".join(tried) or "no python3 on PATH"
    yield Check(name="task-python", status="fail", what=f"nothing can be measured here: {what}", fix=fix)


def _frameworks(numpy: str, torch: str) -> str:
    if numpy and torch:
        return f"numpy {numpy} and torch {torch}"
    return f"numpy {numpy}, no torch: tasks on numpy arrays only" if numpy else f"torch {torch}"


def candidates(here: Here) -> list[tuple[str, ...]]:
    """Pythons that may be the task's where none is named, in order."""
    active = here.env.get("VIRTUAL_ENV")
    python3 = shutil.which("python3", path=here.at.path)
    small = taskpython.made(here.env)
    found = [str(Path(active) / "bin" / "python")] if active else []
    found += [python3] if python3 else []
    return [(program,) for program in [*found, *([str(small)] if small else [])]]


def _framework(argv: tuple[str, ...], here: Here) -> tuple[list[str], str]:
    """([prefix, numpy's version, torch's version], why not); a version is empty where there is none."""
    answer = ask([*argv, "-I", "-B", "-c", PROBE], env=here.env, cwd=here.folder)
    last = answer.out.strip().rpartition("\n")[2].split("|")
    if answer.code == 0 and len(last) == 3:
        return last, ""
    return [], answer.why or answer.err.strip().rpartition("\n")[2] or f"exits {answer.code}"


def _is_own(prefix: str, here: Here) -> bool:
    own = here.at.venv(dev=False), here.at.venv(dev=True)
    return any(Path(prefix).resolve() == venv.resolve() for venv in own)


def git_identity(here: Here) -> Iterator[Check]:
    """Can the agent commit?"""
    answer = ask(["git", "var", "GIT_COMMITTER_IDENT"], env=here.env, cwd=here.folder)
    if answer.code == 0:
        yield Check(name="git-identity", status="ok", what=answer.first.rpartition(">")[0] + ">")
        return
    yield Check(
        name="git-identity",
        status="warn",
        what="git knows no name and address: kernelpilot commits under its own, but `git commit` of the agent fails",
        fix='git config --global user.name "NAME" && git config --global user.email ADDRESS',
    )


def gpu(here: Here) -> Iterator[Check]:
    """NVIDIA GPUs, without which a GPU target can be neither locked nor attempted here."""
    names, why = gpus(here)
    if names:
        yield Check(name="gpu", status="ok", what="; ".join(names))
        return
    yield Check(name="gpu", status="warn", what=f"no NVIDIA GPU ({why}): CPU targets only", fix=CPU_ONLY)


def gpus(here: Here) -> tuple[list[str], str]:
    """(names of the GPUs as nvidia-smi tells them, why there are none)."""
    answer = ask(["nvidia-smi", "-L"], env=here.env, cwd=here.folder)
    names = [line.partition(" (UUID")[0] for line in answer.out.splitlines() if line.startswith("GPU ")]
    if answer.code == 0 and names:
        return names, ""
    absent = answer.code is None and "started" in answer.why
    return [], "there is no nvidia-smi" if absent else answer.why or answer.first


def ncu(here: Here) -> Iterator[Check]:
    """Nsight Compute, and whether its counters are open to this user."""
    program = shutil.which("ncu", path=here.at.path)
    if program is None:
        what = "no ncu on PATH: profiles cannot be captured here; a CSV export made elsewhere can still be digested"
        yield Check(name="ncu", status="warn", what=what, fix=NO_NCU)
        return
    answer = ask([program, "--version"], env=here.env, cwd=here.folder)
    version = next((line for line in answer.out.splitlines() if line.startswith("Version")), answer.first)
    if answer.code != 0:
        yield Check(name="ncu", status="warn", what=f"{program} {answer.why or 'fails'}", fix=f"{program} --version")
    elif _admin_only() and not _is_admin():
        yield Check(name="ncu", status="warn", what=f"{version}, but {CLOSED}", fix=OPEN)
    else:
        yield Check(name="ncu", status="ok", what=version)


def _admin_only() -> bool:
    """Whether the driver keeps its counters to administrators."""
    return DRIVER.is_file() and "RmProfilingAdminOnly: 1" in DRIVER.read_text(encoding="utf-8", errors="replace")


def _is_admin() -> bool:
    """Whether this process has CAP_SYS_ADMIN, which root in a container often has not."""
    try:
        lines = STATUS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return os.geteuid() == 0
    held = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(held, 16) >> CAP_SYS_ADMIN & 1)


def disk(here: Here) -> Iterator[Check]:
    """Free space where the work is done."""
    free = shutil.disk_usage(here.folder).free
    status: Status = "fail" if free < FULL_BYTES else "warn" if free < LOW_BYTES else "ok"
    fix = "" if status == "ok" else f"du -sh {shlex.quote(str(here.folder))}/* | sort -h  # then make room"
    yield Check(name="disk", status=status, what=f"{free / 1e9:.1f} GB are free in {here.folder}", fix=fix)
