"""The oracle's hand on a zygote: start it, have it fork, have it reap."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import wire
from .procs import look
from .spec import JobError

ALLOWED = ("PATH", "LD_LIBRARY_PATH", "LANG", "TZ")
ALLOWED_PREFIXES = ("CUDA_", "CONDA_", "TRITON_", "LC_")
THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "TORCHINDUCTOR_COMPILE_THREADS",
)  # fmt: skip
START_S = 60.0
GPU_START_S = 180.0
"""Importing torch and making a context, on a machine whose disk is cold."""
LOG_BYTES = 4000


def clean_env(private: str) -> dict[str, str]:
    """What arms see of the environment: an allow-list, one thread a library, a private HOME and TMPDIR."""
    kept = {k: v for k, v in os.environ.items() if k in ALLOWED or k.startswith(ALLOWED_PREFIXES)}
    return {**kept, **dict.fromkeys(THREADS, "1"), "HOME": private, "TMPDIR": private}


@dataclass(frozen=True, kw_only=True)
class Place:
    """What a zygote must know: the job's temporary folder, the framework, ``cpu`` or ``gpu``, and the arms' cores."""

    script: str
    tmp: Path
    framework: str
    device: str
    cores: tuple[int, ...]


class Zygote:
    """One fresh interpreter with the framework imported, or about to be."""

    def __init__(self, place: Place) -> None:
        self._limit = GPU_START_S if place.device == "gpu" else START_S
        ours, theirs = wire.pair()
        os.set_inheritable(theirs.fileno(), True)
        facts = (theirs.fileno(), place.framework, os.getpid(), place.device, *place.cores)
        argv = [sys.executable, "-I", place.script, "--zygote", *map(str, facts)]
        self._log = place.tmp / f"zygote-{os.urandom(4).hex()}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                argv, close_fds=False, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=clean_env(str(place.tmp)), cwd=place.tmp,
            )  # fmt: skip
        theirs.close()
        self._line = wire.Caller(ours)
        self._line.post({"op": "hello"})
        self._ready = False
        self._known: set[int] = set()
        """Workers alive, and orphans that were reported."""

    def ready(self) -> bool:
        """Whether a command would be answered at once: the framework is imported."""
        return self._ready or self._line.answered()

    def ask(self, command: dict[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        """One command; the first waits until the framework is imported. Raises JobError when it is gone."""
        try:
            if not self._ready:
                self._line.wait(timeout=self._limit)
                self._ready = True
            return self._line.ask(command, timeout=self._limit, fds=fds)
        except (wire.Closed, wire.TimedOut, wire.Forged) as fault:
            text = self._log.read_text(errors="replace")[-LOG_BYTES:]
            raise JobError(f"the zygote of the arms failed: {fault!r}\n{text}") from fault

    def fork(self, spec: dict[str, Any], fds: Sequence[int]) -> int:
        """The process id of a new worker; ``fds`` are its channel and its log."""
        pid: int = self.ask({"op": "fork", "spec": spec}, fds)["pid"]
        self._known.add(pid)
        return pid

    def reap(self, pid: int, *, kill: bool) -> tuple[dict[str, Any], int]:
        """How a worker ended, and how many processes it left behind.

        They have become the zygote's children and are killed here.
        """
        how = self.ask({"op": "reap", "pid": pid, "kill": kill})
        self._known.discard(pid)
        orphans = set(look(self._process.pid).children) - self._known
        for orphan in orphans:
            self._known.add(orphan)
            with contextlib.suppress(OSError):
                os.kill(orphan, signal.SIGKILL)
        return how, len(orphans)

    @property
    def idle(self) -> bool:
        """No worker of it is alive."""
        return not self._known

    def close(self) -> None:
        """End the zygote; it kills what is left of its workers."""
        self._line.sock.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        self._process.kill()
        self._process.wait()
