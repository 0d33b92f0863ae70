"""The oracle's hand on the arms: workers, their deaths, what /proc says of them, and where they come from."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from . import wire
from .arena import Arena
from .charges import Charges
from .commands import Commands
from .guard import is_system
from .patience import Patience
from .procs import look, mapped_libraries, threads
from .seal import Seal
from .session import ArmDied, Session, fresh_dir
from .spec import Arm
from .zygotes import LOG_BYTES, Zygote

OPEN_S = 60.0
"""Making a GPU context."""
SETTLE_S = 0.0002
GPU_SETTLE_S = 0.02
"""The driver and the framework have threads of their own that go on for a moment."""
MAIN_SETTLE_S = 0.5
MAIN_LOOKS = 0.1
"""Share of commands after which the main thread is watched until it sleeps."""
_random = random.SystemRandom()


class Worker(Commands):
    """One live arm. On a GPU it opens its device first; what it is asked to load early loads meanwhile."""

    def __init__(self, session: Session, zygote: Zygote, arm: Arm, pid: int, line: wire.Caller, log: Path) -> None:
        self.arm = arm
        self.pid = pid
        self.case_id = ""
        self.pair: int | None = None
        self.prepare_ns: dict[str, int] = {}
        """Per stage before the calls: what the last arena took."""
        self._session = session
        self._zygote = zygote
        self._line = line
        self._log = log
        self._gone = False
        self._asked = time.monotonic()
        self._charges = Charges(pid)
        self._step = "opening" if session.gpu else "open"
        self._threads: frozenset[int] = frozenset()
        if session.gpu:
            self._post({"op": "open"}, stage="load")

    answered_ns = 0

    def ask(
        self, command: dict[str, Any], *, limit: float, stage: str, fds: Sequence[int] = (), quiet: float | None = None
    ) -> dict[str, Any]:  # fmt: skip
        """See Commands."""
        limit = min(limit, self._session.left())
        self._post(command, stage=stage, fds=fds)
        if quiet is not None:
            limit = Patience(self.pid, self._session.build_dir(self.arm), quiet=quiet, limit=limit).wait(self._line)
        return self._wait(limit=limit, stage=stage)

    def _post(self, command: dict[str, Any], *, stage: str, fds: Sequence[int] = ()) -> None:
        self._asked = time.monotonic()
        try:
            self._line.post(command, fds)
        except (wire.Closed, wire.Forged) as fault:
            raise self._fault(fault, stage) from None

    def _wait(self, *, limit: float, stage: str) -> dict[str, Any]:
        limit = min(limit, self._session.left())
        try:
            reply = self._line.wait(timeout=limit)
        except (wire.TimedOut, wire.Closed, wire.Forged) as fault:
            raise self._fault(fault, stage) from None
        self.answered_ns = time.perf_counter_ns()
        for kind, detail in reply.get("events", ()):
            self._event(str(kind), str(detail))
        if "error" in reply:
            if reply.get("fatal"):
                self._end(kill=True)  # its context is dead: no later call of it can mean anything
            raise self._died(str(reply.get("stage", stage)), log=str(reply["error"]))
        self._look()
        return reply

    def _fault(self, fault: Exception, stage: str) -> ArmDied:
        if isinstance(fault, wire.TimedOut):
            waited = time.monotonic() - self._asked
            self._end(kill=True)
            return self._died(stage, timeout=True, log=f"no reply within {waited:.1f} s\n{self._tail()}")
        if isinstance(fault, wire.Closed):
            how = self._end(kill=False)
            return self._died(stage, signal=how["signal"], exit=how["exit"], log=self._tail())
        self._event("cheat.channel", str(fault))
        self._end(kill=True)
        return self._died("protocol", log=str(fault))

    def forged(self, text: str) -> ArmDied:
        """See Commands."""
        self._event("cheat.channel", text)
        return self._died("protocol", log=text)

    def lost(self, text: str) -> ArmDied:
        """What to raise when this arm cannot go on although it answers."""
        return self._died("call", log=text)

    def run(self, slots: Sequence[int]) -> tuple[int, int]:
        """Call the entry on ``slots`` in order: (worker's ns, our ns around the command)."""
        if not self._session.gpu:
            self._charges.open(self.case_id)
        started = time.perf_counter_ns()
        reply = self.ask({"op": "run", "slots": list(slots)}, limit=self._session.job["limits"]["call_s"], stage="call")
        wall = time.perf_counter_ns() - started
        return self._ns(reply), wall

    def advance(self, *, wait: bool = False) -> None:
        """Let it import the candidate as soon as its device is open; what runs then is known to be the driver's."""
        if self._step == "opening" and (wait or self._line.answered()):
            self._wait(limit=OPEN_S, stage="load")
            self._threads = threads(self.pid)
            self._step = "open"
            self.begin()

    def begin(self) -> None:
        """Let it import the candidate without waiting for that."""
        if self._step == "open":
            self._post({"op": "load"}, stage="build")
            self._step = "loading"

    def load(self) -> dict[str, Any]:
        """Import the candidate; answers what it built."""
        self.advance(wait=True)
        self.begin()
        self._step = "loaded"
        return self._wait(limit=self._session.job["limits"]["build_s"], stage="build")

    def map(self, arena: Any) -> None:
        """Hand ``arena`` over and let the candidate prepare for its case."""
        self._charges.close()
        self.case_id = arena.case.case_id
        command = {"op": "arena", "case": self._session.raw_cases[self.case_id], "slots": arena.slots}
        limit = self._session.job["limits"]["call_s"]
        if not isinstance(arena, Arena):
            command.update(copies=arena.copies, handle=arena.handle, nbytes=arena.nbytes)
            limit = self._session.job["limits"]["build_s"]  # prepare may still compile
        fds = [arena.fd] if isinstance(arena, Arena) else []
        reply = self.ask(command, limit=limit, stage="prepare", fds=fds)
        self.prepare_ns = {k: v for k, v in reply.get("took", {}).items() if isinstance(v, int)}

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
        if self._step in ("opening", "loading"):
            self._end(kill=True)
            return
        self._charges.close()
        if not self._session.gpu:
            self._charges.give(self._session.samples, self.arm.name, self.pair)
        with contextlib.suppress(ArmDied):
            reply = self.ask({"op": "end"}, limit=5.0, stage="call")
            self._session.cached[self.arm.name] = [c for c in reply.get("cached", ()) if isinstance(c, dict)]
            self.loaded()
            if self._line.surplus():
                self._event("cheat.channel", "unasked bytes on the channel at the end")
        self._end(kill=True)

    def _look(self) -> None:
        if self._step == "opening":
            return  # nothing foreign is in it yet
        seen = look(self.pid, self._threads)
        if seen.others_run:
            deadline = time.monotonic() + (GPU_SETTLE_S if self._session.gpu else SETTLE_S)
            time.sleep(SETTLE_S)
            while look(self.pid, self._threads).others_run:
                if time.monotonic() >= deadline:
                    self._event("cheat.thread", "a helper thread was still running after the reply")
                    break
                time.sleep(SETTLE_S)
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
        how, left_behind = self._zygote.reap(self.pid, kill=kill)
        for _ in range(left_behind):
            self._session.event(self._session.suspect, "cheat.subprocess", "a process was left behind")
        return how

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-LOG_BYTES:]

    def _event(self, kind: str, detail: str) -> None:
        self._session.event(self.arm.name, kind, detail, case_id=self.case_id, pair=self.pair)

    def _died(self, stage: str, **fields: Any) -> ArmDied:
        return ArmDied({"arm": self.arm.name, "stage": stage, "case_id": self.case_id, **fields})


