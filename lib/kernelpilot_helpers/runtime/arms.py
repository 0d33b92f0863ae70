"""The oracle's hand on the arms: zygotes, workers, their commands, their deaths, and what /proc says of them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import wire
from .arena import Arena
from .charges import Charges
from .guard import is_system
from .procs import look, mapped_libraries
from .seal import Seal
from .session import ArmDied, Session, fresh_dir
from .spec import Arm, JobError

ALLOWED = ("PATH", "LD_LIBRARY_PATH", "LANG", "TZ")
ALLOWED_PREFIXES = ("CUDA_", "CONDA_", "TRITON_", "LC_")
THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
START_S = 60.0
SETTLE_S = 0.0002
MAIN_SETTLE_S = 0.5
MAIN_LOOKS = 0.1
"""Share of commands after which the main thread is watched until it sleeps."""
LOG_BYTES = 4000
_random = random.SystemRandom()


def clean_env(private: str) -> dict[str, str]:
    """What arms see of the environment: an allow-list, one thread a library, a private HOME and TMPDIR."""
    kept = {k: v for k, v in os.environ.items() if k in ALLOWED or k.startswith(ALLOWED_PREFIXES)}
    return {**kept, **dict.fromkeys(THREADS, "1"), "HOME": private, "TMPDIR": private}


class Zygote:
    """One fresh interpreter with the framework imported; ``fork`` gives workers of it."""

    def __init__(self, session: Session, script: str) -> None:
        self._session = session
        ours, theirs = wire.pair()
        os.set_inheritable(theirs.fileno(), True)
        facts = (theirs.fileno(), session.frame.name, os.getpid(), session.core)
        argv = [sys.executable, "-I", script, "--zygote", *map(str, facts)]
        self._log = session.tmp / f"zygote-{os.urandom(4).hex()}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                argv, close_fds=False, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=clean_env(str(session.tmp)), cwd=session.tmp,
            )  # fmt: skip
        theirs.close()
        self._line = wire.Caller(ours)
        self._ready = False
        self._known: set[int] = set()
        """Workers alive, and orphans that were reported."""

    def ask(self, command: dict[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        """One command; the first waits until the framework is imported. Raises JobError when it is gone."""
        try:
            if not self._ready:
                self._line.ask({"op": "hello"}, timeout=START_S)
                self._ready = True
            return self._line.ask(command, timeout=START_S, fds=fds)
        except (wire.Closed, wire.TimedOut, wire.Forged) as fault:
            text = self._log.read_text(errors="replace")[-LOG_BYTES:]
            raise JobError(f"the zygote of the arms failed: {fault!r}\n{text}") from fault

    def fork(self, arm: Arm) -> Worker:
        """A new worker for ``arm``, nothing loaded yet."""
        session = self._session
        private = fresh_dir(session.tmp, f"home-{arm.name}")
        build = session.build_dir(arm)
        build.mkdir(exist_ok=True)
        ours, theirs = wire.pair()
        log_path = session.tmp / f"{private.name}.log"
        log = os.open(log_path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        spec = {
            "private": str(private), "build": str(build), "source": str(session.source(arm)),
            "entry": arm.entry, "build_key": arm.build_key, "known": session.known.get(arm.name, {}),
            "stages": list(session.job.get("stages", ("entry",))), "core": session.core,
            "watch": not (session.job.get("library_calls", False) or arm.is_baseline),
            "closed": [str(session.jobdir), str(session.tmp)],
        }  # fmt: skip
        pid = self.ask({"op": "fork", "spec": spec}, [theirs.fileno(), log])["pid"]
        theirs.close()
        os.close(log)
        self._known.add(pid)
        return Worker(session, self, arm, pid, wire.Caller(ours), log_path)

    def reap(self, pid: int, *, kill: bool) -> dict[str, Any]:
        """How a worker ended. What it left behind has become the zygote's child: it is killed and reported."""
        how = self.ask({"op": "reap", "pid": pid, "kill": kill})
        self._known.discard(pid)
        for orphan in set(look(self._process.pid).children) - self._known:
            self._known.add(orphan)
            with contextlib.suppress(OSError):
                os.kill(orphan, signal.SIGKILL)
            self._session.event(self._session.suspect, "cheat.subprocess", "a process was left behind")
        return how

    def close(self) -> None:
        """End the zygote; it kills what is left of its workers."""
        self._line.sock.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        self._process.kill()
        self._process.wait()


