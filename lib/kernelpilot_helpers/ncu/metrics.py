"""Readings of one launch by role. The first alias present wins; families are never mixed."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import quantity
from kernelpilot_helpers.ncu.model import Reading
from kernelpilot_helpers.ncu.report import Launch
from kernelpilot_helpers.ncu.roles import LARGEST, ROLES

__all__ = ["ROLES", "Readings", "wanted"]

_ELAPSED, _ACTIVE = r"\.avg\.pct_of_peak_sustained_elapsed", r"\.avg\.pct_of_peak_sustained_active"
STALLS = (
    re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio"),
    re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+)\.ratio"),
    re.compile(r"smsp__warp_issue_stalled_(\w+?)_per_warp_active\.pct"),
    re.compile(r"smsp__warps_issue_stalled_(\w+)\.avg"),
    re.compile(r"smsp__warps_issue_stalled_(\w+)\.sum"),
    re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+)"),
    re.compile(r"smsp__warp_cycles_per_issue_stall_(\w+)"),
    re.compile(r"smsp__pcsamp_warp_stall_(\w+)"),
)
"""Counters per issue, per warp, plain; then samples; the last two are the names of 2019 and of Pascal."""
STALLS_NEEDED = frozenset(
    ("barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
     "math_pipe_throttle", "membar", "mio_throttle", "no_instruction", "short_scoreboard", "wait")
)  # fmt: skip
"""A family that lacks one of these was cut: its shares would name the wrong reason."""
_NEEDED_OF_OLD = frozenset(("barrier", "long_scoreboard", "wait"))
STALLS_SAME = {
    "no_instructions": "no_instruction", "warpgroup_arrive": "gmma", "no_inst": "no_instruction", "imc": "imc_miss",
    "long_sb": "long_scoreboard", "short_sb": "short_scoreboard", "math": "math_pipe_throttle", "lg": "lg_throttle",
    "mio": "mio_throttle", "tex": "tex_throttle", "sleep": "sleeping", "dispatch": "dispatch_stall",
}  # fmt: skip
NO_STALLS = ("selected", "not_selected")
"""States of a warp that could issue."""
PIPES = (
    re.compile(rf"sm__pipe_(\w+?)_cycles_active{_ELAPSED}"),
    re.compile(rf"sm__inst_executed_pipe_(\w+){_ELAPSED}"),
    re.compile(rf"sm__pipe_(\w+?)_cycles_active{_ACTIVE}"),
    re.compile(rf"sm__inst_executed_pipe_(\w+){_ACTIVE}"),
)
_NO_PIPE = re.compile(r"shared|tensor.*|tc|tma|tmem|cbu.*|adu|uniform.*|.*_pred_on.*|.*_type_.*")
_BREAKDOWN = re.compile(rf"breakdown:(sm__throughput|gpu__compute_memory_throughput|gpu__dram_throughput){_ELAPSED}")
_PART = re.compile(rf"(sm|idc|l1tex|lts|syslts|dram|fbpa|gpu)__\w+{_ELAPSED}")
_ALIASES = frozenset(name for spec in ROLES.values() for name in spec[1:])


@functools.lru_cache(maxsize=8192)
def wanted(column: str) -> bool:
    """Whether the digest can use a metric."""
    return column in _ALIASES or any(p.fullmatch(column) for p in (*STALLS, *PIPES, _BREAKDOWN, _PART))


@dataclass(frozen=True, kw_only=True, slots=True)
class Readings:
    """The numbers of one launch. ``asked`` collects what was looked for in vain: absent is never 0."""

    launch: Launch
    locale: str
    found: dict[str, Reading] = field(default_factory=dict)
    asked: dict[str, None] = field(default_factory=dict)

    def get(self, role: str) -> float | None:
        """Value of a role in its base unit, from the first metric that holds a number of the right kind."""
        if role in self.found:
            return self.found[role].value
        kind, *names = ROLES[role]
        families = LARGEST.get(role) or tuple((name,) for name in names)
        for family in families:
            held = [(value, name) for name in family if (value := self.column(name, kind)) is not None]
            if held:
                value, name = max(held, key=lambda pair: pair[0])
                return self.keep(role, name, value, "" if kind == "count" else kind)
        self.asked[role] = None
        return None

    def column(self, name: str, kind: str) -> float | None:
        """One metric in base units; None when absent, not a number, or of another kind than the role's."""
        value = self.launch.metrics.get(name)
        if value is None or value.number is None or value.number < 0:  # no counter is negative
            return None
        if kind == "count":
            return None if value.unit in ("ns", "byte", "byte/s", "hz", "%") else float(value.number)
        return float(value.number) if value.unit == kind else None

    def keep(self, role: str, metric: str, value: float, unit: str) -> float:
        """Note a reading under a role, derived ones too, and give its value."""
        self.found[role] = Reading(metric=metric, value=quantity.rounded(value), unit=unit)
        return value

    def share(self, role: str, part: float | None, whole: float | None, metric: str) -> float | None:
        """``part / whole``, noted as derived; None when either is absent or nothing was counted."""
        if part is None or whole is None or whole <= 0:
            return None
        return self.keep(role, metric, part / whole, "")

    def total(self, *roles: str) -> float | None:
        """Sum of roles; None when one is missing."""
        parts = [self.get(role) for role in roles]
        return None if any(p is None for p in parts) else float(sum(p for p in parts if p is not None))

    def stalls(self) -> dict[str, float]:
        """Share of each true stall reason, from one complete family; empty when no family is complete."""
        for rank, family in enumerate(STALLS):
            counts = self._family(family)
            needed = STALLS_NEEDED if rank < len(STALLS) - 2 else _NEEDED_OF_OLD
            if counts.keys() >= needed:
                true = {r: v for r, v in counts.items() if r not in NO_STALLS}
                total = sum(true.values())
                return {r: v / total for r, v in true.items()} if total > 0 else {}
        self.asked["stalls"] = None
        return {}

    def _family(self, family: re.Pattern[str]) -> dict[str, float]:
        out: dict[str, float] = {}
        for name in self.launch.metrics:
            hit = family.fullmatch(name)
            if hit is None or hit[1].endswith("_not_issued"):
                continue
            number = self.launch.metrics[name].number
            if number is not None and number >= 0:
                out[STALLS_SAME.get(hit[1], hit[1])] = float(number)
        return out

    def pipes(self) -> dict[str, float]:
        """Percent of peak of each arithmetic and load/store pipe, from one family: of elapsed or of active cycles."""
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
