"""What machine and tools this was: facts for the record, none of them used to decide anything."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from .frames import Frame


def fingerprint(frame: Frame | None, started: float) -> dict[str, Any]:
    """The fields of ``raw.env``; ``started`` is ``time.time()`` at the start of the job."""
    return {
        "python": platform.python_version(),
        "framework_version": frame.version if frame else "",
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "boot_id": _read("/proc/sys/kernel/random/boot_id"),
        "compiler": compiler(),
        "clock_ns": clock_ns(),
        "started": started,
        "seconds": time.time() - started,
    }


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _cpu() -> str:
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith(("model name", "Model")):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def compiler() -> str:
    """First line of ``cc --version``; empty without a compiler."""
    cc = shutil.which("cc")
    if cc is None:
        return ""
    done = subprocess.run([cc, "--version"], capture_output=True, text=True, errors="replace", check=False)
    return (done.stdout.splitlines() or [""])[0]


def clock_ns() -> int:
    """Smallest step of ``time.perf_counter_ns`` seen in a short loop, in nanoseconds."""
    clock = time.perf_counter_ns
    steps = []
    for _ in range(50):
        before = clock()
        after = clock()
        while after == before:
            after = clock()
        steps.append(after - before)
    return min(steps)