class Nursery:
    """Hands out workers from a zygote that is renewed on request; zygotes and workers can be started early."""

    def __init__(self, session: Session, start: Callable[[], Zygote], first: Zygote | None = None) -> None:
        self._session = session
        self._start = start
        self._live = [first] if first is not None else []
        self._next: Zygote | None = None
        self._early: dict[str, Worker] = {}
        self._seal = Seal([session.jobdir / "arms", session.jobdir / "oracle"], Path(__file__).parent)

    def fork(self, arm: Arm) -> Worker:
        """A worker of the current zygote. Raises ArmDied when a file that it would run is no longer the job's."""
        if self._tampered():
            log = "a file of the job was changed while it ran"
            raise ArmDied({"arm": self._session.suspect, "stage": "protocol", "log": log})
        return self._early.pop(arm.name, None) or self._fork(arm)

    def early(self, arms: Iterable[Arm]) -> None:
        """Start workers that later calls of ``fork`` give; they open the device and load at the same time."""
        for arm in arms:
            if arm.name not in self._early:
                self._early[arm.name] = self._fork(arm)

    def pids(self) -> set[int]:
        """Of the early workers."""
        return {worker.pid for worker in self._early.values()}

    def advance(self) -> None:
        """Let the early workers load whose device is open by now."""
        for worker in self._early.values():
            worker.advance()

    def _fork(self, arm: Arm) -> Worker:
        if not self._live:
            self._live.append(self._start())
        session, zygote = self._session, self._live[-1]
        private = fresh_dir(session.tmp, f"home-{arm.name}")
        build = session.build_dir(arm)
        build.mkdir(exist_ok=True)
        ours, theirs = wire.pair()
        log_path = session.tmp / f"{private.name}.log"
        log = os.open(log_path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        spec = {
            "private": str(private), "build": str(build), "source": str(session.source(arm)),
            "entry": arm.entry, "build_key": arm.build_key, "known": session.known.get(arm.name, {}),
            "stages": list(session.job.get("stages", ("entry",))), "cores": list(session.cores),
            "watch": not (session.job.get("library_calls", False) or arm.is_baseline),
            "closed": [str(session.jobdir), str(session.tmp)], "device": session.kind,
        }  # fmt: skip
        pid = zygote.fork(spec, [theirs.fileno(), log])
        theirs.close()
        os.close(log)
        return Worker(session, zygote, arm, pid, wire.Caller(ours), log_path)

    def _tampered(self) -> bool:
        broken = self._seal.broken()
        for name in broken:
            self._session.event(self._session.suspect, "cheat.writes_source", f"{name} was changed while the job ran")
        return bool(broken)

    def start_next(self) -> None:
        """Let the next zygote import its framework while this one still works."""
        if self._next is None:
            self._next = self._start()

    def next_ready(self) -> bool:
        """Whether the next zygote has been started and has imported its framework."""
        return self._next is not None and self._next.ready()

    def turn(self) -> None:
        """Fork from a fresh zygote from here on; workers of the older ones go on until they are finished."""
        self.start_next()
        assert self._next is not None
        self._live.append(self._next)
        self._next = None

    def retire(self) -> None:
        """Close older zygotes without a worker."""
        for zygote in [z for z in self._live[:-1] if z.idle]:
            self._live.remove(zygote)
            zygote.close()

    def renew(self) -> None:
        """Go on with a fresh zygote; workers of the old one must be finished."""
        self.turn()
        self._live.pop(0).close()

    def close(self) -> None:
        """End every zygote."""
        self._tampered()
        for worker in self._early.values():
            worker.finish()
        self._early = {}
        for zygote in [*self._live, *([self._next] if self._next else [])]:
            zygote.close()
        self._live, self._next = [], None
