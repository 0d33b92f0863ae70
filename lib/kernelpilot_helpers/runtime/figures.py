"""Reported figures besides the one that decides: each arm alone, case by case, on fresh content."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from . import gpu_timing
from .arena import open_arena
from .arms import Nursery, Worker
from .commands import Ticks
from .content import Contents
from .gpu_bench import Plan
from .looks import Looks
from .score import OURS
from .session import ArmDied, Session
from .spec import Case

REPLAYS = 5
HOST_CALLS = 64
SUSTAINED_S = 2.0
SHORT_US, SHORT_S = 100.0, 1.0
"""Calls shorter than this are sustained for so long: they are repeated often enough."""
CHUNK_NS = 100_000_000
"""A sustained stretch is asked for in pieces of about this long."""


def measure(session: Session, nursery: Nursery) -> None:
    """Append ``raw.FigureTime`` of A and B for every timed case; raises ArmDied at the first death."""
    cases = [c for c in session.cases if c.timed]
    contents = {c.case_id: Contents(session.frame, c) for c in cases}
    plans = gpu_timing.plans(session, nursery, contents)
    workers = gpu_timing.start(nursery, [session.arms[n] for n in ("A", "B") if n in session.arms])
    looks = Looks(session.nvml)
    try:
        for worker in workers:
            worker.load()
        for case in cases:
            for worker in workers:
                with Solo(session, worker, case, plans[case.case_id], contents[case.case_id], looks) as solo:
                    solo.go((*session.job.get("report", ()), *OURS))
            looks.sample()
    finally:
        for worker in workers:
            worker.finish()
        entry = looks.entry("figures")
        if entry is not None:
            session.gpu_looks.append(entry)


class Solo:
    """One arm on one case, nobody beside it."""

    def __init__(
        self, session: Session, worker: Worker, case: Case, plan: Plan, contents: Contents, looks: Looks
    ) -> None:  # fmt: skip
        self._session = session
        self._worker = worker
        self._case = case
        self._plan = plan
        self._contents = contents
        self._looks = looks
        self._at = 0
        self._arena = open_arena(session, case, plan.calls, plan.copies)

    def __enter__(self) -> Solo:
        self._contents.restart()
        self._arena.fill_static(self._contents)
        self._fresh()
        try:
            self._worker.map(self._arena)
            self._worker.warm([0])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker.alive:
            with contextlib.suppress(ArmDied):
                self._worker.drop()
        self._arena.close()

    def _fresh(self) -> None:
        calls = self._plan.calls
        self._arena.fill_all(self._contents, range(self._at * calls, (self._at + 1) * calls))
        self._arena.ready()
        self._at += 1

    def go(self, figures: tuple[str, ...]) -> None:
        """Measure what was asked for, and what the worker's preparation took."""
        for stage, ns in self._worker.prepare_ns.items():
            self._add(stage, ns / 1000)
        for figure in dict.fromkeys(figures):
            if figure == "host":
                self._host()
            elif figure == "sustained":
                self._sustained()
            else:
                self._spans(figure)

    def _spans(self, figure: str) -> None:
        plan = replace(self._plan, figure=figure)
        if figure == "isolated":
            plan = replace(plan, group=1, calls=min(plan.calls, gpu_timing.ISOLATED_MAX))
        elif self._plan.figure == "isolated":  # groups of one would make every figure an isolated one
            plan = replace(plan, group=plan.calls)
        note, found = "", []
        for ticks in self._ticks(plan, own=figure not in OURS):
            if isinstance(ticks, str):
                note = ticks
                continue
            ns = plan.ns(ticks)
            if ns is None:
                raise self._worker.forged("a reply without some of its ticks")
            found.append(ns / plan.calls / 1000)
        self._add(figure, statistics.median(found), note=note)

    def _ticks(self, plan: Plan, *, own: bool) -> Iterator[Ticks | str]:
        """Replays on fresh content; events instead, with a word on it, where calls cannot be captured."""
        graph = plan.method == "graph" or not own
        if graph:
            got = self._worker.capture(plan.groups, figure=plan.figure, hot=plan.hot)
            graph = got.ok
        if not graph:
            yield "by event pairs: not captured"
        for _ in range(REPLAYS):
            self._fresh()
            yield self._worker.replay() if graph else self._play(plan)

    def _play(self, plan: Plan) -> Ticks:
        return self._worker.play(plan.groups, figure=plan.figure, hot=plan.hot)

    def _host(self) -> None:
        slots = range(min(self._plan.calls, HOST_CALLS))
        found = []
        for _ in range(REPLAYS):
            self._fresh()
            found.append(self._worker.host(slots) / len(slots) / 1000)
        self._add("host", statistics.median(found))

    def _sustained(self) -> None:
        """Back to back for a second or two, the same content again and again: time and energy at the power limit."""
        plan = self._plan
        groups = [list(range(plan.calls))]
        graph = plan.method == "graph" and self._worker.capture(groups, figure="sustained").ok
        self._fresh()
        once = self._worker.replay().ns if graph else self._worker.play(groups, figure="sustained").ns
        times = max(1, min(CHUNK_NS // max(once, 1), 10_000))
        ns, calls, began, energy = 0, 0, time.monotonic(), self._looks.energy_mj()
        lasts = SHORT_S if once < SHORT_US * 1000 * plan.calls else SUSTAINED_S
        while time.monotonic() - began < lasts:
            if graph:
                ns += self._worker.replay(times).ns
                calls += times * plan.calls
            else:
                ns += self._worker.play(groups, figure="sustained").ns
                calls += plan.calls
        after = self._looks.energy_mj()
        used = after - energy if energy is not None and after is not None else 0
        joules = used / 1000 / calls if used > 0 else None
        self._add("sustained", ns / calls / 1000, joules=joules, note="" if graph else "by event pairs: not captured")

    def _add(self, figure: str, us: float, *, joules: float | None = None, note: str = "") -> None:
        entry: dict[str, Any] = {
            "arm": self._worker.arm.name, "case_id": self._case.case_id, "figure": figure, "us": us, "joules": joules,
            "note": note,
        }  # fmt: skip
        self._session.figures.append({k: v for k, v in entry.items() if v not in (None, "")})
