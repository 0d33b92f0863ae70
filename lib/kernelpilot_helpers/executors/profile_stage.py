"""Where a version is profiled: the program without a profiler, then the same program below ncu, on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from kernelpilot_helpers import proc
from kernelpilot_helpers.errors import KernelPilotError, Refused
from kernelpilot_helpers.executors import absent, ncu_tool
from kernelpilot_helpers.executors.deploy import deploy
from kernelpilot_helpers.executors.local import task_env
from kernelpilot_helpers.executors.task_python import TaskPython
from kernelpilot_helpers.policy import POLICY

WARM_UP, CALLS = 3, 3
LOG, ANSWER, DONE = "target.log", "target.json", "done"
LOCK_SHARE = 0.5
"""Of a program's limit: the longest wait for the GPU, so that a busy GPU is told and no time-out."""
LOG_CHARS = 3000


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of one call, as the framework's profiler saw it; empty lists and zeros where it does not say."""

    name: str
    ns: int
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    registers: int = 0
    shared: int = 0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Static resources of one kernel that the version built (``raw.KernelUsage``)."""

    name: str
    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    stack: int = 0


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What the version did without ncu: the device, what one call launched, what was built."""

    ok: bool
    gpu: str = ""
    driver: str = ""
    framework: str = ""
    arch: str = ""
    sm_count: int = 0
    kernels: tuple[Kernel, ...] = ()
    usage: tuple[Usage, ...] = ()
    stage: str = ""
    log: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """One version on one case in a job directory; ``folder`` holds its build and answers."""

    jobdir: Path
    arm: str
    case_id: str
    folder: Path
    limit: float
    """Seconds for each of its programs."""
    source: Path | None = None
    """The version's own folder: line tables name its files relative to it."""


class Stage(Protocol):
    """Runs the programs of a scene."""

    @property
    def marks(self) -> bool:
        """Whether its program leaves ``DONE`` in the scene's folder at its end."""
        ...

    def held(self) -> contextlib.AbstractContextManager[object]:
        """The device, against other measuring commands of this user. Raises Busy."""
        ...

    def rehearse(self, scene: Scene) -> Rehearsal:
        """Build the version, call it, say what it launched. Raises Refused without a GPU."""
        ...

    def program(self, scene: Scene) -> tuple[list[str], Mapping[str, str]]:
        """(argv, environment) of the program to start below ncu."""
        ...


class LocalStage:
    """A Stage in the task's Python on this machine."""

    def __init__(self, python: TaskPython, lock: Path, *, runtime: Path | None = None) -> None:
        self._python = python
        self._lock = lock
        self._runtime = deploy() if runtime is None else runtime

    marks = True

    def held(self) -> contextlib.AbstractContextManager[object]:
        """See Stage."""
        return proc.file_lock(self._lock, timeout_s=POLICY.lock_s, what="the device")

    def rehearse(self, scene: Scene) -> Rehearsal:
        """See Stage."""
        env = self._env(scene)
        log = scene.folder / LOG
        with log.open("wb") as out:
            try:
                process = subprocess.Popen(
                    self._argv(scene, "rehearse"), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
                    cwd=scene.folder, start_new_session=True,
                )  # fmt: skip
            except OSError as fault:
                return Rehearsal(ok=False, stage="python", log=f"the task's Python cannot be started: {fault.strerror}")
            late = False
            try:
                process.wait(scene.limit)
            except subprocess.TimeoutExpired:
                late = True
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                ncu_tool.sweep(env["TMPDIR"])
        if late:
            return Rehearsal(ok=False, stage="candidate", log=f"did not end within {scene.limit:g} s")
        return read(scene)

    def program(self, scene: Scene) -> tuple[list[str], Mapping[str, str]]:
        """See Stage."""
        for name in (ANSWER, DONE):
            (scene.folder / name).unlink(missing_ok=True)
        return self._argv(scene, "capture"), self._env(scene)

    def _argv(self, scene: Scene, mode: str) -> list[str]:
        return [
            *self._python.argv, "-I", str(self._runtime), "--profile", mode, str(scene.jobdir), scene.arm,
            scene.case_id, str(scene.folder), str(WARM_UP), str(CALLS),
            f"{min(POLICY.lock_s, LOCK_SHARE * scene.limit):g}", str(os.getpid()),
        ]  # fmt: skip

    def _env(self, scene: Scene) -> dict[str, str]:
        home = scene.folder / "home"
        home.mkdir(exist_ok=True)
        return task_env(os.environ, str(home))


def read(scene: Scene) -> Rehearsal:
    """The program's answer. Raises Refused where it says that there is no GPU for it."""
    try:
        said: dict[str, Any] = json.loads((scene.folder / ANSWER).read_bytes())
        found = msgspec.convert(said, Rehearsal, strict=True)
    except (OSError, ValueError, msgspec.ValidationError):
        found = Rehearsal(ok=False, stage="candidate", log=tail(scene.folder / LOG) or "it left no answer")
    if found.stage == "gpu":
        code = found.log.partition(":")[0]
        fix = absent.FIXES.get(code, "nvidia-smi  # what does this machine have?")
        raise Refused(f"no GPU to profile on: {found.log.splitlines()[0]}", where="contract.toml: target.gpu", fix=fix)
    return found


def fault(scene: Scene) -> str:
    """How the program below ncu failed, in its own last words; empty where it came to its end or never began.

    Raises Refused where there was no GPU for it: that is no failure of ncu.
    """
    if (scene.folder / DONE).exists() or not (scene.folder / ANSWER).exists():
        return ""
    words = read(scene).log.strip().splitlines()
    return words[-1] if words else ""


def tail(path: Path) -> str:
    """The end of a log."""
    try:
        return path.read_text(errors="replace").strip()[-LOG_CHARS:]
    except OSError:
        return ""


def require(found: Rehearsal, label: str) -> None:
    """Raises KernelPilotError with the version's own words when it did not run."""
    if not found.ok:
        words = found.log.strip().splitlines()
        what = f"{label} did not run, so nothing can be profiled: {words[-1] if words else found.stage}"
        raise KernelPilotError(what, where=label, fix="kernelpilot verify  # does it still run on this machine?")


def line(argv: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """A command as it may be committed: known paths by their repo-relative names, other folders left out.

    >>> line(["/opt/x/ncu", "-o", "/r/.kernelpilot/p/report", "/usr/bin/python3", "-I"], {"/r/": ""})
    ('ncu', '-o', '.kernelpilot/p/report', 'python3', '-I')
    """
    out = []
    for part in argv:
        word = part
        for path, name in names.items():
            word = word.replace(path, name)
        out.append(word.rpartition("/")[2] if word.startswith("/") else word)
    return tuple(out)
