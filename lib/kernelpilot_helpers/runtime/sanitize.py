"""Claim tier: one call of arm B under compute-sanitizer, in a process of its own, with plain framework memory."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import build, cuda, frames
from .content import draw
from .procs import die_with
from .session import Session
from .spec import Arm, Case, Tensor, parse_arm, parse_case
from .zygotes import clean_env

TOOLS = ("memcheck", "racecheck", "initcheck")
OPTIONS = ("--target-processes", "application-only", "--print-limit", "10")
EXTRA = {"memcheck": ("--report-api-errors", "no"), "racecheck": ("--racecheck-report", "analysis"), "initcheck": ()}
PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
ERRORS = re.compile(r"ERROR SUMMARY: (\d+) error")
HAZARDS = re.compile(r"RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) errors?, (\d+) warnings?\)")
POLL_S = 0.02
NOTE_CHARS = 600


@dataclass(kw_only=True)
class Run:
    """One sanitizer process under way."""

    tool: str
    folder: Path
    process: subprocess.Popen[bytes]
    started: float


def sanitize(session: Session, script: str) -> list[dict[str, Any]]:
    """``raw.Sanitized`` entries of arm B: every tool over the smallest timed and the smallest edge case.

    The three tools run side by side (nothing is timed here), each at most ``limits.sanitize_s`` seconds. Errors
    also become the event ``memory.sanitizer``. A tool that is absent or does not finish leaves ``errors`` None.
    """
    arm = session.arms["B"]
    program = find_tool()
    found: list[dict[str, Any]] = []
    for case in pick(session.cases):
        if program is None:
            found += [_entry(tool, case.case_id, None, 0.0, "compute-sanitizer is not installed") for tool in TOOLS]
            continue
        runs = [_start(session, script, arm, case, program, tool) for tool in TOOLS]
        limit = min(session.job["limits"].get("sanitize_s", 60.0), session.left())
        for entry in _finish(runs, case.case_id, limit):
            found.append(entry)
            if entry["errors"]:
                session.event("B", "memory.sanitizer", f"{entry['tool']}: {entry['note']}", case_id=case.case_id)
    return found


def find_tool() -> str | None:
    """Path of compute-sanitizer, on PATH or in the toolkit's usual places."""
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(PLACES))


def pick(cases: list[Case]) -> list[Case]:
    """The smallest timed case and the smallest other one that has elements (a sanitized call is very slow)."""

    def size(case: Case) -> int:
        return sum(t.numel for t in case.tensors if t.role != "scalar")

    timed = [c for c in cases if c.timed]
    others = [c for c in cases if not c.timed and size(c)]
    return [min(group, key=size) for group in (timed, others) if group]


def _entry(tool: str, case_id: str, errors: int | None, seconds: float, note: str) -> dict[str, Any]:
    return {"tool": tool, "case_id": case_id, "errors": errors, "seconds": round(seconds, 3), "note": note}


def _start(session: Session, script: str, arm: Arm, case: Case, program: str, tool: str) -> Run:
    folder = session.tmp / f"sanitize-{tool}-{os.urandom(4).hex()}"
    folder.mkdir(mode=0o700)
    shutil.copytree(session.build_dir(arm), folder / "build", dirs_exist_ok=True)
    (folder / "known.json").write_text(json.dumps(session.known.get(arm.name, {})))
    env = {**clean_env(str(folder)), "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    argv = [
        program, "--tool", tool, *OPTIONS, *EXTRA[tool], "--log-file", str(folder / "report"),
        sys.executable, "-I", script, "--sanitize", str(session.jobdir), arm.name, case.case_id, str(folder),
    ]  # fmt: skip
    with (folder / "output").open("wb") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=folder, start_new_session=True
        )
    return Run(tool=tool, folder=folder, process=process, started=time.monotonic())


