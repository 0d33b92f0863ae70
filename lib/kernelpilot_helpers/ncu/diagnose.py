"""One launch from its metrics to a class: what digest and diff both ask."""

from __future__ import annotations

from dataclasses import dataclass

from kernelpilot_helpers.ncu import advice, steps, validity
from kernelpilot_helpers.ncu.advice import Agreement
from kernelpilot_helpers.ncu.decide import Decision, decide
from kernelpilot_helpers.ncu.facts import Facts, gather
from kernelpilot_helpers.ncu.metrics import Readings
from kernelpilot_helpers.ncu.report import Launch, Report

_SHOWN = (
    *("duration", "sm_sol", "memory_sol", "dram_sol", "l2_sol", "l1_sol", "lsu_wavefronts", "tensor", "issue"),
    *("occupancy", "occupancy_theoretical", "limit_registers", "limit_shared", "limit_warps", "limit_blocks"),
    *("waves", "grid", "block", "cluster", "sms", "registers", "shared", "shared_dynamic", "cycles", "clock"),
    *("instructions", "spill_requests"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """A launch's facts and the class that they give."""

    launch: Launch
    facts: Facts
    decision: Decision
    doubts: tuple[str, ...]
    agreement: Agreement | None
    """Of NVIDIA's own rules with the class; None where the report holds none."""

    @property
    def name(self) -> str:
        """The class id."""
        return self.decision.hit.name


def diagnose(report: Report, launch: Launch, *, launches: int = 1) -> Diagnosis:
    """The class of one launch; readings that people want to see are looked up too. ``launches``: of its group."""
    facts = gather(Readings(launch=launch, locale=report.locale))
    for role in _SHOWN:
        facts.get(role)
    steps.dram_bytes(facts)
    doubts = validity.doubts(facts, report.session)
    decision = decide(facts, doubts, launches=launches)
    agreement = advice.agreement(launch.rules, decision.hit.name) if launch.rules else None
    if agreement is not None and agreement.disagrees:
        decision = decide(facts, doubts, launches=launches, agreement=agreement)
    return Diagnosis(launch=launch, facts=facts, decision=decision, doubts=doubts, agreement=agreement)
