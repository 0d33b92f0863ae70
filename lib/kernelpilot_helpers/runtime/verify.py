"""Phase 3: every case, several seeds and regimes, and the probes that tell computing from remembering."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .arena import Arena, open_arena, slot_bytes
from .arms import Nursery, Worker
from .content import Contents
from .gpu_arena import GpuArena
from .session import ArmDied, Session
from .spec import Arm, Case
from .stats import Base, Measured, Want, lean, measure
from .uses import Uses

REGIMES = ("small", "large", "heavy_tail", "sparse")
SLOTS = 3
ALONE = ("bitwise", "graph", "late")
"""GPU: probes of remembering, not of accuracy; the candidate makes them alone, on the contract's own content."""
BIG = 64 << 20
"""GPU: cases whose outputs take more bytes get no more calls and slots than the probes need: a block of two."""
WARM = -1
"""Number of the calls that an arm makes before the first one that is checked."""
AHEAD_BYTES = 8 << 30
"""Free memory of the device from which on the next phase's workers may make their contexts during this one."""
AHEAD_CORES = 3
_random = random.SystemRandom()


def verified_arms(session: Session) -> list[Arm]:
    """The baseline first (its error is the yardstick), then the candidate, else the incumbent."""
    base = session.baseline
    candidate = session.arms.get("B") or session.arms.get("A")
    return [a for a in dict.fromkeys((base, candidate)) if a is not None]


def regime_of(case_ix: int, seed_ix: int, seeds: int) -> str:
    """The contract's own generator first; the others in rotation over cases and seeds."""
    return "gen" if seed_ix == 0 else REGIMES[(case_ix * max(seeds - 1, 1) + seed_ix - 1) % len(REGIMES)]


def verify(session: Session, nursery: Nursery) -> None:
    """Verify the arms on all cases; raises ArmDied at the first death."""
    spec = session.job["verify"] or {}
    seeds, calls = max(spec.get("seeds", 3), 1), max(spec.get("calls", 3), 2)
    workers: list[Worker] = []
    uses = Uses(session) if session.gpu else None
    try:
        with session.lap("verify.start"):
            workers += [nursery.fork(arm) for arm in verified_arms(session)]
            for worker in workers:
                worker.load()
        ahead(session, nursery)
        for case_ix, case in enumerate(session.cases):
            ordinal = 0
            for seed_ix in range(seeds):
                regime = regime_of(case_ix, seed_ix, seeds)
                round_ = Round(session, workers, case, seed_ix, regime, ordinal, uses=uses)
                try:
                    round_.go(calls, probe=case_ix == 0 and seed_ix == 0)
                finally:
                    with session.lap("verify.arena"):
                        round_.close()
                ordinal = round_.call_ix
                nursery.advance()
        if uses is not None:
            with session.lap("verify.inventory"):
                uses.settle(workers[-1])
    finally:
        for worker in workers:
            worker.finish()


def ahead(session: Session, nursery: Nursery) -> None:
    """Start the workers of the timing's pilot, where they have cores and memory: nothing is timed meanwhile."""
    timed = "time" in session.job["phases"] and session.job.get("time") and any(c.timed for c in session.cases)
    if session.gpu and timed and len(session.cores) >= AHEAD_CORES and session.device.free_bytes() >= AHEAD_BYTES:
        nursery.early(session.arms.values())


