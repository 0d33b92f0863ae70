"""Building and capturing the micro-kernels of tests/gpu/microkernels; part of scripts/digest_benchmark.py."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from threading import Lock
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from tests.gpu.microkernels.table import BY_NAME, FOLDER, KERNELS, Micro  # noqa: E402 - after the path of the tests

SETS = ("full", "basic", "stalls", "metrics")
PLAIN = (
    "gpu__time_duration.sum",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "smsp__inst_executed.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "launch__registers_per_thread",
    "sm__cycles_active.avg",
)
"""Six metrics without a memory figure: whoever names a class from them guesses."""
WHAT = {
    "full": ("--set", "full", "--import-source", "on"),
    "basic": ("--set", "basic"),
    "stalls": ("--set", "basic", "--section", "WarpStateStats"),
    "metrics": ("--metrics", ",".join(PLAIN)),
}
PAGES = {
    "base": ("--page", "raw", "--csv", "--print-units", "base"),
    "auto": ("--page", "raw", "--csv", "--print-units", "auto"),
    "details": ("--page", "details", "--csv", "--print-units", "base"),
}
ENDS = (".ncu-rep", ".ncu-repz")
"""How ncu ends the name of a report, by version."""
BUILD_S, RUN_S, CAPTURE_S, EXPORT_S = 240.0, 60.0, 120.0, 60.0


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One capture: which kernel, which metrics, and its number where the same is captured again."""

    micro: Micro
    what: str
    again: int = 0

    @property
    def stem(self) -> str:
        """File name without its end: ``kernel.set`` or ``kernel.set.rN``."""
        return f"{self.micro.name}.{self.what}" + (f".r{self.again}" if self.again else "")

    @property
    def partial(self) -> str:
        """Name while it is made: without a dot, because ncu adds the end that its version writes."""
        return self.stem.replace(".", "-") + "-partial"

    @property
    def launches(self) -> int:
        """A full capture of a case holds several launches; one is enough for the rest."""
        return self.micro.launches if self.what == "full" and not self.again else 1


def program(micro: Micro, out: Path) -> Path:
    return out / "bin" / Path(micro.source).stem


def build_argv(micro: Micro, out: Path, flags: Sequence[str], arch: str = "native") -> list[str]:
    """How one program is built."""
    source = str(FOLDER / micro.source)
    return ["nvcc", "-O3", "-lineinfo", f"-arch={arch}", "-std=c++17", "-o", str(program(micro, out)), source, *flags]


def ncu_argv(shot: Shot, out: Path) -> list[str]:
    """How one capture is made. Two warm-up launches of the kernel are skipped; the clocks are left alone."""
    return [
        "ncu", "--clock-control", "none", "--target-processes", "application-only", *WHAT[shot.what],
        "--kernel-name", f"regex:{shot.micro.kernel}", "--launch-skip", "2", "--launch-count", str(shot.launches),
        "--force-overwrite", "--export", str(out / shot.partial),
        str(program(shot.micro, out)), shot.micro.arm,
    ]  # fmt: skip


def export_argv(report: Path, page: str) -> list[str]:
    return ["ncu", "--import", str(report), *PAGES[page]]


def plan(chosen: Sequence[Micro], sets: Sequence[str], recapture: int) -> list[Shot]:
    """Every capture, in an order in which a cut of the budget loses the least: full ones of cases, then of twins, then
    the sets that hold less (of cases only), then the repeats."""
    cases = [m for m in chosen if m.classes]
    shots = [Shot(micro=m, what="full") for m in (*cases, *(m for m in chosen if not m.classes)) if "full" in sets]
    shots += [Shot(micro=m, what=what) for what in SETS[1:] if what in sets for m in cases]
    steady = [m for m in cases if m.name in STEADY] or cases[:1]
    return shots + [Shot(micro=m, what="full", again=n) for n in range(1, recapture + 1) for m in steady]


STEADY = ("strided_load", "smem_column", "low_occ_smem", "fma_serial", "pointer_chase")
"""Kernels that are captured again: one of each kind of limit."""


def missing() -> list[str]:
    """What this machine lacks to capture; each with what to do."""
    lacks = [
        f"{tool}: not on PATH (it comes with the CUDA toolkit)" for tool in ("nvcc", "ncu") if not shutil.which(tool)
    ]
    try:
        seen = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        seen = ""
    return lacks if "GPU 0" in seen else [*lacks, "an NVIDIA GPU: `nvidia-smi -L` names none"]


def _run(argv: Sequence[str], limit_s: float, **more: Any) -> tuple[int, str, str]:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit_s, check=False, **more)
    except subprocess.TimeoutExpired:
        return 124, "", f"no end after {limit_s:.0f} s"
    return done.returncode, done.stdout, done.stderr


def build(micro: Micro, out: Path, arch: str) -> str:
    """Build one program unless it is newer than its sources. Returns what went wrong, or nothing."""
    made = program(micro, out)
    sources = (FOLDER / micro.source, FOLDER / "common.cuh")
    if made.exists() and made.stat().st_mtime > max(p.stat().st_mtime for p in sources):
        return ""
    made.parent.mkdir(parents=True, exist_ok=True)
    said = ""
    for flags in (micro.flags, micro.fallback) if micro.fallback else (micro.flags,):
        code, stdout, stderr = _run(build_argv(micro, out, flags, arch), BUILD_S)
        if code == 0:
            return ""
        said = (stdout + stderr).strip()[-800:]
    return f"{micro.source}: {said}"


