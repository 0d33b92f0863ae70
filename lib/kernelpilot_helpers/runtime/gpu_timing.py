"""Phase 4 on a GPU: a pilot that sizes the blocks, then pairs whose next workers start while one is measured."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from . import residency, tenancy
from .arena import slot_bytes, static_bytes
from .arms import Nursery, Worker
from .content import Contents
from .gpu_bench import GpuBench, Plan
from .looks import Looks
from .session import Session
from .spec import Arm, Case

CALLS_MIN, CALLS_MAX = 4, 4096
GROUP_US = 100.0
"""A group lasts at least this long: between its events, half a microsecond of their resolution is 0.5 %."""
SAMPLE_US = 300.0
ISOLATED_MAX = 64
PILOT_SLOTS = 4
PILOT_BLOCKS = 4
MEMORY_SHARE = 0.7
"""Of the free memory: what the arms' arenas may take together."""
OVERLAP_CORES = 3
"""Cores of the arms from which the next pair's workers may start while this pair is measured."""


def time_all(session: Session, nursery: Nursery) -> None:
    """All pairs; raises ArmDied at the first death, with the pairs so far kept."""
    course = Course(session, nursery)
    cases = [c for c in session.cases if c.timed]
    contents = {c.case_id: Contents(session.frame, c) for c in cases}
    with session.lap("time.pilot"):
        plans(session, nursery, contents, course)
    for case in cases:
        plan = session.plans[case.case_id]
        l2 = int(session.device.facts["l2_bytes"])
        session.residency += residency.entries(case, group=plan.group, copies=plan.copies, l2_bytes=l2)
    for p in range(course.pairs):
        _pair(session, nursery, course, contents, p)


def plans(
    session: Session, nursery: Nursery, contents: dict[str, Contents], course: Course | None = None
) -> dict[str, Plan]:  # fmt: skip
    """How each timed case is timed; found once a job, on workers of every arm side by side."""
    cases = [c for c in session.cases if c.timed and c.case_id not in session.plans]
    if not cases:
        return session.plans
    workers = start(nursery, [session.arms[n] for n in sorted(session.arms)])
    try:
        for worker in workers:
            worker.load()
        for case in cases:
            if course is not None:
                course.ahead(-1)
            session.plans[case.case_id] = _plan(session, workers, case, contents[case.case_id])
    finally:
        for worker in workers:
            worker.finish()
    return session.plans


def start(nursery: Nursery, arms: list[Arm]) -> list[Worker]:
    """Workers of ``arms``, all of them loading at once."""
    nursery.early(arms)
    return [nursery.fork(arm) for arm in arms]