class Round:
    """One case under one seed and regime, all arms side by side on the same content."""

    def __init__(
        self, session: Session, workers: list[Worker], case: Case, seed_ix: int, regime: str, ordinal: int, *,
        uses: Uses | None = None,
    ) -> None:  # fmt: skip
        self.session = session
        self.workers = workers
        self.case = case
        self.call_ix = ordinal
        self._full = seed_ix == 0
        """The contract's own content gets every probe; the other regimes a first call and a shuffled block."""
        self._big = session.gpu and sum(t.span * t.itemsize for t in case.outputs) > BIG
        self._seen: dict[tuple[str, str], dict[bytes, int]] = {}
        self._labels = {"seed_ix": seed_ix, "regime": regime, "pair": None}
        self._uses = uses
        with session.lap("verify.contents"):
            self._contents = Contents(session.frame, case, regime)
        room = session.job["limits"]["arena_bytes"] // slot_bytes(case)
        self._slots = max(min(2 if self._big else SLOTS, room), 2 if session.gpu else 1)
        self._next = 0
        self._held = [self._fresh() for _ in range(self._slots)]
        self._arenas: dict[str, Arena | GpuArena] = {}
        self._wants: dict[int, dict[str, Want]] = {}

    def close(self) -> None:
        """Give the memory back."""
        for worker in self.workers:
            if self.session.gpu and worker.alive and worker.arm.name in self._arenas:
                with contextlib.suppress(ArmDied):  # the next command finds it dead, too
                    worker.drop()
        for arena in self._arenas.values():
            arena.close()

    def _fresh(self) -> int:
        self._next += 1
        return self._next

    def _renew(self) -> None:
        """Other content for every slot."""
        self._held = [self._fresh() for _ in self._held]

    def _fill(self, arena: Arena | GpuArena) -> None:
        with self.session.lap("verify.fill"):
            arena.fill_all(self._contents, self._held)
            arena.ready()

    def _map(self) -> None:
        lap = self.session.lap
        for worker in self.workers:
            with lap("verify.arena"):
                arena = self._arenas[worker.arm.name] = open_arena(self.session, self.case, self._slots)
                arena.fill_static(self._contents)
            self._fill(arena)
            with lap("verify.arena"):
                worker.map(arena)
            if self.session.gpu:
                with lap("verify.warm"):
                    worker.warm(range(self._slots))
        if self.session.gpu:  # what is given again as the answer to other content is known from here on
            for slot in range(self._slots):
                self._stale(self.workers[-1].arm, self._arenas[self.workers[-1].arm.name], slot, WARM)

    def go(self, calls: int, *, probe: bool) -> None:
        """All probes of this round."""
        self._map()
        first = _random.randrange(self._slots)
        for ix in range(calls if self._full and not self._big else 1):
            self._renew()
            self._step("call" if ix == 0 else "repeat", [first])
        if not self._full:
            if not self._big:
                self._shuffled()
            return
        self._contents.poke(self._held[first])
        self._wants.pop(self._held[first], None)
        self._step("element", [first])
        if self.session.job.get("deterministic", True):
            self._again(first)
        self._shuffled()
        if self.session.gpu:
            self._device_probes(first)
        elif probe and not self.session.job.get("library_calls", False):
            self._library(first)

    def _shuffled(self) -> None:
        """Several slots in one block, in an order nobody can foresee."""
        self._renew()
        order = list(range(self._slots))
        _random.shuffle(order)
        self._step("repeat", order if self._full else order[:2])

    def _again(self, first: int) -> None:
        last = self.workers[-1].arm.name
        before = {last: self._arenas[last].keep(first)}
        other = (first + 1) % self._slots
        self._held[other] = self._held[first]
        self._step("bitwise", [other], before=before)

    def _device_probes(self, first: int) -> None:
        if self.session.job.get("graph", "may") != "never":
            self._graph()
        self._renew()
        source = (first + 1) % self._slots
        self._step("late", [first], act=lambda w: w.late(first, source), content={first: self._held[source]})

    def _graph(self) -> None:
        """Calls captured over one content and replayed over another: nothing may have been decided at capture."""
        self._renew()
        order = list(range(self._slots))
        _random.shuffle(order)
        with self.session.lap("verify.capture"):
            captured = self._capture(self.workers[-1], order)
        if captured:
            self._renew()
            self._step("graph", order, act=lambda w: w.replay())

    def _capture(self, worker: Worker, order: Sequence[int]) -> bool:
        self._fill(self._arenas[worker.arm.name])
        got = worker.capture([order])
        if not got.ok:
            last = worker is self.workers[-1]
            self.session.uncaptured(worker.arm, self.case.case_id, got.code, got.text, tested=last)
        elif self._uses is not None and worker is self.workers[-1]:
            self._uses.captured(self.case, got.names)
        return got.ok

    def _want(self, k: int) -> dict[str, Want]:
        """What content ``k`` gives: the reference runs once for it, however many arms and probes ask."""
        if k not in self._wants:
            for gone in self._wants.keys() - set(self._held):
                del self._wants[gone]
            with self.session.lap("verify.want"):
                self._wants[k] = self.session.oracle.want(self.case, self._contents.inputs(k))
        return self._wants[k]

    def _step(
        self, probe: str, slots: Sequence[int], *, before: Mapping[str, Any] | None = None,
        act: Callable[[Worker], Any] | None = None, content: Mapping[int, int] | None = None,
    ) -> None:  # fmt: skip
        """Fresh memory, one block of calls on ``slots`` (or ``act``), every output compared.

        ``content`` says what the called slots hold in the end where that is not what they were filled with.
        """
        session, case = self.session, self.case
        ran = dict(content or {s: self._held[s] for s in slots})
        held = {s: k for s, k in enumerate(self._held) if s not in ran}
        wants = {s: self._want(k) for s, k in ran.items()}
        bases: dict[tuple[int, str], Measured] = {}
        for worker in self._asked(probe):
            arena = self._arenas[worker.arm.name]
            self._fill(arena)
            with session.lap("verify.run"):
                if act is None:
                    worker.run(slots)
                else:
                    act(worker)
            with session.lap("verify.faults"):
                for kind, detail in arena.faults(ran, held, self._contents):
                    session.event(worker.arm.name, kind, detail, case_id=case.case_id)
            for at, slot in enumerate(slots):
                notes: dict[str, str] = {}
                if worker is self.workers[-1]:
                    with session.lap("verify.digest"):
                        again = arena.differ(before[worker.arm.name], slot) if before else None
                        notes = self._stale(worker.arm, arena, slot, self.call_ix + at) if again is None else again
                with session.lap("verify.measure"):
                    self._compare(worker.arm, arena, slot, wants[slot], bases, probe, self.call_ix + at, notes)
                    self._violations(worker.arm, self._contents.inputs(ran[slot]), arena, slot)
        self.call_ix += len(slots)

    def _compare(
        self, arm: Arm, arena: Arena | GpuArena, slot: int, wants: dict[str, Want],
        bases: dict[tuple[int, str], Measured], probe: str, call_ix: int, notes: dict[str, str],
    ) -> None:  # fmt: skip
        got = arena.snapshot(slot)
        for name, want in wants.items():
            measured = measure(self.session.frame, got[name], want, arena.poison_view(name))
            if arm.is_baseline:
                bases[slot, name] = lean(measured)
                if self._labels["regime"] == "gen":
                    entry = Base(rms=measured.rms, max=measured.max, bias=measured.bias)
                    self.session.base.setdefault((self.case.case_id, name), []).append(entry)
            if arm is not self.workers[-1].arm:
                continue  # its errors stand beside the candidate's already
            known = self.session.base_of(self.case, name) if probe in ALONE else None
            self.session.check(
                arm.name, self.case, measured, want, bases.get((slot, name)) or known, output=name, probe=probe,
                call_ix=call_ix, note=notes.get(name, ""), **self._labels,
            )  # fmt: skip

    def _asked(self, probe: str) -> list[Worker]:
        """Who answers a probe: the baseline need not where its error on this case is known from the calls before."""
        return self.workers[-1:] if self.session.gpu and probe in ALONE else self.workers

    def _violations(self, arm: Arm, inputs: dict[str, Any], arena: Arena | GpuArena, slot: int) -> None:
        if self.session.oracle.checks:
            for text in self.session.oracle.violations(self.case, inputs, arena.snapshot(slot)):
                self.session.event(arm.name, "check.violation", text, case_id=self.case.case_id)

    def _stale(self, arm: Arm, arena: Arena | GpuArena, slot: int, call_ix: int) -> dict[str, str]:
        """By output: says so where these very bytes were the answer to other content before."""
        notes = {}
        for name, digest in arena.digest(slot).items():
            seen = self._seen.setdefault((arm.name, name), {}).setdefault(digest, call_ix)
            if seen != call_ix:
                which = "a call before the first one" if seen == WARM else f"call {seen}"
                notes[name] = f"stale: the output of {which}, on other content"
        return notes

    def _library(self, slot: int) -> None:
        for worker in self.workers:
            if worker.arm.is_baseline:
                continue
            self._fill(self._arenas[worker.arm.name])
            try:
                ops = worker.probe(slot)
            except ArmDied as gone:
                if not worker.alive:
                    raise
                text = f"the call failed on watched tensors: {gone.last_line}"
                self.session.event(worker.arm.name, "note.library_probe", text, case_id=self.case.case_id)
                continue
            if ops:
                text = ", ".join(ops)
                self.session.event(worker.arm.name, "policy.library_call", text, case_id=self.case.case_id)