def build_all(chosen: Sequence[Micro], out: Path, *, jobs: int, arch: str = "native") -> dict[str, str]:
    """Build the programs side by side; returns the faults by source."""
    by_source = {m.source: m for m in chosen}
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        faults = pool.map(lambda m: (m.source, build(m, out, arch)), by_source.values())
    return {source: said for source, said in faults if said}


def times(chosen: Sequence[Micro], out: Path, left: Callable[[], float]) -> dict[str, Any]:
    """Arms of each program timed in turn in one process; written to times.json. What was timed before is kept."""
    path = out / "times.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for source in dict.fromkeys(m.source for m in chosen):
        stem = Path(source).stem
        if "arms" in known.get(stem, {}) or left() <= 0:
            continue
        binary = out / "bin" / stem
        if not binary.exists():
            known[stem] = {"fault": "not built"}
            continue
        code, stdout, stderr = _run([str(binary), "time"], min(RUN_S, max(1.0, left())))
        try:
            known[stem] = {**json.loads(stdout), "code": code}
        except ValueError:
            known[stem] = {"fault": stderr.strip()[-400:] or f"ended with {code}"}
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return known


def capture(shot: Shot, out: Path, gpu: str) -> str:
    """Make one report; a file under its final name is complete. Returns what went wrong, or nothing."""
    if any((out / f"{shot.stem}{end}").exists() for end in ENDS):
        return ""
    own = out / "tmp" / f"gpu{gpu or 0}"  # ncu serialises by a lock file in TMPDIR: one for each GPU
    own.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "TMPDIR": str(own), **({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {})}
    code, stdout, stderr = _run(ncu_argv(shot, out), CAPTURE_S, env=env)
    made = next((p for end in ENDS if (p := out / f"{shot.partial}{end}").exists()), None)
    if code or made is None:
        if made:
            made.unlink()
        found = re.findall(r"==(?:ERROR|WARNING)== .*", stdout + stderr)
        return f"{shot.stem}: {'; '.join(found) or (stdout + stderr).strip()[-300:] or f'ended with {code}'}"
    made.rename(out / f"{shot.stem}{made.suffix}")
    return ""


def export(report: Path, page: str) -> str:
    """Write one CSV page beside the report. Returns what went wrong, or nothing."""
    final = report.with_suffix(f".{page}.csv")
    if final.exists():
        return ""
    code, stdout, stderr = _run(export_argv(report, page), EXPORT_S)
    if code or not stdout.strip():
        return f"{final.name}: {stderr.strip()[-300:] or f'ended with {code}'}"
    part = final.with_suffix(".part")
    part.write_text(stdout)
    part.rename(final)
    return ""


def environment(gpus: Sequence[str], argv: Sequence[str]) -> dict[str, Any]:
    """What was measured with; no host name and no path."""
    ask = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    versions = {tool: _run([tool, "--version"], 30)[1].strip().splitlines()[-1:] for tool in ("ncu", "nvcc")}
    gpu = _run(ask, 30)[1].strip().splitlines()[:1]
    example = ncu_argv(Shot(micro=KERNELS[0], what="full"), Path("DIR"))
    return {"gpu": gpu, "gpus": len(gpus), **versions, "arguments": list(argv), "ncu_command": example}


def names(text: str) -> list[Micro]:
    """The kernels that ``--only`` names, with their twins; all for an empty text."""
    wanted = [n for n in text.split(",") if n]
    if unknown := [n for n in wanted if n not in BY_NAME]:
        raise SystemExit(f"no such kernel: {', '.join(unknown)}; there are: {', '.join(BY_NAME)}")
    twins = [BY_NAME[n].twin for n in wanted]
    return [m for m in KERNELS if not wanted or m.name in wanted or m.name in twins]


class Lanes:
    """One worker a GPU draws shots in order; exports run beside them on the CPU."""

    def __init__(self, shots: Sequence[Shot], out: Path, *, jobs: int, left: Callable[[], float]) -> None:
        self.queue: Queue[Shot] = Queue()
        for shot in shots:
            self.queue.put(shot)
        self.out, self.left = out, left
        self.pool = ThreadPoolExecutor(max_workers=jobs)
        self.exports: list[Future[str]] = []
        self.faults: list[str] = []
        self.seconds: dict[str, float] = {}
        self.cut: list[str] = []
        self.lock = Lock()

    def work(self, gpu: str) -> None:
        """Draw until nothing is left or time is up."""
        while True:
            try:
                shot = self.queue.get_nowait()
            except Empty:
                return
            if self.left() <= 0:
                with self.lock:
                    self.cut.append(shot.stem)
                continue
            started = time.monotonic()
            said = capture(shot, self.out, gpu)
            with self.lock:
                self.seconds[shot.stem] = round(time.monotonic() - started, 2)
                if said:
                    self.faults.append(said)
                    continue
                pages = PAGES if shot.what == "full" and not shot.again else ("base", "auto")
                report = next(p for end in ENDS if (p := self.out / f"{shot.stem}{end}").exists())
                self.exports += [self.pool.submit(export, report, page) for page in pages]

    def run(self, gpus: Sequence[str]) -> None:
        """All shots, then what the exports said."""
        with ThreadPoolExecutor(max_workers=len(gpus)) as lanes:
            list(lanes.map(self.work, gpus))
        self.faults += [said for f in self.exports if (said := f.result())]
        self.pool.shutdown()