class Worker:
    """One live arm."""

    def __init__(self, session: Session, zygote: Zygote, arm: Arm, pid: int, line: wire.Caller, log: Path) -> None:
        self.arm = arm
        self.pid = pid
        self.case_id = ""
        self.pair: int | None = None
        self._session = session
        self._zygote = zygote
        self._line = line
        self._log = log
        self._gone = False
        self._charges = Charges(pid)

    def ask(self, command: dict[str, Any], *, limit: float, stage: str, fds: Sequence[int] = ()) -> dict[str, Any]:
        """One command; raises ArmDied for a death, a time-out, a forged reply or a candidate's exception."""
        limit = min(limit, self._session.left())
        try:
            reply = self._line.ask(command, timeout=limit, fds=fds)
        except wire.TimedOut:
            self._end(kill=True)
            raise self._died(stage, timeout=True, log=f"no reply within {limit:.1f} s\n{self._tail()}") from None
        except wire.Closed:
            how = self._end(kill=False)
            raise self._died(stage, signal=how["signal"], exit=how["exit"], log=self._tail()) from None
        except wire.Forged as fault:
            self._event("cheat.channel", str(fault))
            self._end(kill=True)
            raise self._died("protocol", log=str(fault)) from None
        for kind, detail in reply.get("events", ()):
            self._event(str(kind), str(detail))
        if "error" in reply:
            raise self._died(str(reply.get("stage", stage)), log=str(reply["error"]))
        self._look()
        return reply

    def run(self, slots: Sequence[int]) -> tuple[int, int]:
        """Call the entry on ``slots`` in order: (worker's ns, our ns around the command)."""
        self._charges.open(self.case_id)
        started = time.perf_counter_ns()
        reply = self.ask({"op": "run", "slots": list(slots)}, limit=self._session.job["limits"]["call_s"], stage="call")
        wall = time.perf_counter_ns() - started
        ns = reply.get("ns")
        if not isinstance(ns, int) or ns < 0:
            self._event("cheat.channel", "a reply without its ticks")
            raise self._died("protocol", log="a reply without its ticks")
        return ns, wall

    def load(self) -> dict[str, Any]:
        """Import the candidate; answers what it built."""
        return self.ask({"op": "load"}, limit=self._session.job["limits"]["build_s"], stage="build")

    def map(self, arena: Arena) -> None:
        """Hand ``arena`` over and let the candidate prepare for its case."""
        self._charges.close()
        self.case_id = arena.case.case_id
        command = {"op": "arena", "case": self._session.raw_cases[self.case_id], "slots": arena.slots}
        limit = self._session.job["limits"]["call_s"]
        self.ask(command, limit=limit, stage="prepare", fds=[arena.fd])

    def probe(self, slot: int) -> list[str]:
        """Framework operations seen during one watched call."""
        reply = self.ask({"op": "probe", "slot": slot}, limit=self._session.job["limits"]["call_s"], stage="call")
        return [str(op) for op in reply["ops"]]

    def loaded(self) -> list[str]:
        """Libraries this worker maps from its build directory; foreign ones become events."""
        ours, built = [], str(self._session.build_dir(self.arm)) + os.sep
        for path in mapped_libraries(self.pid):
            if path.startswith(built):
                ours.append(path)
            elif not is_system(path):
                self._event("cheat.foreign_binary", f"mapped {Path(path).name}")
        return ours

    @property
    def alive(self) -> bool:
        """False once its end was seen."""
        return not self._gone

    def finish(self) -> None:
        """Orderly end: last looks, then the process group is killed."""
        if self._gone:
            return
        self._charges.close()
        self._charges.give(self._session.samples, self.arm.name, self.pair)
        with contextlib.suppress(ArmDied):
            self.ask({"op": "end"}, limit=5.0, stage="call")
            self.loaded()
            if self._line.surplus():
                self._event("cheat.channel", "unasked bytes on the channel at the end")
        self._end(kill=True)

    def _look(self) -> None:
        seen = look(self.pid)
        if seen.others_run:
            time.sleep(SETTLE_S)
            if look(self.pid).others_run:
                self._event("cheat.thread", "a helper thread was still running after the reply")
        if seen.children:
            self._event("cheat.subprocess", "a child process was alive after the reply")
        if seen.main_runs and _random.random() < MAIN_LOOKS:
            self._await_main()

    def _await_main(self) -> None:
        """A busy machine keeps the main thread from its next read for a while: only its never coming is news."""
        deadline = time.monotonic() + MAIN_SETTLE_S
        while look(self.pid).main_runs:
            if time.monotonic() > deadline:
                self._event("cheat.thread", "the main thread went on running after the reply")
                return
            time.sleep(SETTLE_S)

    def _end(self, *, kill: bool) -> dict[str, Any]:
        if self._gone:
            return {"signal": None, "exit": None}
        self._gone = True
        self._line.sock.close()
        return self._zygote.reap(self.pid, kill=kill)

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-LOG_BYTES:]

    def _event(self, kind: str, detail: str) -> None:
        self._session.event(self.arm.name, kind, detail, case_id=self.case_id, pair=self.pair)

    def _died(self, stage: str, **fields: Any) -> ArmDied:
        return ArmDied({"arm": self.arm.name, "stage": stage, "case_id": self.case_id, **fields})


class Nursery:
    """Hands out workers from a zygote that is renewed on request; a next one can be started early."""

    def __init__(self, session: Session, script: str) -> None:
        self._session = session
        self._script = script
        self._live = [Zygote(session, script)]
        self._next: Zygote | None = None
        self._seal = Seal([session.jobdir / "arms", session.jobdir / "oracle"], Path(__file__).parent)

    def fork(self, arm: Arm) -> Worker:
        """A worker of the current zygote. Raises ArmDied when a file that it would run is no longer the job's."""
        if self._tampered():
            log = "a file of the job was changed while it ran"
            raise ArmDied({"arm": self._session.suspect, "stage": "protocol", "log": log})
        return self._live[-1].fork(arm)

    def _tampered(self) -> bool:
        broken = self._seal.broken()
        for name in broken:
            self._session.event(self._session.suspect, "cheat.writes_source", f"{name} was changed while the job ran")
        return bool(broken)

    def start_next(self) -> None:
        """Let the next zygote import its framework while this one still works."""
        if self._next is None:
            self._next = Zygote(self._session, self._script)

    def renew(self) -> None:
        """Go on with a fresh zygote; workers of the old one must be finished."""
        self.start_next()
        assert self._next is not None
        self._live.pop().close()
        self._live.append(self._next)
        self._next = None

    def close(self) -> None:
        """End every zygote."""
        self._tampered()
        for zygote in [*self._live, *([self._next] if self._next else [])]:
            zygote.close()
        self._live, self._next = [], None
