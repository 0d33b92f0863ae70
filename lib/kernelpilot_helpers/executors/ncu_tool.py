"""Nsight Compute as a program: is it here, which version, one bounded run, and why it gave no report."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelpilot_helpers import proc
from kernelpilot_helpers.attempt.profile import Launches, Why
from kernelpilot_helpers.errors import KernelPilotError

PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
SECTIONS = (
    "SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables",
    "SchedulerStats", "WarpStateStats", "InstructionStats", "LaunchStats", "Occupancy", "SourceCounters",
    "WorkloadDistribution",
)  # fmt: skip
"""What every class of a digest can be decided from; about half of the passes of the full set."""
ASK_S = 30.0
WORDS = 600
VERSION = re.compile(r"Version (\d+(?:\.\d+)+)")
CODES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ncu.permission", re.compile(r"ERR_NVGPUCTRPERM|permission to access NVIDIA GPU Performance Counters", re.I)),
    ("ncu.library", re.compile(r"LibraryNotLoaded|Failed to load .*library|libcuda.* not found", re.I)),
    ("ncu.busy", re.compile(r"ResourceUnavailable|driver resource was unavailable|another.{0,40}profil", re.I)),
    ("ncu.mismatch", re.compile(r"driver.{0,60}(?:not supported|too old|incompatible|mismatch)|unsupported driver"
                                r"|InsufficientDriver|(?:GPU|device).{0,40}not supported", re.I)),
    ("ncu.no_kernels", re.compile(r"No kernels were profiled|no kernel.{0,40}match", re.I)),
)  # fmt: skip
"""Reason code and the tool's words for it, the first that fits; every other failure is ``ncu.failed``."""
_SAID = re.compile(r"^==(?:ERROR|WARNING)==\s*(.*)$", re.MULTILINE)
_PATH = re.compile(r"(?<![\w.:/])/(?:[\w.@+-]+/)+([\w.@+-]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """An ncu that answers."""

    path: str
    version: str
    sections: tuple[str, ...] = ()
    """Ids that it lists; empty where it would not say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """One run: ``why`` is None where it left a report."""

    seconds: float
    why: Why | None
    report: Path | None = None
    """What it wrote: newer versions pack the report and call it ``.ncu-repz``."""


def find(environ: Mapping[str, str]) -> Tool | Why:
    """ncu on PATH or in the toolkit's usual places, asked for its version and sections; else why there is none."""
    path = shutil.which("ncu", path=environ.get("PATH", os.defpath)) or shutil.which(
        "ncu", path=os.pathsep.join(PLACES)
    )
    if path is None:
        return Why(code="ncu.missing", words="ncu is not on PATH, nor where the CUDA toolkit puts it")
    try:
        said = proc.run([path, "--version"], env=environ, timeout=ASK_S)
        listed = proc.run([path, "--list-sections"], env=environ, timeout=ASK_S)
    except KernelPilotError as fault:
        return Why(code="ncu.failed", words=clean(fault.what))
    match = VERSION.search(said.out)
    if said.code != 0 or match is None:
        words = clean(said.err or said.out) or f"ncu --version ended with status {said.code}"
        return Why(code=_code(said.err + said.out), words=words)
    names = [line.split()[0] for line in listed.out.splitlines() if line.split()]
    known = tuple(name for name in SECTIONS if name in names)
    return Tool(path=path, version=match[1], sections=known)


def argv(tool: Tool, launches: Launches, report: Path, program: Sequence[str]) -> list[str]:
    """The whole command line: the chosen launches of ``program``, between its profiler start and stop alone."""
    what = [part for name in tool.sections for part in ("--section", name)]
    if launches.collected == "full" or not what:
        what = ["--set", "full"]
    names = "|".join(re.escape(name) for name in launches.kernels)
    chosen = ["--kernel-name", f"regex:^(?:{names})$"] if names else []
    return [
        tool.path, "--clock-control", launches.clock_control, "--cache-control", launches.cache_control, *what,
        "--import-source", "on", "--target-processes", "application-only", "--profile-from-start", "off", *chosen,
        "--launch-skip", str(launches.skip), "--launch-count", str(launches.count), "-f", "-o",
        str(report.with_suffix("")), *program,
    ]  # fmt: skip


def run(command: Sequence[str], report: Path, *, env: Mapping[str, str], cwd: Path, log: Path, limit: float) -> Ended:
    """Run ncu to its end or its limit, then kill its whole process group. A report counts only after a good end."""
    for path in forms(report):
        path.unlink(missing_ok=True)
    started = time.monotonic()
    late = False
    with log.open("wb") as out:
        try:
            process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=dict(env), cwd=cwd,
                start_new_session=True,
            )  # fmt: skip
        except OSError as fault:
            return Ended(seconds=0.0, why=Why(code="ncu.missing", words=f"ncu cannot be started: {fault.strerror}"))
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            late, code = True, -1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    seconds = time.monotonic() - started
    said = log.read_text(errors="replace")
    found = next((path for path in forms(report) if path.is_file() and path.stat().st_size), None)
    why = _why(code, said, limit if late else None, found=found is not None)
    return Ended(seconds=seconds, why=why, report=found if why is None else None)


def forms(report: Path) -> tuple[Path, Path]:
    """The names under which a report may come out."""
    return report.with_suffix(".ncu-rep"), report.with_suffix(".ncu-repz")


def _why(code: int, said: str, late: float | None, *, found: bool) -> Why | None:
    if late is not None:
        return Why(code="ncu.timeout", words=f"did not end within {late:g} s and was killed; {clean(said)}".strip("; "))
    named = _code(said)
    if found and code == 0 and named != "ncu.permission":
        return None
    if named == "ncu.failed" and code == 0:
        return Why(code="ncu.no_report", words=clean(said) or "ncu ended well and left no report")
    return Why(code=named, words=clean(said) or f"ncu ended with status {code} and said nothing")


def _code(said: str) -> str:
    return next((code for code, pattern in CODES if pattern.search(said)), "ncu.failed")


def clean(said: str) -> str:
    """The tool's own errors and warnings in one line, without folders; its last lines where it marks none."""
    marked = [text.strip() for text in _SAID.findall(said) if text.strip()]
    lines = [t for t in marked if not t.startswith("Note: Running with unmodified")] or said.strip().splitlines()[-4:]
    text = "; ".join(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip()))
    return _PATH.sub(lambda hit: hit[1] or "...", text)[:WORDS]
