"""What machine and tools this was: facts for the record, none of them used to decide anything."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from .frames import Frame


def fingerprint(frame: Frame | None, started: float, facts: dict[str, Any] | None = None) -> dict[str, Any]:
    """The fields of ``raw.env``; ``started`` is ``time.time()`` at the start of the job.

    ``facts`` are those of the GPU (``cuda.Device.facts``); with them go the versions of what compiles for it.
    """
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
        **({} if facts is None else {**facts, **gpu_tools(frame)}),
    }


def gpu_tools(frame: Frame | None) -> dict[str, Any]:
    """Versions of nvcc, Triton and the CUDA that torch was built for; empty where one is absent. Imports nothing."""
    version = getattr(getattr(frame, "xp", None), "version", None)
    return {"nvcc": nvcc(), "triton": _package("triton"), "torch_cuda": str(getattr(version, "cuda", None) or "")}


def _package(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def nvcc() -> str:
    """Release of ``nvcc`` on PATH, like ``13.0, V13.0.88``; empty without it."""
    path = shutil.which("nvcc")
    if path is None:
        return ""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", check=False)
    found = re.search(r"release (.+)", done.stdout)
    return found[1].strip() if found else ""


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
