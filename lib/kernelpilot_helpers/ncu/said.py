"""Numbers that NVIDIA's own rules print, for a page that has the rules and not the metrics behind them."""

from __future__ import annotations

import re

from kernelpilot_helpers.ncu.metrics import Readings
from kernelpilot_helpers.ncu.report import Launch

_OF_TOTAL = re.compile(r"\(([0-9.]{1,8})% of the total")
_REPRESENTS = re.compile(r"represents? about ([0-9.]{1,8})% of")
_PIPE = re.compile(
    r"(\w{2,12})(?: \([A-Z0-9]+\))? is the highest-utilized pipeline \(([0-9.]{1,6})%\) based on elapsed"
)
_USED = re.compile(r"only ([0-9.]{1,6}) of the 32 bytes")
_ABOVE = re.compile(r"Maximum instance value is ([0-9.]{1,8})% above")
_REASONS = (
    ("long_scoreboard", "operation on L1TEX|dependency on a L1TEX|L1TEX \\(local"),
    ("lg_throttle", "L1 instruction queue for local and global|\\(LG\\)"),
    ("short_scoreboard", "\\) operation \\(not to L1TEX\\)"),
    (
        "mio_throttle",
        "\\(MIO\\)? ?\\(?memory input/output\\)? ?instruction queue|MIO \\(memory input/output\\) instruction",
    ),
    ("barrier", "CTA barrier|sibling warps"),
    ("wait", "fixed latency execution dependency"),
    ("math_pipe_throttle", "execution pipe to be available|math pipe"),
    ("membar", "memory barrier"),
    ("imc_miss", "immediate constant cache"),
    ("no_instruction", "instruction cache|to be selected to fetch"),
    ("drain", "drain all memory instructions"),
    ("gmma", "warpgroup arrive"),
)


def _advises(launch: Launch, rule: str) -> list[str]:
    return [r.text for r in launch.rules if r.id == rule and r.type in ("optimization", "warning")]


def _applied(launch: Launch, section: str) -> bool:
    """Whether a section was collected in a file whose rules were applied: then silence of its rule says something."""
    return any(r.section == section for r in launch.rules) or (bool(launch.rules) and section in launch.sections)


def _excess(launch: Launch, rule: str) -> float | None:
    texts = _advises(launch, rule)
    shares = [float(hit[1]) / 100 for text in texts if (hit := _OF_TOTAL.search(text)) is not None]
    if shares:
        return min(1.0, max(shares))
    return 0.0 if not texts and _applied(launch, "SourceCounters") else None


def global_excess(launch: Launch) -> float | None:
    """Share of excessive sectors of global accesses, as the rule on uncoalesced accesses prints it."""
    return _excess(launch, "UncoalescedGlobalAccess")


def shared_excess(launch: Launch) -> float | None:
    """Share of excessive wavefronts of shared accesses, as the rule on uncoalesced shared accesses prints it."""
    return _excess(launch, "UncoalescedSharedAccess")


def local_pattern(launch: Launch) -> bool | None:
    """Whether a rule speaks of local loads or stores; None when the rules were not applied to the memory tables."""
    if not _applied(launch, "MemoryWorkloadAnalysis_Tables"):
        return None
    return any(re.search(r"for local (loads|stores)", text) for text in _advises(launch, "MemoryCacheAccessPattern"))


def bytes_used(launch: Launch, what: str) -> float | None:
    """Bytes used of each 32-byte sector, as the rule on access patterns prints it; None where it is silent.

    ``what``: ``global loads`` or ``global stores``. A rule that was not applied is silent too.
    """
    texts = [t for t in _advises(launch, "MemoryCacheAccessPattern") if f"for {what} " in t]
    used = [float(hit[1]) for text in texts if (hit := _USED.search(text)) is not None]
    return min(used, default=None)


def imbalance(launch: Launch) -> float | None:
    """Busiest SM over the average one; 1.0 where the rule on uneven work was applied and is silent about SMs."""
    texts = [t for t in _advises(launch, "WorkloadImbalance") if "more SMs " in t]
    above = [float(hit[1]) / 100 for text in texts if (hit := _ABOVE.search(text)) is not None]
    if above:
        # The rule divides by the maximum, whatever its text says.
        return 1.0 / max(0.01, 1.0 - min(0.99, max(above)))
    return 1.0 if not texts and _applied(launch, "WorkloadDistribution") else None


def no_busy_pipe(launch: Launch) -> bool:
    """Whether the rule on pipes found all arithmetic and tensor pipes hardly used; it does not look at all pipes."""
    return any("under-utilized" in text and text.startswith("All") for text in _advises(launch, "HighPipeUtilization"))


def stalls(launch: Launch) -> dict[str, float]:
    """Share of each stall reason that a rule names (30 % or more of the time between two issued instructions).

    The other reasons are not known: the shares do not add up to 1.
    """
    found: dict[str, float] = {}
    for text in _advises(launch, "CPIStall"):
        share = _REPRESENTS.search(text)
        reason = next((name for name, words in _REASONS if re.search(words, text)), "")
        if share is not None and reason:
            found[reason] = min(1.0, float(share[1]) / 100)
    return found


def pipe(launch: Launch) -> tuple[str, float] | None:
    """(pipe, percent of elapsed cycles) of the busiest pipe, as the rule on pipes names it."""
    for rule in launch.rules:
        if rule.id == "HighPipeUtilization" and (hit := _PIPE.match(rule.text)) is not None:
            return hit[1].lower(), float(hit[2])
    return None


def keep(readings: Readings, role: str, value: float | None) -> float | None:
    """A rule's number noted as a reading."""
    if value is None:
        return None
    return readings.keep(role, "as one of NVIDIA's rules in the file prints it", value, "")
