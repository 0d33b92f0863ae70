"""Which sections of ncu hold which roles, and the command that captures them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from kernelpilot_helpers.ncu.report import Session

SECTIONS = {
    "SpeedOfLight": "sm_sol memory_sol dram_sol l2_sol l1_sol lsu_wavefronts duration cycles clock limiting_memory",
    "ComputeWorkloadAnalysis": "pipes tensor tma tmem issue busiest_pipe",
    "MemoryWorkloadAnalysis_Tables": "shared_wavefronts shared_conflicts local_load_sectors atomic_sectors "
    "reduction_sectors l2_sectors global_load_sectors global_store_sectors bytes_per_sector_load "
    "bytes_per_sector_store",
    "SourceCounters": "global_sectors spill_requests lanes local_loads",
    "WarpStateStats": "stalls lanes",
    "Occupancy": "occupancy occupancy_theoretical limit_registers limit_shared",
    "LaunchStats": "waves grid block sms",
    "WorkloadDistribution": "sm_cycles_max sm_cycles_avg",
}
ALWAYS = ("SpeedOfLight", "LaunchStats", "Occupancy")
_MOST = ("ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables", "SourceCounters", "WarpStateStats",
         "WorkloadDistribution")  # fmt: skip
ROLES_OF = {role: name for name, held in SECTIONS.items() for role in held.split()}


def sections(roles: Iterable[str]) -> tuple[str, ...]:
    """The ncu sections that hold these roles, with those that every digest wants.

    With no speed of light at all nothing else can be told apart: then everything that a class may need is asked for.

    >>> sections(["stalls"])
    ('SpeedOfLight', 'WarpStateStats', 'Occupancy', 'LaunchStats')
    """
    wanted = set(roles)
    named = {s for s, held in SECTIONS.items() if wanted & set(held.split())}
    if not named - set(ALWAYS):
        named |= set(_MOST if not wanted or wanted & {"sm_sol", "memory_sol"} else ("SourceCounters", "WarpStateStats"))
    named |= set(ALWAYS)
    return tuple(s for s in SECTIONS if s in named)


def function(kernel: str) -> str:
    """The bare function name that ncu's ``-k`` takes; empty when the name does not show one.

    >>> function("void at::f<8, a::b<int>>(int, T2)"), function("copy(const float *)"), function("a b")
    ('f', 'copy', '')
    """
    head = re.split(r"[<(]", kernel.replace("<unnamed>", "").replace("(anonymous namespace)", ""), maxsplit=1)[0]
    found = re.fullmatch(r"(?:void )?(?:\w*::)*(\w+)", head.strip())
    return found[1] if found else ""


def profile(kernel: str, what: str) -> str:
    """Command that captures one launch of a kernel and digests it."""
    name = function(kernel)
    chosen = f" -k {shlex.quote(name)}" if name else ""
    return f"ncu {what} --import-source yes{chosen} -c 1 -f -o next PROGRAM && kernelpilot ncu digest next.ncu-rep"


def as_captured(command: str, session: Session) -> str:
    """A capture's command with the clock and cache control of the report it follows on: others do not compare."""
    if not command.startswith("ncu "):
        return command
    asked = {"--clock-control": session.clocks, "--cache-control": session.cache}
    kept = [f"{option} none" for option, value in asked.items() if value == "none" and option not in command]
    return " ".join(["ncu", *kept, command.removeprefix("ncu ")])
