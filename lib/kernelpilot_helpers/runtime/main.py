"""The oracle's process: reads job.json, runs its phases, and writes raw.json whatever happens to the arms."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from . import building, env, frames, mutants, tenancy, timing, verify, zygote
from .arms import Nursery
from .forge import WANTED
from .procs import PR_SET_DUMPABLE, cores, die_with, everywhere, keep_awake, keep_memory, pin, prctl
from .session import ArmDied, Session, open_session
from .spec import JobError
from .zygotes import Place, Zygote

USAGE = "usage: python -I kernelpilot_runtime JOBDIR [JOBDIR ...]"
KEPT = ("builds", "checks", "mutants", "samples", "events")
GPU_KEPT = ("inventory", "figures", "residency", "gpu", "sanitizer", "ceilings")


def main(argv: list[str], *, script: str) -> int:
    """Run each job directory; 0 when every raw.json was written, 2 for a wrong call."""
    if argv[:1] == ["--zygote"]:
        return zygote.main(int(argv[1]), argv[2], int(argv[3]), argv[4], *map(int, argv[5:]))
    if argv[:1] == ["--sanitize"]:
        from . import sanitize

        return sanitize.child(argv[1:])
    if argv[:1] == ["--profile"]:
        from . import profile_target

        return profile_target.child(argv[1:])
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
    stage: Stage | None = None
    try:
        job = json.loads(data)
        raw["job_id"] = job["job_id"]
        stage = Stage(job, jobdir, tmp, script, clock)
        sys.path.insert(0, str(jobdir / "oracle"))
        stage.go(raw)
    except ArmDied as gone:
        raw["died"] = gone.died
    except JobError as fault:
        raw["died"] = {"arm": "", "stage": "oracle", "log": str(fault)}
    except Exception as fault:  # noqa: BLE001  (the reference may raise anything; the record must say what)
        code = "gpu.memory: the GPU has not enough free memory\n" if frames.out_of_memory(fault) else ""
        raw["died"] = {"arm": "", "stage": "oracle", "log": code + traceback.format_exc()[-6000:]}
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(jobdir / "oracle"))
        shutil.rmtree(tmp, ignore_errors=True)
    session = stage.session if stage else None
    device = session.device if session else None
    raw["env"] = env.fingerprint(stage.frame if stage else None, started, device.facts if device else None)
    if session is not None:
        raw["env"]["phase_seconds"] = session.spent
        for name in KEPT + (GPU_KEPT if session.gpu else ()):
            raw[name] = getattr(session, "gpu_looks" if name == "gpu" else name)
        if session.nvml is not None:
            raw["env"]["driver"] = session.driver
    return raw


class Stage:
    """What one job needs before its first phase, made as much as possible at the same time."""

    def __init__(self, job: dict[str, Any], jobdir: Path, tmp: Path, script: str, clock: float) -> None:
        self.frame: frames.Frame | None = None
        self.session: Session | None = None
        self._job = job
        self._jobdir = jobdir
        self._tmp = tmp
        self._script = script
        self._clock = clock
        self._gpu = job.get("device", "cpu") == "gpu" and bool(job["phases"])
        """A job without a phase only builds, which needs no GPU."""

    def go(self, raw: dict[str, Any]) -> None:
        """Import, open and lock what the job needs, then run its phases."""
        job = self._job
        name = self._framework()
        oracle, last = cores()
        os.environ[WANTED] = job.get("arch", "")  # what the arms see of the environment begins with CUDA_
        pinned = everywhere() if self._gpu else (last,)  # jobs on several GPUs of one host would share a core
        place = Place(
            script=self._script, tmp=self._tmp, framework=name, device="gpu" if self._gpu else "cpu", cores=pinned
        )
        first = Zygote(place) if job["arms"] else None  # it imports the framework while we do
        try:
            with contextlib.ExitStack() as stack:
                device, sensors = None, None
                if self._gpu:
                    wait = job.get("limits", {}).get("lock_s", 900.0)
                    device, sensors = stack.enter_context(tenancy.hold(job["phases"], wait))
                    self._clock = time.monotonic()  # the wait for the GPU is not the job's
                if name != zygote.NONE:
                    self.frame = frames.CudaFrame(device) if self._gpu else frames.make(name)
                    raw["framework"] = self.frame.name
                frame = cast(frames.Frame, self.frame)
                session = open_session(job, self._jobdir, self._tmp, frame, self._clock, device)
                self.session, session.nvml, session.cores = session, sensors, pinned
                session.driver = sensors.driver() if sensors is not None else ""
                nursery, first = Nursery(session, functools.partial(Zygote, place), first), None
                run_phases(session, nursery, self._script, oracle)
        finally:
            if first is not None:
                first.close()

    def _framework(self) -> str:
        torch = importlib.util.find_spec("torch") is not None
        if self._gpu:
            tenancy.required(torch)
        elif self._job.get("device", "cpu") == "gpu":
            return "torch" if torch else zygote.NONE
        return "torch" if self._gpu else frames.pick(self._job.get("framework", "any"))


def run_phases(session: Session, nursery: Nursery, script: str, oracle: int) -> None:
    """Build, then whatever else the job asks, as far as it comes."""
    allowed = os.sched_getaffinity(0)
    if not session.gpu:
        pin(oracle)
    spinner = None if session.gpu or session.cores == (oracle,) else session.cores[0]
    awake = keep_awake(spinner)
    try:
        with stopwatch(session, "build"):
            if session.gpu:
                nursery.early(session.arms.values())
            building.build_all(session, nursery, env.compiler())
        if session.job.get("stop_if_identical") and same_program(session.builds):
            return
        if session.gpu and "verify" in session.job["phases"]:  # their contexts take a while
            nursery.early(verify.verified_arms(session))
        for phase, work in phases(session, nursery, script).items():
            if phase in session.job["phases"]:
                with stopwatch(session, phase):
                    work()
            if phase == "verify" and session.job.get("stop_if_wrong") and plainly_wrong(session):
                return
    finally:
        nursery.close()
        if awake is not None:
            awake.kill()
            awake.wait()
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, allowed)


OFFENCES = ("cheat.", "memory.", "policy.", "check.")
FAR = 8.0
"""An error this many times beyond the limit of ``where`` is no matter of luck."""


def plainly_wrong(session: Session) -> bool:
    """Whether what verification saw of arm B leaves nothing to time; it decides how long a job lasts and no more."""
    if any(e["arm"] == "B" and e["kind"].startswith(OFFENCES) for e in session.events):
        return True
    factor, slack = session.job.get("where_limit", (2.0, 2.0))
    for check in session.checks:
        stats = check.get("stats") if check["arm"] == "B" else None
        if stats is not None and (
            not stats["nonfinite_equal"]
            or stats["unwritten"]
            or stats["max"] > FAR * (factor * stats["base_max"] + slack)
        ):
            return True
    return False


def phases(session: Session, nursery: Nursery, script: str) -> dict[str, Callable[[], None]]:
    """What each phase does, in the order in which they run."""
    known: dict[str, Callable[[], None]] = {
        "audit": lambda: mutants.audit(session, nursery),
        "verify": lambda: verified(session, nursery),
        "time": lambda: timed(session, nursery),
    }
    if session.gpu:
        from . import ceilings, figures, sanitize

        known["figures"] = lambda: figures.measure(session, nursery)
        if "B" in session.arms:
            known["sanitize"] = lambda: session.sanitizer.extend(sanitize.sanitize(session, script))
        known["ceilings"] = lambda: session.ceilings.update(ceilings.measure(session.device))
    return known


def verified(session: Session, nursery: Nursery) -> None:
    """Phase verify; on a GPU its arms load side by side."""
    if session.gpu:
        nursery.early(verify.verified_arms(session))
    verify.verify(session, nursery)
    for arm in verify.verified_arms(session) if session.gpu else ():
        building.add_cached(session, arm, session.cached.get(arm.name, ()), "triton")


def timed(session: Session, nursery: Nursery) -> None:
    """Phase time, where the job says how."""
    if not session.job.get("time"):
        return
    if session.gpu:
        from . import gpu_timing

        gpu_timing.time_all(session, nursery)
    else:
        timing.time_all(session, nursery)


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
