"""LocalLab: run a job on this machine, in the task's Python, one at a time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kernelpilot_helpers import proc
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Died, Raw
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.executors import absent
from kernelpilot_helpers.executors.deploy import deploy
from kernelpilot_helpers.executors.lab import JOB_FILE, RAW_FILE, encode_job, job_sha256, parse_raw
from kernelpilot_helpers.executors.task_python import TaskPython
from kernelpilot_helpers.policy import POLICY

ALLOWED = ("PATH", "LD_LIBRARY_PATH", "LANG", "TZ")
ALLOWED_PREFIXES = ("CUDA_", "NVIDIA_", "CONDA_", "OMP_", "OPENBLAS_", "MKL_", "TRITON_", "LC_")
CACHES = ("CUDA_CACHE_PATH", "TRITON_CACHE_DIR")
"""Never handed on: an arm that finds another's builds is not built from its committed tree."""
LOG_FILE = "runtime.log"
LOG_CHARS = 4000
GRACE_S = 10.0
"""The runtime ends itself at the job's limit; it is killed this much later."""


def task_env(environ: Mapping[str, str], private: str) -> dict[str, str]:
    """What the task's Python sees: an allow-list of the caller's variables and a private HOME and TMPDIR."""
    kept = {k: v for k, v in environ.items() if (k in ALLOWED or k.startswith(ALLOWED_PREFIXES)) and k not in CACHES}
    return {**kept, "HOME": private, "TMPDIR": private}


class LocalLab:
    """A Lab on this machine. ``device_lock`` is held while a job runs, so that no two measure at once.

    Jobs for a GPU hold a lock of their own beside it; the runtime holds the GPU itself, against other users as well.
    """

    def __init__(
        self,
        python: TaskPython,
        device_lock: Path,
        *,
        cache: Path | None = None,
        environ: Mapping[str, str] | None = None,
        lock_s: float = POLICY.lock_s,
    ) -> None:
        self.python = python
        self._lock = device_lock
        self._cache = cache
        self._environ = dict(os.environ if environ is None else environ)
        self._lock_s = lock_s

    def run(self, job: Job, workdir: Path) -> Raw:
        """Run ``job`` whose sources lie in ``workdir``; a runtime without an answer is a ``Raw`` that died.

        Raises Busy when another process holds the device for longer than the lock's time, Refused without a GPU for
        a job that needs one.
        """
        runtime = deploy(self._cache)
        with self._device(job):
            (workdir / RAW_FILE).unlink(missing_ok=True)
            fresh = workdir / (JOB_FILE + ".tmp")
            fresh.write_bytes(encode_job(job))
            fresh.replace(workdir / JOB_FILE)
            how = self._start(job, runtime, workdir)
        return absent.require_gpu(read_raw(job, workdir, how, self.python), workdir)

    def _device(self, job: Job) -> contextlib.AbstractContextManager[object]:
        """The device, for as long as the job runs; a job without a phase only builds and waits for nobody."""
        if not job.phases:
            return contextlib.nullcontext()
        return proc.file_lock(self.lock_of(job), timeout_s=self._lock_s, what="the device")

    def lock_of(self, job: Job) -> Path:
        """The lock file of the job's kind of device."""
        return self._lock if job.device == "cpu" else self._lock.with_name(f"gpu-{self._lock.name}")

    def _start(self, job: Job, runtime: Path, workdir: Path) -> str:
        """Run the runtime to its end or its limit; says how it ended where that was not well."""
        limit = job.limits.wall_s + (job.limits.lock_s if job.device == "gpu" and job.phases else 0.0)
        argv = [*self.python.argv, "-I", str(runtime), "--die-with", str(os.getpid()), str(workdir)]
        with tempfile.TemporaryDirectory(prefix="kp-lab-") as private, (workdir / LOG_FILE).open("wb") as log:
            try:
                process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    env=task_env(self._environ, private), cwd=private,
                )  # fmt: skip
            except OSError as fault:
                return f"the task's Python could not be started: {fault}"
            try:
                code = process.wait(limit + GRACE_S)
            except subprocess.TimeoutExpired:
                return f"the job did not end within {limit:g} s and was killed"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return "" if code == 0 else f"the runtime ended with status {code}"


def read_raw(job: Job, workdir: Path, how: str, python: TaskPython) -> Raw:
    """``raw.json`` of a finished run, strictly read; anything else becomes a ``Raw`` that says what happened."""
    try:
        raw = parse_raw((workdir / RAW_FILE).read_bytes())
    except FileNotFoundError:
        return _lost(job, python, how or "the runtime left no raw.json", workdir)
    except BadRecord as fault:
        return _lost(job, python, f"raw.json cannot be read: {fault.what}", workdir)
    if raw.job_id != job.job_id or raw.job_sha256 != job_sha256(job):
        return _lost(job, python, "raw.json answers another job", workdir)
    return raw


def _lost(job: Job, python: TaskPython, why: str, workdir: Path) -> Raw:
    with contextlib.suppress(OSError):
        why = f"{why}\n{(workdir / LOG_FILE).read_text(errors='replace')[-LOG_CHARS:]}".rstrip()
    died = Died(arm="", stage="oracle", log=why)
    return Raw(
        job_id=job.job_id, job_sha256=job_sha256(job), framework=python.framework, env={}, died=died
    )  # fmt: skip
