"""One case in one pair on a GPU: a block is one replay of a captured graph, or the same calls between events."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass
from typing import Any

from .arena import open_arena
from .arms import Worker
from .commands import Captured, Ticks
from .content import Contents
from .looks import Looks
from .score import OURS
from .session import ArmDied, Session
from .spec import Case
from .stamps import Stamped
from .timing import Bench

LATE_NS = 1_000_000
"""A context that has just been waited for is idle: more than this is work begun after the reply."""
LATE_TRIES = 3
"""The host itself may be held up once; a candidate that goes on working is late every time."""
_random = random.SystemRandom()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How one case is timed: the same for every arm and pair. ``us``: the incumbent's time a call in the pilot."""

    case_id: str
    figure: str
    method: str
    calls: int
    group: int
    copies: int
    hot: tuple[str, ...]
    us: float

    @property
    def groups(self) -> list[list[int]]:
        """Slots of each group; the cache is flushed before each of them."""
        return [list(range(at, min(at + self.group, self.calls))) for at in range(0, self.calls, self.group)]

    @property
    def spans(self) -> int:
        """Spans of a block."""
        return len(self.groups) * (2 if self.figure == "chained" else 1)

    def ns(self, ticks: Ticks) -> int | None:
        """Nanoseconds of all calls: of a chain, what the calls add to it. None where a span is missing."""
        chained = self.figure == "chained"
        spans = ticks.spans[:-1] if self.figure in OURS else ticks.spans
        if len(spans) != self.spans:
            return None
        if chained:
            return max(sum(spans[0::2]) - sum(spans[1::2]), 1)
        return sum(spans)


class GpuBench(Bench):
    """See Bench; every arm's calls are captured once, over the slots that all blocks use."""

    def __init__(
        self, session: Session, workers: list[Worker], case: Case, plan: Plan, contents: Contents, looks: Looks
    ) -> None:  # fmt: skip
        self.plan = plan
        self.captured: dict[str, Captured] = {}
        self._looks = looks
        self._mhz: dict[str, list[int]] = {w.arm.name: [] for w in workers}
        self._stamped: dict[str, list[Stamped | None]] = {w.arm.name: [] for w in workers}
        self._idle = _random.randrange(max((session.job.get("time") or {}).get("blocks", 1), 1))
        session.device.reset_persisting_l2()
        contents.rotate(plan.calls, plan.copies)
        try:
            super().__init__(session, workers, case, plan.calls, contents)
        except BaseException:
            self.close()
            raise

    def _arena(self) -> Any:
        return open_arena(self.session, self.case, self.plan.calls, self.plan.copies)

    def _map(self, worker: Worker, arena: Any) -> None:
        arena.ready()
        worker.map(arena)
        worker.warm([0])
        if self.plan.method == "graph":
            plan = self.plan
            self.captured[worker.arm.name] = worker.capture(plan.groups, figure=plan.figure, hot=plan.hot)

    def close(self) -> None:
        """Give the memory back, after the workers have let go of it."""
        for worker in self.workers:
            if worker.alive:
                with contextlib.suppress(ArmDied):
                    worker.drop()
        super().close()

    def _fill(self, arena: Any, block: int) -> None:
        arena.fill_all(self._contents, range(block * self.calls, (block + 1) * self.calls))

    def block(self, worker: Worker, block: int) -> tuple[int, int]:
        """Fresh content, one replay: (GPU ns, our ns)."""
        plan, arena = self.plan, self._arenas[worker.arm.name]
        self._fill(arena, block)
        arena.unstamp()
        arena.ready()
        graph = plan.method == "graph" and self.captured[worker.arm.name].ok
        ticks = worker.replay() if graph else worker.play(plan.groups, figure=plan.figure, hot=plan.hot)
        self._mhz[worker.arm.name].append(self._looks.mhz())
        ns = plan.ns(ticks)
        if ns is None:
            raise worker.forged("a reply without some of its ticks")
        self._stamped[worker.arm.name].append(self._read(worker, arena))
        return ns, ticks.wall_ns

    def _read(self, worker: Worker, arena: Any) -> Stamped | None:
        found = arena.stamped(self.plan.spans)
        if isinstance(found, str):
            self.session.event(worker.arm.name, "cheat.clock", found, case_id=self.case.case_id, pair=worker.pair)
            return None
        return found  # type: ignore[no-any-return]

    def _after(self, worker: Worker, at: int) -> None:
        if at == self._idle and all(worker.sync() > LATE_NS for _ in range(LATE_TRIES)):
            text = f"the GPU was still busy {LATE_NS // 1_000_000} ms after the reply"
            self.session.event(worker.arm.name, "cheat.late_work", text, case_id=self.case.case_id, pair=worker.pair)

    def _facts(self, worker: Worker, blocks: int) -> dict[str, Any]:
        mhz = self._mhz[worker.arm.name][-blocks:]
        facts: dict[str, Any] = {"figure": self.plan.figure, "method": self.plan.method}
        stamped = [s for s in self._stamped[worker.arm.name][-blocks:] if s is not None]
        if len(stamped) == blocks:
            chained = [self.plan.ns(Ticks(spans=s.spans, wall_ns=0)) for s in stamped]
            facts.update(
                groups=self.plan.spans, stamp_ns=tuple(chained), flush_ns=tuple(sum(s.flushes) for s in stamped)
            )
        return {**facts, "mhz": tuple(mhz)} if all(mhz) else facts
