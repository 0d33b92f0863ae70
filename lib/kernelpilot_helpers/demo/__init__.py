"""The whole job on the CPU with a scripted writer, through the ordinary commands: no GPU, no model, no account."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpilot_helpers import policy
from kernelpilot_helpers.demo.script import ACTS, Act
from kernelpilot_helpers.errors import KernelPilotError, Refused

VARIANTS = Path(__file__).with_name("variants")
TASK = "add_rmsnorm"
MAX_PAIRS = 10
Show = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """One act and what the referee said of it."""

    act: Act
    version: str
    verdict: str
    reason: str
    speedup: float | None
    vs_baseline: float | None
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether a sound referee says this."""
        return self.verdict in self.act.expect and self.reason.startswith(self.act.reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class Demo:
    """The finished demo."""

    directory: Path
    played: tuple[Played, ...]
    report: Path
    lock: dict[str, Any]
    seconds: float

    @property
    def state(self) -> str:
        """``refereed`` when every verdict is the one that a sound referee gives, else ``differs``."""
        return "refereed" if all(p.as_expected for p in self.played) else "differs"

    @property
    def next(self) -> str:
        """The command to type now."""
        beside = Path(sys.executable).with_name("kernelpilot")
        name = str(beside) if shutil.which("kernelpilot") is None and beside.exists() else "kernelpilot"
        return f"cd {shlex.quote(str(self.directory))} && {name} ledger check"


def play(directory: Path, *, show: Show, acts: Sequence[Act] = ACTS) -> Demo:
    """Scaffold, plan, lock, attempt every act, report. Raises KernelPilotError when a command fails."""
    directory = directory.resolve()
    if directory.exists() and any(directory.iterdir()):
        raise Refused("is not empty", where=str(directory), fix="name a new folder: kernelpilot demo --dir DIR")
    started = time.monotonic()
    show("scaffold: a standalone repo for a row-wise fused add + RMSNorm (float32)")
    _run(
        ["scaffold", str(directory), "--task", TASK, "--op", "norm", "--gpu", "cpu", "--parent-ok"],
        cwd=directory.parent,
    )
    _run(["plan"], cwd=directory)
    show("lock: task audit and A/A floor")
    lock = _run(["lock"], cwd=directory)
    show(f"locked: {lock['mutation_score']} wrong outputs caught; A/A half-width {_percent(lock)}")
    played: list[Played] = []
    for act in acts:
        played.append(_attempt(directory, act, show))
    path = Path(_run(["report"], cwd=directory)["report"])
    return Demo(directory=directory, played=tuple(played), report=path, lock=lock, seconds=time.monotonic() - started)


def _percent(lock: dict[str, Any]) -> str:
    floor = lock.get("floor")
    return "n/a" if floor is None else f"{floor['half_width'] * 100:.2f} %"


def _attempt(directory: Path, act: Act, show: Show) -> Played:
    show(f"{act.slug}: {act.motivation}")
    started = time.monotonic()
    shutil.copytree(
        VARIANTS / act.slug,
        directory / "src" / TASK / "variants" / act.slug,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    argv = ["attempt", act.slug, "--motivation", act.motivation, "--max-pairs", str(MAX_PAIRS)]
    said = _run(argv, cwd=directory)
    show(f"  {said['version']}: {said['verdict']} ({said['reason']})")
    return Played(
        act=act,
        version=said["version"],
        verdict=said["verdict"],
        reason=said["reason"],
        speedup=(said["geomean"] or {}).get("speedup"),
        vs_baseline=(said["vs_baseline"] or {}).get("speedup"),
        seconds=time.monotonic() - started,
    )


def _run(argv: list[str], *, cwd: Path) -> dict[str, Any]:
    """One ordinary command, as a user would type it; its JSON object."""
    cwd.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-m", "kernelpilot_helpers", *argv, "--json"],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=policy.POLICY.job_s * 3,
        check=False,
    )
    try:
        data = json.loads(done.stdout)
    except ValueError:
        data = None
    if done.returncode != 0 or not isinstance(data, dict):
        words = (done.stderr or done.stdout).strip()
        fix = f"cd {cwd} && kernelpilot {' '.join(argv[:2])}"
        raise KernelPilotError(f"kernelpilot {argv[0]} failed: {words}", where=str(cwd), fix=fix)
    return data


__all__ = ["ACTS", "Act", "Demo", "Played", "play"]
