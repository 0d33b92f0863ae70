"""Which kernels one call of the candidate runs: read off its captured graph, or else seen by the profiler."""

from __future__ import annotations

from collections.abc import Sequence

from .arena import open_arena
from .arms import Worker
from .content import Contents
from .inventory import Unwatched, ours
from .session import ArmDied, Session
from .spec import Case


class Uses:
    """The kernels of one arm, case by case.

    Names of a graph's nodes cost nothing, but a node has no duration: they settle a case where every one of them is
    the arm's own, and are kept with ``ns`` 0. For all other cases the profiler measures shares; its first use in a
    process takes seconds.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: dict[str, tuple[str, ...]] = {}
        self._blind = False
        """There is no profiler here, which is said once."""

    def captured(self, case: Case, names: Sequence[str]) -> None:
        """Keep what a captured call of ``case`` runs."""
        self._names[case.case_id] = tuple(names)

    def settle(self, worker: Worker) -> None:
        """Append ``raw.KernelUse`` of every timed case; raises ArmDied where the worker is lost."""
        session = self._session
        owned = ours({n for names in self._names.values() for n in names}, session.build_dir(worker.arm))
        for case in [c for c in session.cases if c.timed]:
            names = self._names.get(case.case_id, ())
            if names and all(owned[n] for n in names):
                session.inventory += [_entry(worker, case, name, 1, 0, own=True) for name in names]
            elif not self._blind:
                self._watch(worker, case)

    def _watch(self, worker: Worker, case: Case) -> None:
        session, contents = self._session, Contents(self._session.frame, case)
        arena = open_arena(session, case, 1)
        try:
            arena.fill_static(contents)
            arena.fill(0, contents, 0)
            arena.ready()
            worker.map(arena)
            worker.warm([0])
            arena.fill(0, contents, 1)
            arena.ready()
            kernels, span = worker.inventory(0)
            worker.drop()
        except ArmDied as gone:
            if not worker.alive:
                raise
            text = gone.last_line
            session.event(worker.arm.name, "note.inventory", text, case_id=case.case_id)
            self._blind = Unwatched.__name__ in text
            worker.drop()
            return
        finally:
            arena.close()
        owned = ours([name for name, _, _ in kernels], session.build_dir(worker.arm))
        session.inventory += [_entry(worker, case, name, count, ns, own=owned[name]) for name, count, ns in kernels]
        figure = {"arm": worker.arm.name, "case_id": case.case_id, "figure": "span", "us": span / 1000}
        session.figures.append(figure)


def _entry(worker: Worker, case: Case, name: str, count: int, ns: int, *, own: bool) -> dict[str, object]:
    return {"arm": worker.arm.name, "case_id": case.case_id, "name": name, "count": count, "ns": ns, "ours": own}
