"""Which column answers which question. The first alias present wins; families are never mixed."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import quantity
from kernelpilot_helpers.ncu.model import Launch, Reading

_PCT = ".avg.pct_of_peak_sustained_elapsed"
ROLES: Mapping[str, tuple[str, ...]] = {
    # role: unit, then the columns, best first
    "duration": ("ns", "gpu__time_duration.sum", "gpu__time_duration.avg"),
    "sm_sol": ("%", f"sm__throughput{_PCT}"),
    "memory_sol": ("%", f"gpu__compute_memory_throughput{_PCT}"),
    "dram_sol": ("%", f"gpu__dram_throughput{_PCT}", f"dram__throughput{_PCT}", f"dram__cycles_active{_PCT}"),
    "l2_sol": ("%", f"lts__throughput{_PCT}"),
    "l1_sol": ("%", f"l1tex__throughput{_PCT}"),
    "lsu_wavefronts": ("%", f"l1tex__data_pipe_lsu_wavefronts{_PCT}"),
    "l1_active": ("%", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
    "tensor": (
        "%",
        f"sm__pipe_tensor_cycles_active{_PCT}", f"sm__pipe_tc_cycles_active{_PCT}",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_active",
    ),
    "tma": ("%", f"sm__pipe_tma_cycles_active{_PCT}", f"sm__inst_executed_pipe_tma{_PCT}"),
    "issue": (
        "%",
        f"sm__issue_active{_PCT}", f"sm__inst_issued{_PCT}",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
    ),
    "lanes": ("count", "smsp__thread_inst_executed_per_inst_executed.ratio"),
    "occupancy": ("%", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    "occupancy_theoretical": ("%", "sm__maximum_warps_per_active_cycle_pct"),
    "limit_registers": ("count", "launch__occupancy_limit_registers"),
    "limit_shared": ("count", "launch__occupancy_limit_shared_mem"),
    "limit_warps": ("count", "launch__occupancy_limit_warps"),
    "limit_blocks": ("count", "launch__occupancy_limit_blocks"),
    "limit_barriers": ("count", "launch__occupancy_limit_barriers"),
    "waves": ("count", "launch__waves_per_multiprocessor"),
    "grid": ("count", "launch__grid_size"),
    "block": ("count", "launch__block_size"),
    "cluster": ("count", "launch__cluster_size"),
    "sms": ("count", "launch__sm_count", "device__attribute_multiprocessor_count"),
    "registers": ("count", "launch__registers_per_thread"),
    "shared": ("byte/block", "launch__shared_mem_per_block"),
    "shared_dynamic": ("byte/block", "launch__shared_mem_per_block_dynamic"),
    "sm_cycles_max": ("count", "sm__cycles_active.max"),
    "sm_cycles_avg": ("count", "sm__cycles_active.avg"),
    "cycles": ("count", "gpc__cycles_elapsed.max"),
    "clock": ("hz", "gpc__cycles_elapsed.avg.per_second"),
    "dram_read": ("byte", "dram__bytes_read.sum"),
    "dram_write": ("byte", "dram__bytes_write.sum"),
    "instructions": ("count", "smsp__inst_executed.sum"),
    "shared_wavefronts": ("count", "memory_l1_wavefronts_shared"),
    "shared_wavefronts_ideal": ("count", "memory_l1_wavefronts_shared_ideal"),
    "shared_wavefronts_lsu": ("count", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
    "shared_conflicts": ("count", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    "global_sectors": ("count", "memory_l2_theoretical_sectors_global"),
    "global_sectors_ideal": ("count", "memory_l2_theoretical_sectors_global_ideal"),
    "bytes_per_sector_load": ("count", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"),
    "bytes_per_sector_store": ("count", "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"),
    "spill_requests": ("count", "derived__local_spilling_requests", "sass__inst_executed_register_spilling"),
    "l2_sectors": ("count", "lts__t_sectors_srcunit_tex.sum", "lts__t_sectors.sum"),
    "global_load_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    "global_store_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    "local_load_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"),
    "local_store_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"),
    "atomic_sectors": (
        "count", "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum", "lts__t_sectors_srcunit_tex_op_atom.sum",
    ),
    "reduction_sectors": (
        "count", "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum", "lts__t_sectors_srcunit_tex_op_red.sum",
    ),
    "thread_instructions": ("count", "thread_inst_executed"),
}  # fmt: skip

STALLS = (
    re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio"),
    re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+)\.ratio"),
    re.compile(r"smsp__warp_issue_stalled_(\w+?)_per_warp_active\.pct"),
    re.compile(r"smsp__pcsamp_warps_issue_stalled_(?!\w+_not_issued$)(\w+)"),
)
STALLS_NEEDED = frozenset(
    ("barrier", "lg_throttle", "long_scoreboard", "math_pipe_throttle", "mio_throttle", "short_scoreboard", "wait")
)
"""A family that lacks one of these was cut: its shares would name the wrong reason."""
STALLS_SAME = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}
PIPES = (
    re.compile(r"sm__pipe_(\w+?)_cycles_active\.avg\.pct_of_peak_sustained_elapsed"),
    re.compile(r"sm__inst_executed_pipe_(\w+)\.avg\.pct_of_peak_sustained_elapsed"),
    re.compile(r"sm__pipe_(\w+?)_cycles_active\.avg\.pct_of_peak_sustained_active"),
    re.compile(r"sm__inst_executed_pipe_(\w+)\.avg\.pct_of_peak_sustained_active"),
)
_NO_PIPE = re.compile(r"shared|tensor.*|tc|tma|cbu.*|adu|uniform.*|.*_pred_on.*|.*_type_.*")
_ALIASES = frozenset(name for spec in ROLES.values() for name in spec[1:])


@functools.lru_cache(maxsize=8192)
def wanted(column: str) -> bool:
    """Whether the digest can use a column; the others are not kept in memory."""
    return column in _ALIASES or any(p.fullmatch(column) for p in (*STALLS, *PIPES))


@dataclass(frozen=True, kw_only=True, slots=True)
class Readings:
    """The numbers of one launch. ``asked`` collects what was looked for in vain: absent is never 0."""

    launch: Launch
    locale: str
    found: dict[str, Reading] = field(default_factory=dict)
    asked: dict[str, None] = field(default_factory=dict)

    def get(self, role: str) -> float | None:
        """Value of a role in its base unit, from the first column that holds a number of the right kind."""
        if role in self.found:
            return self.found[role].value
        kind, *names = ROLES[role]
        for name in names:
            if (value := self.column(name, kind)) is not None:
                return self.keep(role, name, value, "" if kind == "count" else kind)
        self.asked[role] = None
        return None

    def column(self, name: str, kind: str) -> float | None:
        """One column in base units; None when absent, not a number, or of another kind than the role's."""
        cell = self.launch.cells.get(name)
        value = None if cell is None else quantity.number(cell.text, self.locale)
        if cell is None or value is None or value < 0:  # no counter is negative
            return None
        factor, base = quantity.scale(cell.unit)
        if kind == "count":
            return None if base in ("ns", "byte", "byte/s", "hz", "%") else value * factor
        return value * factor if base == kind else None

    def keep(self, role: str, metric: str, value: float, unit: str) -> float:
        """Note a reading under a role, derived ones too, and give its value."""
        self.found[role] = Reading(metric=metric, value=quantity.rounded(value), unit=unit)
        return value

    def share(self, role: str, part: float | None, whole: float | None, metric: str) -> float | None:
        """``part / whole``, noted as derived; None when either is absent or nothing was counted."""
        if part is None or whole is None or whole <= 0:
            return None
        return self.keep(role, metric, part / whole, "")

    def stalls(self) -> dict[str, float]:
        """Share of each true stall reason, from one complete family; empty when no family is complete."""
        for family in STALLS:
            counts = self._family(family)
            if counts.keys() >= STALLS_NEEDED:
                true = {r: v for r, v in counts.items() if r not in ("selected", "not_selected")}
                total = sum(true.values())
                return {r: v / total for r, v in true.items()} if total > 0 else {}
        self.asked["stalls"] = None
        return {}

    def _family(self, family: re.Pattern[str]) -> dict[str, float]:
        out: dict[str, float] = {}
        for name, cell in self.launch.cells.items():
            if hit := family.fullmatch(name):
                value = quantity.number(cell.text, self.locale)
                if value is not None and value >= 0:
                    out[STALLS_SAME.get(hit[1], hit[1])] = value * quantity.scale(cell.unit)[0]
        return out

    def pipes(self) -> dict[str, float]:
        """Percent of peak of each arithmetic and load/store pipe, from one family of columns."""
        for first, second in ((PIPES[0], PIPES[1]), (PIPES[2], PIPES[3])):
            counts = {**self._family(second), **self._family(first)}
            out = {
                "fma" if name in ("fmaheavy", "fmalite") else name: value
                for name, value in sorted(counts.items(), key=lambda p: p[1])
                if not _NO_PIPE.fullmatch(name)
            }
            if out:
                return out
        self.asked["pipes"] = None
        return {}
