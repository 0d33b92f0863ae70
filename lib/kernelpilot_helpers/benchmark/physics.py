"""What a call must at least move, against what this memory can move: a time below that is no gain."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelpilot_helpers.attempt.job import JobCase, TensorSpec
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.contract.dtypes import BYTES
from kernelpilot_helpers.units import micros, size

SHARE_OF_ROLE = {"in": 1, "static": 1, "out": 1, "inout": 2, "scalar": 0}
"""How often each byte of a tensor crosses the memory bus in one call at least."""
_SIZE = re.compile(r"copy@(\d+(?:\.\d+)?)\s*(KiB|MiB|GiB)")
_UNIT = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Cold bytes of each case, and what the memory does: GB/s (1e9 bytes), read and written bytes together."""

    cold: Mapping[str, int]
    datasheet: float | None
    """By the memory clock and bus width."""
    copies: tuple[tuple[float, float], ...]
    """Measured: (bytes moved, read and written together, GB/s), smallest first."""

    def rate(self, case_id: str, us: float) -> float | None:
        """GB/s of a call that takes so many microseconds; None where no byte of it is known to be cold."""
        moved = self.cold.get(case_id, 0)
        return moved / us / 1000 if moved and us > 0 else None

    def share_of_ceiling(self, case_id: str, us: float) -> float | None:
        """Of the measured copy nearest in size; None without one."""
        rate = self.rate(case_id, us)
        if rate is None or not self.copies:
            return None
        moved = self.cold[case_id]
        return rate / min(self.copies, key=lambda one: abs(math.log(one[0] / moved)))[1]

    def share_of_datasheet(self, case_id: str, us: float) -> float | None:
        """Of what the datasheet allows; above 1 is impossible where the byte count is right."""
        rate = self.rate(case_id, us)
        return None if rate is None or self.datasheet is None else rate / self.datasheet


def _held(tensor: TensorSpec) -> int:
    """Bytes of the distinct elements: an axis of stride 0 repeats the same ones."""
    steps = zip(tensor.shape, tensor.stride, strict=True)
    return math.prod(n for n, step in steps if step != 0) * BYTES.get(tensor.dtype, 1)


def cold_bytes(case: JobCase, warm: frozenset[str] = frozenset()) -> int:
    """Bytes that one call of a case cannot help moving: cold tensors, read once or written once, inout both.

    ``warm`` names tensors that were asked to be cold and were not.
    """
    cold = (t for t in case.tensors if t.role != "scalar" and t.residency == "cold" and t.name not in warm)
    return sum(SHARE_OF_ROLE[t.role] * _held(t) for t in cold)


def memory(raws: Sequence[Raw], cases: Sequence[JobCase], ceilings: Mapping[str, float] | None = None) -> Memory:
    """What is known of a booking's memory. ``ceilings`` as in ``Raw.ceilings``; else those of these jobs."""
    warm = {(r.case_id, r.tensor) for raw in raws for r in raw.residency if r.reached != "cold"}
    found = dict(ceilings or {}) or {k: v for raw in raws for k, v in raw.ceilings.items()}
    sized = [(m, gbs) for name, gbs in found.items() if (m := _SIZE.fullmatch(name)) and gbs > 0]
    datasheet = raws[0].env.get("dram_gbs") if raws else None
    known = isinstance(datasheet, int | float) and datasheet > 0
    return Memory(
        cold={c.case_id: cold_bytes(c, frozenset(n for case, n in warm if case == c.case_id)) for c in cases},
        datasheet=float(datasheet) if known and datasheet is not None else None,
        copies=tuple(sorted((float(m[1]) * _UNIT[m[2]], gbs) for m, gbs in sized)),
    )


def impossible(memory: Memory, times: Mapping[str, tuple[float, float]]) -> tuple[str, tuple[str, ...]]:
    """(why the second arm's times are below the floor, notes); ``times`` holds us a call of both arms by case.

    Where the first arm beats the datasheet as well, the case does not move all its bytes: that is only noted.
    """
    doubt, notes = "", []
    for case, (a_us, b_us) in times.items():
        share = memory.share_of_datasheet(case, b_us)
        if share is None or share <= 1.0 or memory.datasheet is None:
            continue
        moved = f"case {case} has {size(memory.cold[case])} cold; {micros(b_us)} would be {share:.2f} x"
        text = f"{moved} the {memory.datasheet:.0f} GB/s of this memory's datasheet"
        if (memory.share_of_datasheet(case, a_us) or 0.0) > 1.0:
            notes.append(f"floor.unsound: {text}, and the first arm is beyond it too: not every byte is moved")
        else:
            doubt = doubt or f"suspect.floor: {text}"
    return doubt, tuple(notes)
