"""The ordered decision list: the first rule that holds names the class; what could not be decided before it counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelpilot_helpers.ncu import (
    limits,
    rules_execution,
    rules_latency,
    rules_launch,
    rules_memory,
    rules_waste,
)
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.model import INSUFFICIENT, Confidence, Rejected
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No, Rule

if TYPE_CHECKING:
    from kernelpilot_helpers.ncu.advice import Agreement

FIRST: tuple[Rule, ...] = (rules_launch.partial_warp, rules_launch.grid_small)
UNEVEN: tuple[Rule, ...] = (rules_launch.tail, rules_launch.imbalance)
WASTE: tuple[Rule, ...] = (
    rules_waste.remote, rules_waste.smem_conflict, rules_waste.spill, rules_waste.uncoalesced,
    rules_waste.partial_store, rules_waste.atomics,
)  # fmt: skip
SEVERE: tuple[Rule, ...] = tuple(rules_launch.severe(rule) for rule in UNEVEN)
ORDER: Mapping[str, tuple[Rule, ...]] = {
    "memory": (
        *FIRST, rules_execution.tensor_bound, *SEVERE, *WASTE, *UNEVEN, rules_execution.tensor_missing,
        rules_memory.bandwidth,
    ),
    "compute": (
        *FIRST, rules_execution.tensor_bound, *SEVERE, rules_execution.divergence, *UNEVEN,
        rules_execution.tensor_missing, rules_execution.pipe_bound,
    ),
    "balanced": (
        *FIRST, rules_execution.tensor_bound, *SEVERE, *WASTE, rules_execution.divergence, *UNEVEN,
        rules_execution.tensor_missing, rules_execution.pipe_bound,
    ),
    "latency": (
        *FIRST, *SEVERE, rules_waste.remote, rules_waste.smem_conflict, rules_waste.spill, rules_waste.uncoalesced,
        rules_execution.divergence, rules_waste.partial_store, rules_waste.atomics, *UNEVEN, rules_latency.occupancy,
        rules_latency.stalled,
    ),
    "unknown": (),
}  # fmt: skip
"""Waste comes before the symptom that it causes; stalls come last, and only where no unit is busy.

Uneven SMs stand twice: first where they cost a third of the time, else behind waste.
"""
_SAME = {
    "memory_sol": "busy", "dram_sol": "busy", "l2_sol": "busy", "l1_sol": "busy", "lsu_wavefronts": "busy",
    "limiting_memory": "part", "sm_sol": "compute", "limiting_sm": "compute", "waves_exact": "waves",
}  # fmt: skip
"""Roles that are one measurement under several names count once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """One class and the trail that led to it."""

    hit: Hit
    confidence: Confidence
    rejected: tuple[Rejected, ...]
    undecided: tuple[str, ...]
    """Roles whose absence left an earlier rule open; with them the answer may be another one."""


def decide(facts: Facts, doubts: tuple[str, ...], *, agreement: Agreement | None = None, launches: int = 1) -> Decision:
    """Exactly one class.

    A class that is found behind a rule left open stands only where it holds whatever that rule would say, and then
    with low confidence; else the class is ``none.insufficient`` and the next step is the capture that decides.
    ``launches``: how many the group has. ``agreement``: of NVIDIA's own rules with the class, where it is known.
    """
    rejected: list[Rejected] = []
    open_roles: dict[str, None] = {}
    likely = True
    hit: Hit | None = None
    for rule in _order(facts, launches):
        answer = rule(facts)
        if answer is None:
            continue
        if isinstance(answer, Hit):
            hit = answer
            break
        if isinstance(answer, No):
            rejected.append(Rejected(name=answer.name, why=answer.why))
        else:
            why = f"cannot be decided without {', '.join(answer.missing)}"
            rejected.append(Rejected(name=answer.name, why=why, unknown=True))
            open_roles.update(dict.fromkeys(answer.missing))
            likely = likely and answer.unlikely
    undecided = tuple(open_roles)
    if hit is not None and undecided and not (hit.sure or likely):
        rejected.append(Rejected(name=hit.name, why=f"likely, but not certain: {hit.why}", unknown=True))
        hit = None
    if hit is None:
        return Decision(
            hit=_nothing(facts, undecided, rejected), confidence="none", rejected=tuple(rejected), undecided=undecided
        )
    confidence = _confidence(facts, hit, doubts, left_open=bool(undecided), agreement=agreement)
    return Decision(hit=hit, confidence=confidence, rejected=tuple(rejected), undecided=undecided)


def _order(facts: Facts, launches: int) -> tuple[Rule, ...]:
    if facts.regime == "unknown":
        return ()
    if facts.readings.launch.kind != "kernel":
        return (rules_launch.range_gap,)

    def many(of: Facts) -> Answer:
        return rules_launch.many_small(of, launches)

    regime = facts.regime
    if regime == "compute" and (facts.balanced or rules_execution.by_loads(facts)):
        regime = "balanced"
    first = (many, *ORDER[regime])
    return first if launches >= limits.MANY else (*ORDER[regime][:1], many, *ORDER[regime][1:])


def _confidence(
    facts: Facts, hit: Hit, doubts: tuple[str, ...], *, left_open: bool, agreement: Agreement | None
) -> Confidence:
    """High: a clear margin, two independent kinds of evidence, no doubt, NVIDIA's rule silent or of one mind."""
    families = {_SAME.get(role, role) for role in hit.supports if role in facts.readings.found}
    against = bool([r for r in hit.contradicts if r in facts.readings.found])
    other = agreement is not None and bool(agreement.disagrees)
    lost = (not hit.clear) + (len(families) < 2) + against + bool(doubts) + other
    if lost >= 2 or hit.weak or left_open:
        return "low"
    return "medium" if lost else "high"


def _nothing(facts: Facts, undecided: tuple[str, ...], rejected: list[Rejected]) -> Hit:
    missing = [role for role, value in (("sm_sol", facts.sm), ("memory_sol", facts.memory)) if value is None]
    if missing:
        why = f"the file holds no {' and no '.join(missing)}: no bottleneck can be named without both"
    elif facts.readings.launch.kind != "kernel":
        why = (
            f"a {facts.readings.launch.kind} is several kernels measured as one, and its SMs are not idle between them"
        )
    elif undecided:
        likely = [r.name for r in rejected if r.why.startswith("likely")]
        why = f"no rule can be decided without {', '.join(undecided)}"
        why += f"; {likely[-1]} is likely but not certain" if likely else ""
    else:
        why = f"no unit is above {limits.BUSY:.0f} % and no rule of waste, launch or latency holds"
    return Hit(name=INSUFFICIENT, why=why, bound=1.0 - facts.highest / 100, clear=False, supports=())