def _plan(session: Session, workers: list[Worker], case: Case, contents: Contents) -> Plan:
    free = int(MEMORY_SHARE * session.device.free_bytes() / len(workers))
    room = min(int(session.job["limits"]["arena_bytes"]), free)
    slots = max(min(PILOT_SLOTS, room // slot_bytes(case)), 1)
    graph = session.job.get("graph", "may") != "never"
    pilot = Plan(
        case_id=case.case_id, figure="pipelined", method="graph" if graph else "events", calls=slots, group=slots,
        copies=1, hot=(), us=0.0,
    )  # fmt: skip
    bench = GpuBench(session, workers, case, pilot, contents, Looks(None))
    try:
        captured = bench.captured
        best = min(bench.block(workers[0], ix)[0] for ix in range(PILOT_BLOCKS)) / slots
    finally:
        bench.close()
    for worker in workers:
        if worker.arm.name in captured and not captured[worker.arm.name].ok:
            got, tested = captured[worker.arm.name], not worker.arm.is_baseline
            session.uncaptured(worker.arm, case.case_id, got.code, got.text, tested=tested)
    method = "graph" if graph and all(c.ok for c in captured.values()) else "events"
    plan = replace(pilot, figure=case.figure, method=method, us=max(best, 1.0) / 1000, hot=residency.hot_names(case))
    sample_us = float((session.job.get("time") or {}).get("sample_us", SAMPLE_US))
    return sized(case, plan, sample_us, room, int(session.device.facts["l2_bytes"]))


def sized(case: Case, plan: Plan, sample_us: float, room: int, l2_bytes: int) -> Plan:
    """``plan`` with its calls, groups and copies, for blocks of ``sample_us`` in ``room`` bytes an arm."""
    calls = min(max(math.ceil(sample_us / plan.us), CALLS_MIN), CALLS_MAX)
    group = max(min(math.ceil(GROUP_US / plan.us), calls), CALLS_MIN)
    if plan.figure == "isolated":
        calls, group = min(calls, ISOLATED_MAX), 1
    group = min(group, residency.group_limit(case, l2_bytes) or group)
    copies = residency.copies_of(case, group, l2_bytes, room // 2)
    fits = max((room - copies * static_bytes(case)) // slot_bytes(case), 1)
    group = min(group, fits)
    calls = max(min(math.ceil(calls / group), fits // group), 1) * group
    return replace(plan, calls=calls, group=group, copies=min(copies, calls))


class Course:
    """Which workers each pair gets; the next pair's are started while one is measured, where there are cores."""

    def __init__(self, session: Session, nursery: Nursery) -> None:
        spec = session.job["time"]
        self.pairs: int = spec["pairs"]
        self._first: int = spec.get("first_pair", 0)
        self._every = max(spec.get("zygote_pairs", 2), 1)
        self._session = session
        self._nursery = nursery
        self._overlap = len(session.cores) >= OVERLAP_CORES
        self._begun = self._turned = -1

    def number(self, p: int) -> int:
        """The pair's number over several jobs."""
        return self._first + p

    def names(self, p: int) -> list[str]:
        """Arms in the order in which they start and get their memory: A or B first in turn, Z last."""
        first = "A" if self.number(p) % 2 == 0 else "B"
        return sorted(self._session.arms, key=lambda n: (n == "Z", n != first))

    def start(self, p: int) -> list[Worker]:
        """The workers of pair ``p``, loading."""
        self._begin(p, wait=True)
        workers = [self._nursery.fork(self._session.arms[name]) for name in self.names(p)]
        for worker in workers:
            worker.pair = self.number(p)
        self._nursery.retire()
        if any(q % self._every == 0 for q in range(p + 1, self.pairs)):
            self._nursery.start_next()
        return workers

    def ahead(self, p: int) -> None:
        """A moment at which nothing is timed in pair ``p``: the next pair's workers may begin or go on."""
        if self._overlap and p + 1 < self.pairs:
            self._begin(p + 1, wait=False)
            self._nursery.advance()

    def _begin(self, p: int, *, wait: bool) -> None:
        if self._begun >= p:
            return
        if p and p % self._every == 0 and self._turned < p:
            if not (wait or self._nursery.next_ready()):
                return
            self._nursery.turn()
            self._turned = p
        self._nursery.early(self._session.arms[name] for name in self.names(p))
        self._begun = p


def _pair(session: Session, nursery: Nursery, course: Course, contents: dict[str, Contents], p: int) -> None:
    looks, pair = Looks(session.nvml), course.number(p)
    workers: list[Worker] = []
    try:
        with session.lap("time.start"):
            workers += course.start(p)
            for worker in workers:
                worker.load()
        for case in [c for c in session.cases if c.timed]:
            with session.lap("time.ahead"):
                course.ahead(p)
            _case(session, workers, case, contents[case.case_id], looks, pair)
        tenancy.still_alone(session.nvml, {w.pid for w in workers} | nursery.pids())
    finally:
        for worker in workers:
            worker.finish()
        nursery.retire()
        entry = looks.entry("time", pair)
        if entry is not None:
            session.gpu_looks.append(entry)


def _case(
    session: Session, workers: list[Worker], case: Case, contents: Contents, looks: Looks, pair: int
) -> None:  # fmt: skip
    plan: Any = session.plans[case.case_id]
    with session.lap("time.map"):
        bench = GpuBench(session, workers, case, plan, contents, looks)
    try:
        for worker in workers:
            got = bench.captured.get(worker.arm.name)
            if got is not None and not got.ok:  # it could be captured in the pilot
                session.event(worker.arm.name, got.code, got.text, case_id=case.case_id, pair=pair)
                raise worker.lost(f"{got.code}: {got.text}")
        looks.sample()
        with session.lap("time.blocks"):
            shots = bench.go(pair, workers[0].arm.name)
        looks.sample()
        with session.lap("time.judge"):
            bench.judge(shots, pair)
    finally:
        with session.lap("time.close"):
            bench.close()
