"""The oracle's process: reads job.json, runs its phases, and writes raw.json whatever happens to the arms."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from . import building, env, frames, mutants, timing, verify, zygote
from .arms import Nursery
from .procs import PR_SET_DUMPABLE, cores, die_with, keep_awake, keep_memory, pin, prctl
from .session import ArmDied, Session, open_session
from .spec import JobError

USAGE = "usage: python -I kernelpilot_runtime JOBDIR [JOBDIR ...]"


def main(argv: list[str], *, script: str) -> int:
    """Run each job directory; 0 when every raw.json was written, 2 for a wrong call."""
    if argv[:1] == ["--zygote"]:
        return zygote.main(int(argv[1]), argv[2], int(argv[3]), int(argv[4]))
    if argv[:1] == ["--die-with"]:
        if os.getppid() == int(argv[1]):  # not so behind a wrapper that starts Python for us
            die_with(int(argv[1]))
        argv = argv[2:]
    if not argv or argv[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    prctl(PR_SET_DUMPABLE, 0)
    keep_memory()
    for folder in argv:
        path = Path(folder).resolve()
        if not (path / "job.json").is_file():
            print(f"{folder}: no job.json in it\n{USAGE}", file=sys.stderr)
            return 2
        raw = run_job(path, script)
        write(path / "raw.json", raw)
        died = raw["died"]
        how = (
            "done"
            if died is None
            else f"died in {died['stage']} (arm {died['arm'] or 'oracle'}): {died.get('log', '')}"
        )
        print(f"{path.name}: {how.strip()[-600:]}", flush=True)
    return 0


def run_job(jobdir: Path, script: str) -> dict[str, Any]:
    """The content of ``raw.json``; every fault of arms, contract or job becomes ``died``."""
    started, clock = time.time(), time.monotonic()
    data = (jobdir / "job.json").read_bytes()
    raw: dict[str, Any] = {
        "format": "kernelpilot.raw", "version": 1, "job_id": "", "framework": "",
        "job_sha256": hashlib.sha256(data).hexdigest(), "died": None,
    }  # fmt: skip
    tmp = Path(tempfile.mkdtemp(prefix="kp-")).resolve()
    session: Session | None = None
    frame: frames.Frame | None = None
    try:
        job = json.loads(data)
        raw["job_id"] = job["job_id"]
        frame = frames.make(frames.pick(job.get("framework", "any")))
        raw["framework"] = frame.name
        sys.path.insert(0, str(jobdir / "oracle"))
        session = open_session(job, jobdir, tmp, frame, clock)
        run_phases(session, script)
    except ArmDied as gone:
        raw["died"] = gone.died
    except JobError as fault:
        raw["died"] = {"arm": "", "stage": "oracle", "log": str(fault)}
    except Exception:  # noqa: BLE001  (the reference may raise anything; the record must say what)
        raw["died"] = {"arm": "", "stage": "oracle", "log": traceback.format_exc()[-6000:]}
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(jobdir / "oracle"))
        shutil.rmtree(tmp, ignore_errors=True)
    raw["env"] = env.fingerprint(frame, started)
    if session is not None:
        raw["env"]["phase_seconds"] = session.spent
        for name in ("builds", "checks", "mutants", "samples", "events"):
            raw[name] = getattr(session, name)
    return raw


def run_phases(session: Session, script: str) -> None:
    """Build, then audit, verify and time as far as the job asks."""
    allowed = os.sched_getaffinity(0)
    ours, session.core = cores()
    pin(ours)
    nursery = Nursery(session, script)
    awake = keep_awake(session.core if session.core != ours else None)
    phases = session.job["phases"]
    try:
        with stopwatch(session, "build"):
            building.build_all(session, nursery, env.compiler())
        if session.job.get("stop_if_identical") and same_program(session.builds):
            return
        if "audit" in phases:
            with stopwatch(session, "audit"):
                mutants.audit(session, nursery)
        if "verify" in phases:
            with stopwatch(session, "verify"):
                verify.verify(session, nursery)
        if "time" in phases and session.job.get("time"):
            with stopwatch(session, "time"):
                timing.time_all(session, nursery)
    finally:
        nursery.close()
        if awake is not None:
            awake.kill()
            awake.wait()
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, allowed)


def same_program(builds: list[dict[str, Any]]) -> bool:
    """Whether arms A and B were built into one and the same program."""
    ids = {b["arm"]: b["binary_id"] for b in builds if b["ok"]}
    return bool(ids.get("A")) and ids.get("A") == ids.get("B")


@contextlib.contextmanager
def stopwatch(session: Session, phase: str) -> Any:
    """Keep a phase's wall seconds, also when it fails."""
    started = time.monotonic()
    try:
        yield
    finally:
        session.spent[phase] = time.monotonic() - started


def write(path: Path, raw: dict[str, Any]) -> None:
    """raw.json by rename: it is there whole or not at all."""
    fresh = path.with_name(path.name + ".tmp")
    text = json.dumps(raw, allow_nan=False, separators=(",", ":"))  # dump() to a file would encode in Python, slowly
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
