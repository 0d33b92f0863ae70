"""What the rules reason about: one launch's readings and what follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelpilot_helpers.ncu import constituents, design, fit, limits, said, traffic
from kernelpilot_helpers.ncu.metrics import Readings

WAITING = frozenset({"long_scoreboard", "lg_throttle", "drain"})
SHARED_WAITING = frozenset({"short_scoreboard", "mio_throttle", "lg_throttle"})
_TIERS = (
    ("remote", r"lts__d_sectors_fill_sysmem|syslts__|pcie__|nvl"),
    ("atomics", r"lts__d_atomic"),
    ("dram", r"dram__|fbpa__|lts__d_sectors_fill_device"),
    ("l2", r"lts__|ltc__|l1tex__m_"),
    ("l1", r"l1tex__"),
)
"""What a part of the memory figure belongs to; ``l1tex__m_`` is the way between L1 and L2."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Derived once per launch. None is "not in the file", and no rule may take it for a number."""

    readings: Readings
    sm: float | None
    memory: float | None
    pipes: dict[str, float]
    stalls: dict[str, float]
    top_stall: str
    told_pipe: tuple[str, float] | None = None
    """The busiest pipe as one of NVIDIA's rules names it, where the file has no pipes itself."""

    def get(self, role: str) -> float | None:
        """A role's value."""
        return self.readings.get(role)

    @property
    def highest(self) -> float:
        """The larger speed of light; only asked where at least one is known."""
        return max(v for v in (self.sm, self.memory, 0.0) if v is not None)

    @property
    def regime(self) -> str:
        """``unknown``, ``latency`` (both below the busy mark), ``memory`` or ``compute``."""
        if self.sm is None or self.memory is None:
            return "unknown"
        if self.highest < limits.BUSY:
            return "latency"
        return "memory" if self.memory >= self.sm else "compute"

    @property
    def balanced(self) -> bool:
        """Both sides are busy, and close to each other."""
        if self.sm is None or self.memory is None or min(self.sm, self.memory) < limits.BUSY:
            return False
        return abs(self.sm - self.memory) < limits.BALANCED

    @property
    def l1(self) -> float | None:
        """The busiest of the L1 and load/store figures that are percent of elapsed time."""
        known = [v for v in (self.get("l1_sol"), self.get("lsu_wavefronts")) if v is not None]
        return max(known) if known else None

    @property
    def tier(self) -> str:
        """What makes the memory figure: ``dram``, ``l2``, ``l1``, ``atomics``, ``remote`` or ``unknown``."""
        named = constituents.limiting(self.readings.launch, "memory")
        if named is not None:
            self.readings.keep("limiting_memory", named[0], named[1], "%")
            found = next((tier for tier, pattern in _TIERS if re.match(pattern, named[0])), "")
            if found:
                return found
        dram, l2, l1 = self.get("dram_sol"), self.get("l2_sol"), self.l1
        if self.memory is None or dram is None:
            return "unknown"
        if dram >= self.memory - limits.SAME_TIER:
            return "dram"
        l1 = l1 if l1 is not None else self.get("l1_active")
        # Names that count only data beats, and L2's own roll-up, are off by some points: near ties are no answer.
        if dram >= self.memory - 2 * limits.MARGIN or l2 is None or l1 is None:
            return "unknown"
        if max(l1, l2) < self.memory - limits.MARGIN:
            return "unknown"
        return "l1" if l1 >= l2 else "l2"

    @property
    def tensor_kernel(self) -> bool | None:
        """Whether the kernel uses tensor cores or bulk copies on purpose; None when that cannot be seen."""
        tensor, tma = self.get("tensor"), self.get("tma")
        if (tensor or 0.0) > limits.TENSOR_USED or (tma or 0.0) > 0.0:
            return True
        if design.opcodes(self.readings.launch, design.BULK):
            return True
        if design.predates_tensor_cores(self.readings.launch):
            return False
        old = re.fullmatch(r"[1-8]\.\d", self.readings.launch.cc) is not None
        return False if tensor is not None and (tma is not None or old) else None

    def lanes(self) -> float | None:
        """Threads per executed instruction, of 32."""
        ratio = self.get("lanes")
        if ratio is not None:
            return ratio
        name = "thread_inst_executed / smsp__inst_executed.sum"
        return self.readings.share("lanes", self.get("thread_instructions"), self.get("instructions"), name)

    def occupancy_limiter(self) -> str:
        """What allows the fewest blocks on an SM (ties together); empty when a limit is missing."""
        return fit.limiter(self.readings)

    def block_threads(self) -> float | None:
        """Threads of a block, from the launch column or the metric."""
        return fit.product(self.readings, self.readings.launch.block, "block")

    def grid_blocks(self) -> float | None:
        """Blocks of the grid, from the launch column or the metric."""
        return fit.product(self.readings, self.readings.launch.grid, "grid")

    def waves(self) -> float | None:
        """Grid over what the GPU holds at once."""
        return fit.waves(self.readings, self.grid_blocks())

    def conflict_share(self) -> float | None:
        """Share of shared-memory wavefronts beyond the ideal."""
        return traffic.conflicts(self.readings)

    def excess_share(self) -> float | None:
        """Share of the sectors of global accesses beyond the ideal."""
        return traffic.excess(self.readings)

    def local_share(self) -> float | None:
        """Local-memory sectors as share of what passes L1."""
        return traffic.local(self.readings)

    def atomic_share(self) -> float | None:
        """Sectors of global atomics and reductions as share of what L2 is asked for."""
        return traffic.atomics(self.readings)

    def busiest_sm(self) -> float | None:
        """Active cycles of the busiest SM over the average SM."""
        most, mean = self.get("sm_cycles_max"), self.get("sm_cycles_avg")
        if most is None or mean is None:
            told = said.keep(self.readings, "imbalance", said.imbalance(self.readings.launch))
            return told if told is not None else self._busiest_of_a_long_kernel(mean)
        return self.readings.share("imbalance", most, mean, "sm__cycles_active.max / sm__cycles_active.avg")

    def _busiest_of_a_long_kernel(self, mean: float | None) -> float | None:
        """Before 2024 the busiest SM was not reported: it is busy as long as a kernel that dwarfs its own launch."""
        cycles = self.get("cycles")
        if cycles is None or mean is None or cycles < 40 * limits.LAUNCH_CYCLES:
            return None
        self.readings.asked.pop("sm_cycles_max", None)
        name = "gpc__cycles_elapsed.max / sm__cycles_active.avg"
        return self.readings.share("imbalance", cycles - limits.LAUNCH_CYCLES, mean, name)

    def uneven(self) -> dict[str, float]:
        """Busiest over average active cycles of each kind of unit that was compared: ``sm``, ``l2``, ``dram``."""
        out = {}
        for unit in ("sm", "l2", "dram"):
            most, mean = self.get(f"{unit}_cycles_max"), self.get(f"{unit}_cycles_avg")
            self.readings.asked.pop(f"{unit}_cycles_max", None)
            self.readings.asked.pop(f"{unit}_cycles_avg", None)
            if most is not None and mean:
                out[unit] = most / mean
        return out

    def busiest_sm_at_most(self) -> float | None:
        """Upper bound on ``busiest_sm`` where the busiest SM was not captured: no SM works longer than the kernel."""
        ratio = self.busiest_sm()
        if ratio is not None:
            return ratio
        name = "(gpc__cycles_elapsed.max - cycles of a launch) / sm__cycles_active.avg"
        cycles = self.get("cycles")
        longest = None if cycles is None else max(0.0, cycles - limits.LAUNCH_CYCLES)
        return self.readings.share("imbalance_at_most", longest, self.get("sm_cycles_avg"), name)

    def stall(self, *reasons: str) -> float:
        """Share of the stalls that some reasons have together."""
        return sum(self.stalls.get(reason, 0.0) for reason in reasons)


def gather(readings: Readings) -> Facts:
    """Facts of a launch. A speed of light that is not in the file is not made up from its parts."""
    stalls = readings.stalls()
    if not stalls and (told := said.stalls(readings.launch)):
        stalls = told
        readings.asked.pop("stalls", None)
    top = max(stalls, key=lambda r: (stalls[r], r)) if stalls else ""
    if top:
        readings.keep("top_stall_share", f"share of true stalls: {top}", stalls[top], "")
    pipes = readings.pipes()
    told_pipe = None if pipes else said.pipe(readings.launch)
    if told_pipe is not None and told_pipe[0] == "tensor" and readings.get("tensor") is None:
        readings.keep("tensor", "busiest pipe as one of NVIDIA's rules prints it", told_pipe[1], "%")
    return Facts(
        readings=readings,
        sm=readings.get("sm_sol"),
        memory=readings.get("memory_sol"),
        told_pipe=told_pipe,
        pipes=pipes,
        stalls=stalls,
        top_stall=top,
    )
