"""The ordered decision list: the first rule that holds names the class; what could not be decided before it counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelpilot_helpers.ncu import limits, rules_execution, rules_launch, rules_memory
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.model import INSUFFICIENT, Confidence, Rejected
from kernelpilot_helpers.ncu.verdict import Answer, Hit, No

Rule = Callable[[Facts], Answer]
FIRST: tuple[Rule, ...] = (rules_launch.partial_warp, rules_launch.grid_small)
WASTE: tuple[Rule, ...] = (rules_memory.smem_conflict, rules_memory.spill, rules_memory.uncoalesced)
ORDER: Mapping[str, tuple[Rule, ...]] = {
    "memory": (
        *FIRST, rules_execution.tensor_bound, *WASTE, rules_memory.partial_store, rules_memory.atomics,
        rules_memory.bandwidth,
    ),
    "compute": (*FIRST, rules_execution.tensor_bound, rules_execution.divergence, rules_execution.pipe_bound),
    "latency": (
        *FIRST, rules_launch.tail, rules_launch.imbalance, *WASTE, rules_execution.divergence, rules_memory.atomics,
        rules_execution.occupancy, rules_execution.stalled,
    ),
    "unknown": (),
}  # fmt: skip
"""Waste comes before the symptom that it causes; stalls come last, and only where no unit is busy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """One class and the trail that led to it."""

    hit: Hit
    confidence: Confidence
    rejected: tuple[Rejected, ...]
    undecided: tuple[str, ...]
    """Roles whose absence left an earlier rule open; with them the answer may be another one."""


def decide(facts: Facts, doubts: tuple[str, ...]) -> Decision:
    """Exactly one class. With a rule left open before it, the class has low confidence at most."""
    rejected: list[Rejected] = []
    open_roles: dict[str, None] = {}
    hit: Hit | None = None
    for rule in ORDER[facts.regime]:
        answer = rule(facts)
        if isinstance(answer, Hit):
            hit = answer
            break
        if isinstance(answer, No):
            rejected.append(Rejected(name=answer.name, why=answer.why))
        else:
            why = f"cannot be decided without {', '.join(answer.missing)}"
            rejected.append(Rejected(name=answer.name, why=why, unknown=True))
            open_roles.update(dict.fromkeys(answer.missing))
    undecided = tuple(open_roles)
    if hit is None:
        return Decision(
            hit=_nothing(facts, undecided), confidence="none", rejected=tuple(rejected), undecided=undecided
        )
    return Decision(
        hit=hit,
        confidence=_confidence(facts, hit, doubts, left_open=bool(undecided)),
        rejected=tuple(rejected),
        undecided=undecided,
    )


def _confidence(facts: Facts, hit: Hit, doubts: tuple[str, ...], *, left_open: bool) -> Confidence:
    families = [role for role in hit.supports if role in facts.readings.found]
    lost = (not hit.clear) + (len(families) < 2) + bool(hit.contradicts) + bool(doubts)
    if lost >= 2 or hit.weak or left_open:
        return "low"
    return "medium" if lost else "high"


def _nothing(facts: Facts, undecided: tuple[str, ...]) -> Hit:
    missing = [role for role, value in (("sm_sol", facts.sm), ("memory_sol", facts.memory)) if value is None]
    if missing:
        why = f"the file holds no {' and no '.join(missing)}: no bottleneck can be named without both"
    elif undecided:
        why = f"no rule can be decided without {', '.join(undecided)}"
    else:
        why = f"no unit is above {limits.BUSY:.0f} % and no rule of waste, launch or latency holds"
    return Hit(name=INSUFFICIENT, why=why, bound=1.0 - facts.highest / 100, clear=False, supports=())
