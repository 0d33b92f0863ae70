"""The program that a profiler starts: one version on one case, warmed up, then a few calls between start and stop.

First without a profiler (``rehearse``), which builds the version and says what it launches; then below ncu
(``capture``), which finds everything built. One process, the framework's own memory, no oracle: nothing is judged here.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import build, frames, tenancy, usage
from .forge import WANTED, current, sha256
from .procs import die_with
from .sanitize import load, tensor
from .spec import Arm, Case, JobError, parse_arm, parse_case

ANSWER = "target.json"
DONE = "done"
LOG = "target.log"
POLL_S = 0.5
LOG_CHARS = 4000
KERNELS_MAX = 64


def child(argv: list[str]) -> int:
    """``MODE JOBDIR ARM CASE FOLDER WARM_UP CALLS LOCK_S OWNER``; answers in ``FOLDER/target.json``.

    Status 0 when it ran. ``OWNER`` is the process for which all this is done.
    """
    mode, jobdir, folder = argv[0], Path(argv[1]), Path(argv[4])
    if mode == "rehearse":
        die_with(os.getppid())
    else:
        below_profiler(folder, int(argv[8]))
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    warm_up, calls, wait = int(argv[5]), int(argv[6]), float(argv[7])
    job = json.loads((jobdir / "job.json").read_bytes())
    arm = parse_arm(next(a for a in job["arms"] if a["name"] == argv[2]))
    case = parse_case(next(c for c in job["cases"] if c["case_id"] == argv[3]))
    os.environ[WANTED] = job.get("arch", "")
    try:
        tenancy.required(True)
        with tenancy.hold((), wait) as (device, sensors):
            program = Program(jobdir, folder, job, arm, case, device)
            program.call(warm_up)
            if mode == "rehearse":
                said = {**program.facts(), "driver": sensors.driver() if sensors else "", "kernels": program.watch()}
                answer(folder, {"ok": True, **said})
            else:
                program.captured(calls)
                (folder / DONE).touch()
    except JobError as fault:
        answer(folder, {"ok": False, "stage": "gpu", "log": str(fault)})
        return 1
    except BaseException as fault:  # noqa: BLE001 - a candidate may raise anything
        text = str(fault) if isinstance(fault, build.BuildError) else traceback.format_exc()
        answer(folder, {"ok": False, "stage": "candidate", "log": text[-LOG_CHARS:]})
        return 1
    return 0


def below_profiler(folder: Path, owner: int) -> None:
    """Keep the profiler's output to its own words, and end with ``owner``.

    Not with the parent: the signal of a parent's death comes when the thread ends that started this process, and a
    profiler may start it from any thread.
    """
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    if Path(f"/proc/{owner}").exists():
        threading.Thread(target=_end_with, args=(owner,), daemon=True).start()


def _end_with(owner: int) -> None:
    while Path(f"/proc/{owner}").exists():
        time.sleep(POLL_S)
    os._exit(1)


def answer(folder: Path, said: dict[str, Any]) -> None:
    """``target.json`` by rename."""
    fresh = folder / f"{ANSWER}.tmp"
    fresh.write_text(json.dumps(said))
    fresh.replace(folder / ANSWER)


class Program:
    """A version that was loaded, and the tensors of its case."""

    def __init__(self, jobdir: Path, folder: Path, job: dict[str, Any], arm: Arm, case: Case, device: Any) -> None:
        self._folder, self._device, self._case = folder, device, case
        self._frame = frames.TorchFrame()
        (folder / "build").mkdir(exist_ok=True)
        if not (folder / "known.json").exists():
            (folder / "known.json").write_text("{}")
        started = time.monotonic()
        with device.stream():
            module = load(jobdir / arm.source, arm, folder, device, lines=True)
            self._tensors = {
                t.name: tensor(self._frame, t, device.torch_device) for t in case.tensors if t.role != "scalar"
            }
            device.synchronize()
            self._entry = bind(module, arm, case, self._tensors, job.get("stages", ["entry"]))
        device.synchronize()
        self._seconds = time.monotonic() - started
        self._kept = {t.name: self._tensors[t.name].clone() for t in case.by_role("inout")}

    def call(self, times: int) -> None:
        """Call the entry and wait, each time on the content of the first call."""
        for _ in range(times):
            self._restore()
            with self._device.stream():
                self._entry()
            self._device.synchronize()

    def captured(self, times: int) -> None:
        """The same between the profiler's start and stop, which leave out everything around the calls."""
        profiler = self._frame.xp.cuda.profiler
        for _ in range(times):
            self._restore()
            profiler.start()
            with self._device.stream():
                self._entry()
            self._device.synchronize()
            profiler.stop()

    def _restore(self) -> None:
        for name, kept in self._kept.items():
            self._tensors[name].copy_(kept)
        self._device.synchronize()

    def facts(self) -> dict[str, Any]:
        """The device, and what the compilers left: known files for the next process, resources of each kernel."""
        target, found, known = self._folder / "build", [], {}
        for said in [*current("profile").artifacts, *build.scan_cache()]:
            name = str(said["path"])
            path = target / name
            if name in known or not path.is_file():
                continue
            known[name] = sha256(path)
            found += usage.of_build(path.read_bytes(), str(said.get("log", "")))
        (self._folder / "known.json").write_text(json.dumps(known))
        kept = ("gpu", "arch", "sm_count", "l2_bytes", "cuda")
        facts = {name: self._device.facts[name] for name in kept}
        return {**facts, "framework": f"torch {self._frame.version}", "usage": found, "load_s": round(self._seconds, 3)}

    def watch(self) -> list[dict[str, Any]]:
        """What one call launches, by the framework's profiler; empty where that cannot be used."""
        trace = self._folder / "trace.json"
        try:
            from torch.profiler import ProfilerActivity, profile

            for _ in range(2):  # the first use misses what comes early
                self._restore()
                with profile(activities=[ProfilerActivity.CUDA]) as seen, self._device.stream():
                    self._entry()
                    self._device.synchronize()
            seen.export_chrome_trace(str(trace))
            return kernels(events(trace.read_bytes()))
        except Exception as fault:  # noqa: BLE001 - no rights, another profiler, an old torch: times are then missing
            print(f"no kernel times: {fault}", file=sys.stderr)
            return []
        finally:
            trace.unlink(missing_ok=True)


