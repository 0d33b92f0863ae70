"""What a worker can be asked, command by command, and what may be believed of its replies."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .session import ArmDied, Session

PROFILER_S = 15.0
"""The profiler's first start in a process, on a busy machine."""


@dataclass(frozen=True, kw_only=True)
class Captured:
    """Whether calls could be captured into a graph; ``code`` and ``text`` say why not."""

    kernels: int = 0
    names: tuple[str, ...] = ()
    """What the calls run, each once (``graphs.Program.names``); empty where the driver cannot say."""
    code: str = ""
    text: str = ""

    @property
    def ok(self) -> bool:
        """There is a graph to replay."""
        return not self.code


@dataclass(frozen=True, kw_only=True)
class Ticks:
    """One timed stretch: nanoseconds of each span by the arm's clock, and all of it by ours."""

    spans: tuple[int, ...]
    wall_ns: int

    @property
    def ns(self) -> int:
        """The sum of the spans."""
        return sum(self.spans)


class Commands(ABC):
    """The commands that are about calls; how they travel is the subclass's."""

    case_id: str
    answered_ns: int
    """Our clock when the last reply was there: what we look at afterwards is not the arm's time."""
    _session: Session

    @abstractmethod
    def ask(
        self, command: dict[str, Any], *, limit: float, stage: str, fds: Sequence[int] = (), quiet: float | None = None
    ) -> dict[str, Any]:  # fmt: skip
        """One command; raises ArmDied for a death, a time-out, a forged reply or a candidate's exception.

        ``quiet``: seconds after which the limit is over already, where there was no sign of a compiler meanwhile.
        """

    @abstractmethod
    def forged(self, text: str) -> ArmDied:
        """Keep that a reply is not one; gives what to raise."""

    def _call(self, op: str, *, stage: str = "call", **fields: Any) -> dict[str, Any]:
        return self.ask({"op": op, **fields}, limit=self._session.job["limits"]["call_s"], stage=stage)

    def _ns(self, reply: dict[str, Any]) -> int:
        ns = reply.get("ns")
        if not isinstance(ns, int) or ns < 0:
            raise self.forged("a reply without its ticks")
        return ns

    def probe(self, slot: int) -> list[str]:
        """Framework operations seen during one watched call."""
        return [str(op) for op in self._call("probe", slot=slot)["ops"]]

    def drop(self) -> None:
        """Let go of the arena: its memory is freed only after that."""
        self._call("drop", stage="prepare")

    def warm(self, slots: Sequence[int]) -> int:
        """Call the entry once on ``slots``, where it may still compile: nanoseconds until all of it was done.

        The limit is the build's while a compiler is seen at work, else a call's.
        """
        command, limits = {"op": "warm", "slots": list(slots)}, self._session.job["limits"]
        return self._ns(self.ask(command, limit=limits["build_s"], stage="call", quiet=limits["call_s"]))

    def late(self, slot: int, source: int) -> None:
        """One call whose inputs arrive late on its stream: a delay, then ``source``'s inputs over those of ``slot``."""
        self._call("late", slot=slot, source=source)

    def capture(
        self, groups: Sequence[Sequence[int]], *, figure: str = "pipelined", hot: Sequence[str] = ()
    ) -> Captured:  # fmt: skip
        """Capture calls on the slots of ``groups`` into the graph that ``replay`` runs; nothing runs yet."""
        reply = self._call("capture", **_score(groups, figure, hot))
        if "fault" in reply:
            return Captured(code=str(reply["fault"]), text=str(reply.get("text", "")))
        return Captured(kernels=int(reply["kernels"]), names=tuple(str(n) for n in reply.get("names", ())))

    def replay(self, times: int = 1) -> Ticks:
        """Run the captured graph ``times`` times: the spans of the last run, or one sum of all where several."""
        return self._ticks("replay", times=times)

    def play(self, groups: Sequence[Sequence[int]], *, figure: str = "pipelined", hot: Sequence[str] = ()) -> Ticks:
        """The same calls one by one between real events."""
        return self._ticks("play", **_score(groups, figure, hot))

    def _ticks(self, op: str, **fields: Any) -> Ticks:
        started = time.perf_counter_ns()
        reply = self._call(op, **fields)
        wall = self.answered_ns - started
        spans = reply.get("spans")
        if not isinstance(spans, list) or not spans or not all(isinstance(s, int) and s >= 0 for s in spans):
            raise self.forged("a reply without its ticks")
        return Ticks(spans=tuple(spans), wall_ns=wall)

    def inventory(self, slot: int) -> tuple[list[tuple[str, int, int]], int]:
        """Kernels, copies and fills of one call, [(name, count, ns)], and the span from first start to last end.

        The first one in a process costs seconds. Raises ArmDied where the profiler cannot be used (the worker
        lives on).
        """
        limit = self._session.job["limits"]["call_s"] + PROFILER_S
        reply = self.ask({"op": "inventory", "slot": slot}, limit=limit, stage="call")
        return [(str(n), int(c), int(t)) for n, c, t in reply["kernels"]], int(reply["span_ns"])

    def host(self, slots: Sequence[int]) -> int:
        """Nanoseconds in which the host submits calls on ``slots``, without waiting for the GPU."""
        return self._ns(self._call("host", slots=list(slots)))

    def sync(self) -> int:
        """Nanoseconds that the worker waits for its GPU when it has been given nothing."""
        return self._ns(self._call("sync"))


def _score(groups: Sequence[Sequence[int]], figure: str, hot: Sequence[str]) -> dict[str, Any]:
    return {"groups": [list(g) for g in groups], "figure": figure, "hot": list(hot)}
