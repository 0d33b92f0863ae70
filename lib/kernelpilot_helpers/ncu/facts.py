"""What the rules reason about: one launch's readings and what follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.metrics import Readings

LIMITERS = {
    "registers": "limit_registers",
    "shared memory": "limit_shared",
    "warps": "limit_warps",
    "blocks": "limit_blocks",
    "barriers": "limit_barriers",
}
WAITING = frozenset({"long_scoreboard", "lg_throttle", "drain"})
SHARED_WAITING = frozenset({"short_scoreboard", "mio_throttle", "lg_throttle"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Derived once per launch. None is "not in the file", and no rule may take it for a number."""

    readings: Readings
    sm: float | None
    memory: float | None
    estimated: tuple[str, ...]
    """Speed-of-light figures that had to be taken from their parts."""
    pipes: dict[str, float]
    stalls: dict[str, float]
    top_stall: str

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
    def l1(self) -> float | None:
        """The busiest of the L1 and load/store figures that are percent of elapsed time."""
        known = [v for v in (self.get("l1_sol"), self.get("lsu_wavefronts")) if v is not None]
        return max(known) if known else None

    @property
    def tier(self) -> str:
        """The memory level that makes the memory figure: ``dram``, ``l2``, ``l1`` or ``unknown``."""
        dram, l2, l1 = self.get("dram_sol"), self.get("l2_sol"), self.l1
        if self.memory is None or dram is None:
            return "unknown"
        if dram >= self.memory - limits.SAME_TIER:
            return "dram"
        if l2 is None or l1 is None:
            return "unknown"
        return "l1" if l1 >= l2 else "l2"

    @property
    def tensor_kernel(self) -> bool | None:
        """Whether the kernel uses tensor cores or bulk copies on purpose; None when that cannot be seen."""
        tensor, tma = self.get("tensor"), self.get("tma")
        if (tensor or 0.0) > limits.TENSOR_USED or (tma or 0.0) > 0.0:
            return True
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
        known = {name: self.get(role) for name, role in LIMITERS.items() if role != "limit_barriers"}
        present = {name: v for name, v in known.items() if v is not None}
        if len(present) < len(known):
            return ""
        least = min(present.values())
        return " and ".join(name for name, v in present.items() if v == least)

    def block_threads(self) -> float | None:
        """Threads of a block, from the launch column or the metric."""
        return self._product(self.readings.launch.block, "block")

    def grid_blocks(self) -> float | None:
        """Blocks of the grid, from the launch column or the metric."""
        return self._product(self.readings.launch.grid, "grid")

    def _product(self, text: str, role: str) -> float | None:
        sizes = re.findall(r"\d+", text)
        if len(sizes) != 3 or max(map(len, sizes)) > 10:
            return self.get(role)
        value = float(int(sizes[0]) * int(sizes[1]) * int(sizes[2]))
        return self.readings.keep(role, f"{role.capitalize()} Size column", value, "")

    def conflict_share(self) -> float | None:
        """Share of shared-memory wavefronts beyond the ideal, or of conflicts where the ideal was not captured."""
        whole, ideal = self.get("shared_wavefronts"), self.get("shared_wavefronts_ideal")
        if whole is not None and ideal is not None:
            name = "1 - memory_l1_wavefronts_shared_ideal / memory_l1_wavefronts_shared"
            return self.readings.share("conflict_share", whole - ideal, whole or None, name) if whole else 0.0
        whole, part = self.get("shared_wavefronts_lsu"), self.get("shared_conflicts")
        name = "l1tex__data_bank_conflicts / wavefronts of shared memory"
        return 0.0 if whole == 0 else self.readings.share("conflict_share", part, whole, name)

    def excess_share(self) -> float | None:
        """Share of the sectors of global accesses beyond the ideal; 0 where there are no such accesses."""
        whole, ideal = self.get("global_sectors"), self.get("global_sectors_ideal")
        if whole is None or ideal is None:
            return None
        name = "1 - memory_l2_theoretical_sectors_global_ideal / memory_l2_theoretical_sectors_global"
        return 0.0 if whole == 0 else self.readings.share("excess_share", whole - ideal, whole, name)

    def _sum(self, *roles: str) -> float | None:
        """Sum of roles; None when one is missing."""
        parts = [self.get(role) for role in roles]
        return None if any(p is None for p in parts) else float(sum(p for p in parts if p is not None))

    def local_share(self) -> float | None:
        """Local-memory sectors as share of what passes L1, bulk copies included where L2 shows them."""
        local = self._sum("local_load_sectors", "local_store_sectors")
        others = self._sum("global_load_sectors", "global_store_sectors")
        if local is None or others is None:
            return None
        whole = max(local + others, self.get("l2_sectors") or 0.0)
        name = "local sectors / (local + global sectors of l1tex__t_sectors_pipe_lsu)"
        return 0.0 if local == 0 else self.readings.share("local_share", local, whole, name)

    def atomic_share(self) -> float | None:
        """Sectors of global atomics and reductions as share of what L2 is asked for."""
        used = self._sum("atomic_sectors", "reduction_sectors")
        if used is None or used == 0:
            return used
        return self.readings.share("atomic_share", used, self.get("l2_sectors"), "atomics / L2 sectors asked by L1")


def gather(readings: Readings) -> Facts:
    """Facts of a launch. A missing speed of light is rebuilt from its parts where they are there, and said so."""
    sm, memory = readings.get("sm_sol"), readings.get("memory_sol")
    pipes, stalls = readings.pipes(), readings.stalls()
    estimated = []
    if memory is None:
        parts = [readings.get(role) for role in ("dram_sol", "l1_sol", "lsu_wavefronts")]
        known = [p for p in parts if p is not None]
        if parts[0] is not None and len(known) > 1:
            memory = readings.keep("memory_sol", "largest of DRAM, L1 and LSU wavefronts", max(known), "%")
            estimated.append("memory_sol")
    if sm is None:
        parts = [readings.get("tensor"), readings.get("issue"), *pipes.values()]
        known = [p for p in parts if p is not None]
        if parts[1] is not None and pipes:
            sm = readings.keep("sm_sol", "largest of issue slots and pipes", max(known), "%")
            estimated.append("sm_sol")
    top = max(stalls, key=lambda r: (stalls[r], r)) if stalls else ""
    if top:
        readings.keep("top_stall_share", f"share of true stalls: {top}", stalls[top], "")
    return Facts(
        readings=readings,
        sm=sm,
        memory=memory,
        estimated=tuple(estimated),
        pipes=pipes,
        stalls=stalls,
        top_stall=top,
    )
