"""Phase 4: cross-over pairs of fresh workers, blocks in ABBA order, and rechecks nobody can foresee."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from .arena import Arena, slot_bytes
from .arms import Nursery, Worker
from .content import Contents
from .odd import odd_calls
from .session import Session
from .spec import Case
from .stats import Measured, measure

CALLS_MAX = 4096
PILOT_SLOTS = 4
PILOT_BLOCKS = 4
WARM_BLOCKS = 4
"""Untimed blocks first: measured on a CPU, an arm gets a few per cent faster over its first four."""
_random = random.SystemRandom()


@dataclass(frozen=True, kw_only=True)
class Shot:
    """Outputs of one slot, copied right after the reply of one timed block."""

    arm: str
    block: int
    k: int
    outputs: dict[str, Any]


def time_all(session: Session, nursery: Nursery) -> None:
    """All pairs; raises ArmDied at the first death, with the pairs so far kept."""
    spec = session.job["time"]
    cases = [c for c in session.cases if c.timed]
    contents = {c.case_id: Contents(session.frame, c) for c in cases}
    calls = _pilot(session, nursery, cases, contents)
    for p in range(spec["pairs"]):
        every = max(spec.get("zygote_pairs", 2), 1)
        if p and p % every == 0:
            nursery.renew()
        pair = spec.get("first_pair", 0) + p
        renews = p + 1 < spec["pairs"] and (p + 1) % every == 0
        _pair(session, nursery, calls, contents, pair, renews=renews)


def _pilot(session: Session, nursery: Nursery, cases: list[Case], contents: dict[str, Contents]) -> dict[str, int]:
    """Calls per block by case, from the incumbent's own speed: the same number for every arm and pair."""
    arm = session.arms.get("A") or next(iter(session.arms.values()))
    worker = nursery.fork(arm)
    calls = {}
    try:
        worker.load()
        for case in cases:
            room = max(session.job["limits"]["arena_bytes"] // slot_bytes(case), 1)
            slots = min(PILOT_SLOTS, room)
            bench = Bench(session, [worker], case, slots, contents[case.case_id])
            try:
                best = min(bench.block(worker, ix)[0] for ix in range(PILOT_BLOCKS)) / slots
            finally:
                bench.close()
            calls[case.case_id] = max(
                1, min(math.ceil(session.job["time"]["sample_us"] * 1000 / max(best, 1.0)), room, CALLS_MAX)
            )
    finally:
        worker.finish()
    return calls


def _pair(
    session: Session, nursery: Nursery, calls: dict[str, int], contents: dict[str, Contents], pair: int, *, renews: bool
) -> None:  # fmt: skip
    first = "A" if pair % 2 == 0 else "B"
    names = sorted(session.arms, key=lambda n: (n == "Z", n != first))
    workers: list[Worker] = []
    try:
        for name in names:
            worker = nursery.fork(session.arms[name])
            worker.pair = pair
            workers.append(worker)
            worker.load()
        cases = [c for c in session.cases if c.timed]
        for case in cases:
            bench = Bench(session, workers, case, calls[case.case_id], contents[case.case_id])
            try:
                shots = bench.go(pair, names[0])
                if renews and case is cases[-1]:
                    nursery.start_next()  # it imports on the arms' core while the rechecks need only ours
                bench.judge(shots, pair)
            finally:
                bench.close()
    finally:
        for worker in workers:
            worker.finish()


class Bench:
    """One case in one pair: an arena an arm, the same content sequence for all of them."""

    def __init__(self, session: Session, workers: list[Worker], case: Case, calls: int, contents: Contents) -> None:
        self.session = session
        self.workers = workers
        self.case = case
        self.calls = calls
        self._contents = contents
        contents.restart()
        self._arenas: dict[str, Any] = {}
        for worker in workers:
            self._arenas[worker.arm.name] = self._arena()
        for worker in workers:
            arena = self._arenas[worker.arm.name]
            arena.fill_static(self._contents)
            self._fill(arena, 0)
            self._map(worker, arena)

    def _arena(self) -> Any:
        return Arena(self.session.frame, self.case, self.calls)

    def _map(self, worker: Worker, arena: Any) -> None:
        worker.map(arena)

    def close(self) -> None:
        """Give the memory back."""
        for arena in self._arenas.values():
            arena.close()

    def _fill(self, arena: Any, block: int) -> None:
        for slot in range(self.calls):
            arena.fill(slot, self._contents, block * self.calls + slot)

    def block(self, worker: Worker, block: int) -> tuple[int, int]:
        """Fresh content, one block: (worker's ns, our ns)."""
        self._fill(self._arenas[worker.arm.name], block)
        return worker.run(range(self.calls))

    def go(self, pair: int, first_arm: str) -> list[Shot]:
        """Warm up, then all timed blocks; the outputs of the blocks drawn for a recheck."""
        spec = self.session.job["time"]
        blocks = spec["blocks"]
        ticks: dict[str, list[tuple[int, int]]] = {w.arm.name: [] for w in self.workers}
        share = spec.get("recheck_share", 0.1)
        looks = {b for b in range(blocks) if _random.random() < share} or {_random.randrange(blocks)}
        shots: list[Shot] = []
        for warm in range(WARM_BLOCKS):
            for worker in self._order(warm):
                self.block(worker, warm)
        for at in range(blocks):
            block = WARM_BLOCKS + at
            look = _random.randrange(self.calls) if at in looks else None
            for worker in self._order(block):
                ticks[worker.arm.name].append(self.block(worker, block))
                self._after(worker, at)
                if look is not None:
                    shots.append(self._shot(worker, block, look))
            if look is not None:
                shots += self._odd(block, look)
        for worker in self.workers:
            self._trespasses(worker, range(self.calls), self._last(worker, blocks), pair)
            ns, wall = zip(*ticks[worker.arm.name], strict=True)
            sample = {"pair": pair, "first_arm": first_arm, "case_id": self.case.case_id, "arm": worker.arm.name}
            more = self._facts(worker, blocks)
            self.session.samples.append({**sample, "calls": self.calls, "ns": ns, "wall_ns": wall, **more})
        return shots

    def _after(self, worker: Worker, at: int) -> None:
        """Right after the reply to timed block ``at``."""

    def _facts(self, worker: Worker, blocks: int) -> dict[str, Any]:  # noqa: ARG002
        """What a device adds to ``raw.Samples``."""
        return {}

    def _order(self, block: int) -> list[Worker]:
        pair = [w for w in self.workers if w.arm.name != "Z"]
        rest = [w for w in self.workers if w.arm.name == "Z"]
        return (pair if block % 2 else pair[::-1]) + (rest if block % 2 == 0 else [])

    def _last(self, worker: Worker, blocks: int) -> int:
        """The block whose content this arm's memory holds at the end."""
        return next(b for b in range(WARM_BLOCKS + blocks - 1, -1, -1) if worker in self._order(b))

    def _odd(self, block: int, judged: int) -> list[Shot]:
        """Every arm's outputs of the calls in which an arm is oddly far from the first one."""
        present = sorted(self._order(block), key=lambda w: w.arm.name)
        first, *others = (self._arenas[w.arm.name] for w in present)
        odd = set().union(*(odd_calls(self.session.frame, other, first, judged) for other in others))
        return [self._shot(worker, block, slot) for slot in sorted(odd - {judged}) for worker in present]

    def _shot(self, worker: Worker, block: int, slot: int) -> Shot:
        outputs = self._arenas[worker.arm.name].snapshot(slot)
        self._trespasses(worker, (slot,), block, worker.pair)
        return Shot(arm=worker.arm.name, block=block, k=block * self.calls + slot, outputs=outputs)

    def _trespasses(self, worker: Worker, slots: Any, block: int, pair: int | None) -> None:
        ran = {s: block * self.calls + s for s in slots}
        for kind, detail in self._arenas[worker.arm.name].faults(ran, {}, self._contents):
            self.session.event(worker.arm.name, kind, detail, case_id=self.case.case_id, pair=pair)

    def judge(self, shots: list[Shot], pair: int) -> None:
        """Compare what was copied with the reference; nothing is timed meanwhile."""
        baseline = self.session.baseline
        shots = sorted(shots, key=lambda s: (s.k, baseline is None or s.arm != baseline.name))
        wants: dict[str, Any] = {}
        bases: dict[str, Measured] = {}
        k = -1
        for shot in shots:
            if shot.k != k:
                k, bases = shot.k, {}
                wants = self.session.oracle.want(self.case, self._contents.inputs(shot.k))
            arena = self._arenas[shot.arm]
            for name, want in wants.items():
                measured = measure(self.session.frame, shot.outputs[name], want, arena.poison_view(name))
                if baseline is not None and shot.arm == baseline.name:
                    bases[name] = measured
                base = bases.get(name) or self.session.base_of(self.case, name)
                self.session.check(
                    shot.arm, self.case, measured, want, base, output=name,
                    probe="timed", call_ix=shot.block - WARM_BLOCKS, note="", pair=pair, seed_ix=0, regime="gen",
                )  # fmt: skip