def bind(module: Any, arm: Arm, case: Case, tensors: dict[str, Any], stages: list[str]) -> Callable[[], object]:
    """The entry with its arguments; prepare and plan run once, here, as in a worker."""
    extra: dict[str, Any] = {}
    if "prepare" in stages and hasattr(module, "prepare"):
        static = {t.name: tensors[t.name] for t in case.by_role("static")}
        key = {"case_id": case.case_id, "axes": dict(case.axes), "flags": dict(case.flags)}
        extra["state"] = module.prepare(key, static)
        if "plan" in stages and hasattr(module, "plan"):
            extra["state"] = module.plan(extra["state"], dict(case.scalars))
    entry = getattr(module, arm.entry.partition(":")[2])
    return lambda: entry(**tensors, **case.scalars, **extra)


def events(data: bytes) -> list[dict[str, Any]]:
    """Events of a trace, packed or not."""
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    found = json.loads(text)
    return list(found["traceEvents"] if isinstance(found, dict) else found)


def kernels(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kernels of a trace in the order in which they started: name, nanoseconds, launch shape, registers, shared bytes.

    >>> one = {"cat": "kernel", "name": "k", "ts": 2, "dur": 1.5, "args": {"grid": [4, 1, 1], "block": [128, 1, 1]}}
    >>> kernels([one, {"cat": "gpu_memcpy", "name": "m", "ts": 1, "dur": 1, "args": {}}])
    [{'name': 'k', 'ns': 1500, 'grid': [4, 1, 1], 'block': [128, 1, 1], 'registers': 0, 'shared': 0}]
    """
    mine = [e for e in found if str(e.get("cat", "")).lower() == "kernel" and "dur" in e]
    out = []
    for event in sorted(mine, key=lambda e: float(e["ts"]))[:KERNELS_MAX]:
        said = event.get("args", {})
        out.append({
            "name": str(event["name"]),
            "ns": round(float(event["dur"]) * 1000),
            "grid": [int(n) for n in said.get("grid", ())],
            "block": [int(n) for n in said.get("block", ())],
            "registers": int(said.get("registers per thread", 0)),
            "shared": int(said.get("shared memory", 0)),
        })  # fmt: skip
    return out
