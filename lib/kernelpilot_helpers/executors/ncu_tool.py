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
from kernelpilot_helpers.attempt.profile import CODES, Launches, Why
from kernelpilot_helpers.errors import KernelPilotError

PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
SECTIONS = (
    "SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables",
    "SchedulerStats", "WarpStateStats", "InstructionStats", "LaunchStats", "Occupancy", "SourceCounters",
    "WorkloadDistribution", "SpeedOfLight_RooflineChart", "SpeedOfLight_HierarchicalTensorRooflineChart",
)  # fmt: skip
"""What every class of a digest and its roofline can be decided from; fewer passes than the full set has."""
ASK_S = 30.0
WORDS = 600
VERSION = re.compile(r"Version (\d+(?:\.\d+)+)")
LOG_BYTES = 1 << 18
"""Of each end of ncu's log: its first errors and its last words."""
_SAID = {mark: re.compile(rf"^=={mark}==\s*(.*)$", re.MULTILINE) for mark in ("ERROR", "WARNING")}
_USUAL = ("Note: Running with unmodified", "Unable to access the following")
"""Warnings of captures that are well."""
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
    chosen = ["--kernel-name", f"regex:^({names})$"] if names else []
    if launches.skip:
        chosen += ["--launch-skip", str(launches.skip)]
    return [
        tool.path, "--clock-control", launches.clock_control, "--cache-control", launches.cache_control, *what,
        "--import-source", "on", "--target-processes", "all", "--profile-from-start", "off", *chosen,
        "--launch-count", str(launches.count), "-f", "-o", str(report.with_suffix("")).replace("%", "%%"), *program,
    ]  # fmt: skip


def run(
    command: Sequence[str], report: Path, *, env: Mapping[str, str], cwd: Path, log: Path, limit: float,
    done: Path | None = None,
) -> Ended:  # fmt: skip
    """Run ncu to its end or its limit, then kill whatever it started. A report counts only after a good end.

    ``done`` is what the program leaves when it came to its end: ncu's status alone does not say that.
    """
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
            return Ended(seconds=0.0, why=Why(code="ncu.failed", words=f"ncu cannot be started: {fault.strerror}"))
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            late, code = True, -1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            sweep(env.get("TMPDIR", ""))
    seconds = time.monotonic() - started
    found = next((path for path in forms(report) if path.is_file() and path.stat().st_size), None)
    ended = code == 0 if done is None else done.exists()
    why = _why(code, ends(log), limit if late else None, found=found is not None and ended)
    return Ended(seconds=seconds, why=why, report=found if why is None else None)


def sweep(private: str) -> None:
    """End every process that still has this run's private TMPDIR: a daemon leaves its group, not its environment."""
    if not private:
        return
    mark = f"TMPDIR={private}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(entry.name) != os.getpid() and mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)


def ends(log: Path) -> str:
    """Both ends of a log; all of a short one."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            head = file.read(LOG_BYTES)
            file.seek(max(len(head), size - LOG_BYTES))
            return (head + file.read()).decode(errors="replace")
    except OSError:
        return ""


def forms(report: Path) -> tuple[Path, Path]:
    """The names under which a report may come out."""
    return report.with_suffix(".ncu-rep"), report.with_suffix(".ncu-repz")


def _why(code: int, said: str, late: float | None, *, found: bool) -> Why | None:
    if late is not None:
        return Why(code="ncu.timeout", words=f"did not end within {late:g} s and was killed; {clean(said)}".strip("; "))
    named = _code(said)
    if found and named != "ncu.permission":
        return None
    if named == "ncu.failed" and code == 0:
        return Why(code="ncu.no_report", words=clean(said) or "ncu ended well and left no report")
    words, pattern = clean(said), CODES[named]
    hit = pattern.search(said) if pattern else None
    if hit and pattern and not pattern.search(words):
        words = f"{hit[0]}; {words}"[:WORDS]
    return Why(code=named, words=words or f"ncu ended with status {code} and said nothing")


def _code(said: str) -> str:
    return next((code for code, pattern in CODES.items() if pattern and pattern.search(said)), "ncu.failed")


def clean(said: str) -> str:
    """The tool's errors and then its warnings in one line, without folders; its last lines where it marks none."""
    marked = [text.strip() for pattern in _SAID.values() for text in pattern.findall(said) if text.strip()]
    lines = [text for text in marked if not text.startswith(_USUAL)] or said.strip().splitlines()[-4:]
    text = "; ".join(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip()))
    return _PATH.sub(lambda hit: hit[1] or "...", text)[:WORDS]