def _finish(runs: list[Run], case_id: str, limit: float) -> list[dict[str, Any]]:
    """Wait for all of them, kill what is late, and read what they say."""
    ended: dict[str, float] = {}
    try:
        while len(ended) < len(runs) and any(time.monotonic() - r.started < limit for r in runs):
            for run in runs:
                if run.tool not in ended and run.process.poll() is not None:
                    ended[run.tool] = time.monotonic() - run.started
            time.sleep(POLL_S)
    finally:
        for run in runs:
            with contextlib.suppress(OSError):
                os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()
    out = []
    for run in runs:
        seconds = ended.get(run.tool)
        if seconds is None:
            out.append(_entry(run.tool, case_id, None, limit, f"did not finish within {limit:.0f} s"))
            continue
        errors, note = verdict(run.tool, _text(run.folder / "report"), done=(run.folder / "done").exists())
        tail = "" if errors is not None else f": {_text(run.folder / 'output').strip()[-NOTE_CHARS:]}"
        out.append(_entry(run.tool, case_id, errors, seconds, note + tail))
    return out


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def verdict(tool: str, report: str, *, done: bool) -> tuple[int | None, str]:
    """(errors, note) from a tool's report. Without a summary, or with a call that never ended well, None.

    >>> verdict("memcheck", "========= ERROR SUMMARY: 0 errors", done=True)
    (0, '')
    >>> verdict("memcheck", "========= ERROR SUMMARY: 0 errors", done=False)
    (None, 'the call did not finish')
    """
    hazards = HAZARDS.search(report) if tool == "racecheck" else None
    summary = hazards or ERRORS.search(report)
    if summary is None:
        return None, "the tool gave no summary"
    errors = int(summary[1])
    if errors:
        return errors, first_error(report)
    if not done:
        return None, "the call did not finish"
    warnings = int(hazards[2]) if hazards else 0
    return 0, f"{warnings} warnings: {first_error(report)}" if warnings else ""


def first_error(report: str) -> str:
    """The first finding of a report in one line: what, where in the kernel, which thread, which address."""
    lines = [line.removeprefix("=========").strip() for line in report.splitlines()]
    start = next((i for i, line in enumerate(lines) if line and not line.startswith("COMPUTE-SANITIZER")), len(lines))
    block: list[str] = []
    for line in lines[start:]:
        if not line or line.startswith(("Saved host", "Host Frame", "ERROR SUMMARY", "RACECHECK SUMMARY")):
            break
        block.append(line)
    return "; ".join(block[:4])[:NOTE_CHARS]


def child(argv: list[str]) -> int:
    """The sanitized process: ``JOBDIR ARM CASE FOLDER``. Loads the arm, calls it once on random content."""
    die_with(os.getppid())
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    jobdir, folder = Path(argv[0]), Path(argv[3])
    job = json.loads((jobdir / "job.json").read_bytes())
    arm = parse_arm(next(a for a in job["arms"] if a["name"] == argv[1]))
    case = parse_case(next(c for c in job["cases"] if c["case_id"] == argv[2]))
    frame = frames.TorchFrame()
    device = cuda.open_device()
    module = load(jobdir / arm.source, arm, folder, device)
    tensors = {t.name: tensor(frame, t, device.torch_device) for t in case.tensors if t.role != "scalar"}
    device.synchronize()
    call(module, arm, case, tensors, job.get("stages", ["entry"]))
    device.synchronize()
    (folder / "done").touch()
    return 0


def load(source: Path, arm: Arm, folder: Path, device: Any, *, lines: bool = False) -> Any:
    """Import the candidate as its worker does, over a copy of what was built; ``lines`` builds it for a profiler."""
    build.begin(
        build.Session(
            source=source, target=folder / "build", key=arm.build_key,
            known=json.loads((folder / "known.json").read_bytes()), during=lambda _on: None,
            admit=lambda _path: None, gpu=True, arch=device.facts["arch"], device=device, lines=lines,
        )
    )  # fmt: skip
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source))
    path = source / arm.entry.partition(":")[0]
    loader = importlib.util.spec_from_file_location(path.stem, path)
    assert loader is not None and loader.loader is not None
    module = importlib.util.module_from_spec(loader)
    sys.modules[path.stem] = module
    loader.loader.exec_module(module)
    return module


def tensor(frame: frames.TorchFrame, spec: Tensor, where: str) -> Any:
    """One tensor of the case on ``where``: inputs random (gaps too), outputs not initialised on purpose."""
    torch = frame.xp
    dtype = getattr(torch, spec.dtype)
    size = spec.offset + spec.span
    if spec.role == "out":
        flat = torch.empty(size, dtype=dtype, device=where)
    else:
        flat = frame.cast(draw(frame, spec, max(size, 1), "gen"), spec.dtype)[:size].to(where)
    return flat.as_strided(spec.shape, spec.stride, spec.offset)


def call(module: Any, arm: Arm, case: Case, tensors: dict[str, Any], stages: list[str]) -> None:
    """Prepare, plan and enter once, with the arguments that a worker gives."""
    extra: dict[str, Any] = {}
    if "prepare" in stages and hasattr(module, "prepare"):
        static = {t.name: tensors[t.name] for t in case.by_role("static")}
        key = {"case_id": case.case_id, "axes": dict(case.axes), "flags": dict(case.flags)}
        extra["state"] = module.prepare(key, static)
        if "plan" in stages and hasattr(module, "plan"):
            extra["state"] = module.plan(extra["state"], dict(case.scalars))
    getattr(module, arm.entry.partition(":")[2])(**tensors, **case.scalars, **extra)
