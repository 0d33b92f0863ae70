"""Phase 3: every case, several seeds and regimes, and the probes that tell computing from remembering."""

from __future__ import annotations

import hashlib
import random
from typing import Any

from .arena import Arena, slot_bytes
from .arms import Nursery, Worker
from .content import Contents
from .session import ArmDied, Session
from .spec import Arm, Case
from .stats import Base, Measured, Want, measure

REGIMES = ("small", "large", "heavy_tail", "sparse")
SLOTS = 3
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
    try:
        for arm in verified_arms(session):
            workers.append(nursery.fork(arm))
            workers[-1].load()
        for case_ix, case in enumerate(session.cases):
            ordinal = 0
            for seed_ix in range(seeds):
                round_ = Round(session, workers, case, seed_ix, regime_of(case_ix, seed_ix, seeds), ordinal)
                try:
                    round_.go(calls, probe=case_ix == 0 and seed_ix == 0)
                finally:
                    round_.close()
                ordinal = round_.call_ix
    finally:
        for worker in workers:
            worker.finish()


class Round:
    """One case under one seed and regime, all arms side by side on the same content."""

    def __init__(
        self, session: Session, workers: list[Worker], case: Case, seed_ix: int, regime: str, ordinal: int
    ) -> None:
        self.session = session
        self.workers = workers
        self.case = case
        self.call_ix = ordinal
        self._full = seed_ix == 0
        """The contract's own content gets every probe; the other regimes a first call and a shuffled block."""
        self._seen: dict[tuple[str, str], dict[bytes, int]] = {}
        self._labels = {"seed_ix": seed_ix, "regime": regime, "pair": None}
        self._contents = Contents(session.frame, case, regime)
        room = session.job["limits"]["arena_bytes"] // slot_bytes(case)
        self._slots = max(min(SLOTS, room), 1)
        self._next = 0
        self._held = [self._fresh() for _ in range(self._slots)]
        self._arenas = {w.arm.name: Arena(session.frame, case, self._slots) for w in workers}
        self._bytes: dict[str, dict[str, bytes]] = {}

    def close(self) -> None:
        """Give the memory back."""
        for arena in self._arenas.values():
            arena.close()

    def _fresh(self) -> int:
        self._next += 1
        return self._next

    def _fill(self, arena: Arena) -> None:
        for slot, k in enumerate(self._held):
            arena.fill(slot, self._contents, k)

    def go(self, calls: int, *, probe: bool) -> None:
        """All probes of this round."""
        for worker in self.workers:
            arena = self._arenas[worker.arm.name]
            arena.fill_static(self._contents)
            self._fill(arena)
            worker.map(arena)
        first = _random.randrange(self._slots)
        for ix in range(calls if self._full else 1):
            self._held = [self._fresh() for _ in self._held]
            self._step("call" if ix == 0 else "repeat", [first])
        if not self._full:
            self._shuffled()
            return
        self._contents.poke(self._held[first])
        self._step("element", [first])
        if self.session.job.get("deterministic", True):
            self._again(first)
        self._shuffled()
        if probe and not self.session.job.get("library_calls", False):
            self._library(first)

    def _shuffled(self) -> None:
        """Several slots in one block, in an order nobody can foresee."""
        self._held = [self._fresh() for _ in self._held]
        order = list(range(self._slots))
        _random.shuffle(order)
        self._step("repeat", order if self._full else order[:2])

    def _again(self, first: int) -> None:
        other = (first + 1) % self._slots
        before = {arm: dict(got) for arm, got in self._bytes.items()}
        self._held[other] = self._held[first]
        self._step("bitwise", [other], before)

    def _step(self, probe: str, slots: list[int], before: dict[str, dict[str, bytes]] | None = None) -> None:
        session, case = self.session, self.case
        wants = {s: session.oracle.want(case, self._contents.inputs(self._held[s])) for s in slots}
        bases: dict[tuple[int, str], Measured] = {}
        for worker in self.workers:
            arena = self._arenas[worker.arm.name]
            self._fill(arena)
            worker.run(slots)
            ran = {s: self._held[s] for s in slots}
            held = {s: k for s, k in enumerate(self._held) if s not in ran}
            for kind, detail in arena.faults(ran, held, self._contents):
                session.event(worker.arm.name, kind, detail, case_id=case.case_id)
            self._bytes[worker.arm.name] = arena.output_bytes(slots[0])
            notes = _differences((before or {}).get(worker.arm.name, {}), self._bytes[worker.arm.name])
            for at, slot in enumerate(slots):
                self._compare(worker.arm, arena, slot, wants[slot], bases, probe, self.call_ix + at, notes)
        self.call_ix += len(slots)

    def _compare(
        self, arm: Arm, arena: Arena, slot: int, wants: dict[str, Want],
        bases: dict[tuple[int, str], Measured], probe: str, call_ix: int, notes: dict[str, str],
    ) -> None:  # fmt: skip
        got = arena.snapshot(slot)
        for name, want in wants.items():
            measured = measure(self.session.frame, got[name], want, arena.poison_view(name))
            if arm.is_baseline:
                bases[slot, name] = measured
                if self._labels["regime"] == "gen":
                    entry = Base(rms=measured.rms, max=measured.max, bias=measured.bias)
                    self.session.base.setdefault((self.case.case_id, name), []).append(entry)
            stale = self._stale(arm, arena, slot, name, call_ix) if probe != "bitwise" else ""
            if arm is not self.workers[-1].arm:
                continue  # its errors stand beside the candidate's already
            self.session.check(
                arm.name, self.case, measured, want, bases.get((slot, name)), output=name, probe=probe,
                call_ix=call_ix, note=notes.get(name, stale), **self._labels,
            )  # fmt: skip
        inputs = self._contents.inputs(self._held[slot])
        for text in self.session.oracle.violations(self.case, inputs, got):
            self.session.event(arm.name, "check.violation", text, case_id=self.case.case_id)

    def _stale(self, arm: Arm, arena: Arena, slot: int, name: str, call_ix: int) -> str:
        """Says so when these very bytes were the answer to other content before."""
        digest = hashlib.blake2b(arena.output_bytes(slot)[name], digest_size=16).digest()
        before = self._seen.setdefault((arm.name, name), {})
        seen = before.setdefault(digest, call_ix)
        return f"stale: the output of call {seen}, on other content" if seen != call_ix else ""

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
                text = "the call failed on watched tensors: " + str(gone).strip().rpartition("\n")[2]
                self.session.event(worker.arm.name, "note.library_probe", text, case_id=self.case.case_id)
                continue
            if ops:
                text = ", ".join(ops)
                self.session.event(worker.arm.name, "policy.library_call", text, case_id=self.case.case_id)


def _differences(before: dict[str, bytes], after: dict[str, bytes]) -> dict[str, str]:
    notes: dict[str, str] = {}
    for name, old in before.items():
        new = after[name]
        if old != new:
            count: Any = sum(a != b for a, b in zip(old, new, strict=True))
            notes[name] = f"{count} of {len(new)} bytes differ between two calls on the same content"
    return notes
