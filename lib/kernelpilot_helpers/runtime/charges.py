"""What the kernel charged an arm for a block: its processor time, which the arm can neither set nor postpone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any


def processor_ns(pid: int) -> int | None:
    """Processor time of all threads of ``pid`` so far, in nanoseconds; None where the system does not say.

    The number of another process's clock is ``~pid << 3 | 2`` (clock_getcpuclockid(3)).
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except (OSError, OverflowError):
        return None


class Charges:
    """Processor time of one worker by case, one figure a block.

    A block is open from just before its command until just before the next one, so that work which is put off
    until after the reply counts as well.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._case_id = ""
        self._began: int | None = None
        self._known: dict[str, list[int]] = {}

    def open(self, case_id: str) -> None:
        """A block of ``case_id`` begins; the one before it ends."""
        self.close()
        self._case_id, self._began = case_id, processor_ns(self._pid)

    def close(self) -> None:
        """The open block, if there is one, ends here."""
        began, self._began = self._began, None
        now = processor_ns(self._pid) if began is not None else None
        if began is not None and now is not None:
            self._known.setdefault(self._case_id, []).append(now - began)

    def give(self, samples: Iterable[dict[str, Any]], arm: str, pair: int | None) -> None:
        """Put ``cpu_ns`` into this worker's samples: the last blocks of a case are the timed ones."""
        for sample in samples:
            if (sample["arm"], sample["pair"]) == (arm, pair):
                known, blocks = self._known.get(sample["case_id"], []), len(sample["ns"])
                if len(known) >= blocks:
                    sample["cpu_ns"] = tuple(known[-blocks:])
