"""One group of launches: its facts in full, its class, and what would be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from kernelpilot_helpers.ncu import advice, breakdown, facts_file, hotspots, limits, phases, roofline, steps, whole
from kernelpilot_helpers.ncu.decide import Decision
from kernelpilot_helpers.ncu.diagnose import Diagnosis, diagnose
from kernelpilot_helpers.ncu.group import Workload
from kernelpilot_helpers.ncu.model import INSUFFICIENT, RANK, Given, Group, NextStep, Reading
from kernelpilot_helpers.ncu.parts import Advice, Light, Occupancy, Said
from kernelpilot_helpers.ncu.plain import clean
from kernelpilot_helpers.ncu.quantity import rounded
from kernelpilot_helpers.ncu.report import Launch, Report
from kernelpilot_helpers.ncu.roles import ROLES

__all__ = ["RANK", "WORTH", "Weighed", "Workload", "group", "worth"]

_RULES = 20
_TEXT = 600
WORTH = 0.01
"""ours: a group that can give back less of the whole time is worth no edit."""
_LIGHTS: Mapping[str, breakdown.Throughput] = {
    "sm_sol": "sm", "memory_sol": "memory", "dram_sol": "dram", "l2_sol": "l2", "l1_sol": "l1",
}  # fmt: skip
_LIMITS = ("limit_registers", "limit_shared", "limit_warps", "limit_blocks", "limit_barriers")


@dataclass(frozen=True, kw_only=True, slots=True)
class Weighed:
    """A group without its step, the step, and what facts.json must keep of it."""

    group: Group
    step: NextStep
    found: Diagnosis
    decision: Decision
    derived: facts_file.Derived

    @property
    def launch(self) -> Launch:
        """The launch that stands for the group."""
        return self.found.launch


def worth(group: Group) -> float:
    """Share of the report's whole time that the group's class can give back."""
    return (group.time_share if group.time_share is not None else 1.0) * group.bound


def group(report: Report, workload: Workload, given: Given) -> Weighed:
    """Everything that the digest says of one group."""
    found = diagnose(report, workload.launch, launches=len(workload.launches))
    agreement = found.agreement
    decision = found.decision
    derived = _derived(report, found)
    if workload.launch.kind != "kernel" and found.name == INSUFFICIENT:
        step = whole.apart(workload.launch, decision)
    else:
        step = steps.step(found.facts, decision, min_bytes=given.min_bytes)
        step = step if workload.launch.kind == "kernel" else whole.again(workload.launch, step)
    hit = decision.hit
    confidence = decision.confidence if hit.name != INSUFFICIENT else "none"
    # At the limit only with the least bytes moved: without --min-bytes twice the bytes would look the same.
    least = step.kind == "stop" and step.family == "at-roof"
    name = "none.at_limit" if least and hit.name == "mem.dram_bw" else hit.name
    seen = found.facts.readings.found
    launch = workload.launch
    made = Group(
        kernel=workload.kernel,
        grid=launch.grid,
        block=launch.block,
        device=launch.device,
        process=launch.process,
        kind=launch.kind,
        launches=len(workload.launches),
        duration_us=_us(workload.median),
        total_us=_us(workload.total),
        time_share=None if workload.share is None else rounded(workload.share),
        warm_up=workload.warm_up,
        name=name,
        confidence=confidence,
        bound=rounded(max(0.0, min(1.0, hit.bound if step.kind != "stop" or step.bound is None else step.bound))),
        why=hit.why,
        step_kind=step.kind,
        family=step.family,
        evidence={role: _placed(role, seen[role], launch) for role in sorted(seen)},
        supports=tuple(r for r in hit.supports if r in seen),
        contradicts=tuple(r for r in hit.contradicts if r in seen),
        rejected=decision.rejected,
        missing=tuple(dict.fromkeys([*decision.undecided, *found.facts.readings.asked])),
        flags=(*found.doubts, *_spread(report, workload, found), *_against(agreement)),
        speed_of_light=_lights(found),
        occupancy=_occupancy(found),
        stalls={reason: rounded(share) for reason, share in sorted(found.facts.stalls.items()) if share > 0},
        phases=derived.phases,
        roofline=roofline.roofline(launch, measured=given.ceilings) if launch.kind == "kernel" else None,
        advice=None if agreement is None else _advice(workload.launch, agreement),
        next_step=None,
    )
    return Weighed(group=made, step=step, found=found, decision=decision, derived=derived)


def pointed(report: Report, weighed: Weighed, given: Given, *, disassembler: Path | None = None) -> Weighed:
    """The same with the places in its code where the time goes, and a step that names the first of them."""
    if weighed.launch.kind != "kernel":
        return weighed
    name = weighed.found.name
    kept = facts_file.known(report, weighed.launch)
    if kept is not None:
        places = kept.hotspots.get(name, ())
    else:
        places = hotspots.find(report, weighed.launch, class_name=name, disassembler=disassembler)
    step = weighed.step
    if step.kind == "edit" and (worth_it := [place for place in places if place.target]):
        step = steps.step(weighed.found.facts, weighed.decision, min_bytes=given.min_bytes, hotspots=worth_it)
    return replace(
        weighed,
        group=msgspec.structs.replace(weighed.group, hotspots=tuple(places)),
        step=step,
        derived=replace(weighed.derived, hotspots={name: tuple(places)}),
    )


def _against(agreement: advice.Agreement | None) -> tuple[str, ...]:
    if agreement is None or not agreement.disagrees:
        return ()
    return (f"NVIDIA's rules name another bottleneck: {'; '.join(agreement.disagrees[:3])}",)


def _advice(launch: Launch, agreement: advice.Agreement) -> Advice:
    rules = tuple(
        Said(rule=r.id, type=r.type, title=clean(r.title), text=clean(r.text, _TEXT), speedup=r.speedup, scope=r.scope)
        for r in launch.rules
        if r.type in ("optimization", "warning")
    )
    bound = None if agreement.bound is None else rounded(agreement.bound / 100)
    return Advice(agrees=agreement.agrees, disagrees=agreement.disagrees, bound=bound, rules=rules[:_RULES])


def _us(ns: float | None) -> float | None:
    return None if ns is None else rounded(ns / 1e3)


def _placed(role: str, reading: Reading, launch: Launch) -> Reading:
    """A reading with its file, row and alias; a derived one has none of them."""
    value = launch.metrics.get(reading.metric)
    if value is None:
        return reading
    names = ROLES[role][1:] if role in ROLES else ()
    alias = names.index(reading.metric) if reading.metric in names else None
    return Reading(metric=reading.metric, value=reading.value, unit=reading.unit, file=value.file, row=value.row,
                   alias=alias)  # fmt: skip


def _spread(report: Report, workload: Workload, found: Diagnosis) -> tuple[str, ...]:
    """What tells that the launches of a group are not alike."""
    out = []
    if workload.warm_up:
        out.append("the first launch is slower than all others: it looks like a warm-up and is not the one shown")
    if workload.spread > 1 + limits.SPREAD:
        out.append(f"launches of this group differ {workload.spread:.1f} times in duration; the median is shown")
    count = len(workload.launches)
    names = {diagnose(report, launch, launches=count).name for launch in workload.extremes} - {found.name}
    if names:
        out.append(f"the shortest or longest launch of this group is {' and '.join(sorted(names))}: it depends on data")
    return tuple(out)


def _lights(found: Diagnosis) -> Mapping[str, Light]:
    out = {}
    for role, throughput in _LIGHTS.items():
        if (reading := found.facts.readings.found.get(role)) is not None:
            name, share = breakdown.limiting(found.launch, throughput) or ("", None)
            out[role] = Light(value=reading.value, limiting=name, share=share)
    return out


def _occupancy(found: Diagnosis) -> Occupancy:
    held = {role: value for role in _LIMITS if (value := found.facts.get(role)) is not None}
    return Occupancy(
        theoretical=found.facts.get("occupancy_theoretical"),
        achieved=found.facts.get("occupancy"),
        limiter=found.facts.occupancy_limiter(),
        blocks_per_sm=min(held.values()) if len(held) >= 4 else None,
        limits={role.removeprefix("limit_"): value for role, value in held.items()},
    )


def _derived(report: Report, found: Diagnosis) -> facts_file.Derived:
    """From the report's series, or as facts.json keeps it."""
    kept = facts_file.known(report, found.launch)
    if kept is not None:
        return kept
    return facts_file.Derived(phases=phases.phases(found.launch))
