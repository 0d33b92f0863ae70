"""Exactly one next step: an edit with the metric that must move, a capture that will decide, or a stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from kernelpilot_helpers.ncu import design, families, fit, limits, query, rules_latency, traffic
from kernelpilot_helpers.ncu.decide import Decision
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.model import INSUFFICIENT, NextStep, Refusal, Target
from kernelpilot_helpers.ncu.quantity import rounded
from kernelpilot_helpers.ncu.roles import ROLES
from kernelpilot_helpers.ncu.sections import ROLES_OF, function, profile, sections

__all__ = ["dram_bytes", "for_refusal", "function", "profile", "sections", "step"]

TARGET = 0.30
"""guide: a place with this share of the ranking metric is the one to change."""


class Place(Protocol):
    """What a step needs of a hotspot."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int | None: ...
    @property
    def pc(self) -> str: ...
    @property
    def sass(self) -> str: ...
    @property
    def share(self) -> float: ...


def step(facts: Facts, decision: Decision, *, min_bytes: int | None, hotspots: Sequence[Place] = ()) -> NextStep:
    """The step for one group."""
    name = decision.hit.name
    if name == INSUFFICIENT or decision.undecided or decision.hit.weak:
        return _capture(facts, decision)
    moved = dram_bytes(facts)
    least = min_bytes is not None and moved is not None and moved <= limits.NEAR_MINIMUM * min_bytes
    if _at_roof(facts, decision, least=least):
        return _stop(facts, decision)
    if min_bytes is None and decision.hit.name == "mem.dram_bw" and _streams(facts):
        return _stop_stream(facts, decision, moved)
    family = families.find(name, details=_details(facts, name, least=least))
    return _edit(facts, decision, family, hotspots)


def dram_bytes(facts: Facts) -> float | None:
    """Bytes read from and written to DRAM."""
    return traffic.dram(facts.readings)


def _at_roof(facts: Facts, decision: Decision, *, least: bool) -> bool:
    """Nothing left to win by tuning: tensor cores or FMA at the roof, or DRAM at it with the least bytes moved.

    Other pipes can be relieved by other instructions; DRAM at its roof may still move bytes that nobody needs.
    """
    role = {"exec.tensor_bound": "tensor", "exec.pipe_bound:fma": "busiest_pipe"}.get(decision.hit.name, "")
    if decision.hit.name == "mem.dram_bw" and least:
        role = "dram_sol"
    busy = facts.readings.found.get(role)
    return busy is not None and busy.value >= limits.ROOF


def _streams(facts: Facts) -> bool:
    """DRAM at what a copy reaches, and every byte that the SMs ask for passes it once: caches can save nothing."""
    busy, excess = facts.readings.found.get("dram_sol"), facts.excess_share()
    if busy is None or busy.value < limits.STREAM_ROOF or excess is None or excess > limits.STREAM_EXCESS:
        return False
    stream = traffic.stream(facts.readings)
    if stream is not None:
        return 1.0 - 3 * limits.STREAM_EXCESS <= stream <= 1.0 + 3 * limits.STREAM_EXCESS
    # A page without sector counts: L1 has nothing of it, and of L2's hits half may be writes.
    in_l1, in_l2 = facts.get("l1_hits"), facts.get("l2_hits")
    return in_l1 is not None and in_l2 is not None and in_l1 <= 100 * limits.STREAM_EXCESS and in_l2 <= limits.BUSY


def _details(facts: Facts, name: str, *, least: bool) -> tuple[str, ...]:
    """What picks a variant of the family, the most telling first: advice that is in the code already is not given."""
    launch = facts.readings.launch
    kind = design.kind(launch.kernel)
    duration = facts.get("duration")
    out: list[str] = ["minimum"] if least else []
    if name == "launch.grid_small" and duration is not None and duration < limits.FLOOR_NS:
        out.append("floor")
    if name == "mem.bytes_in_flight":
        out += ["short"] * (duration is not None and duration < limits.SHORT_NS)
        copies = design.opcodes(launch, (*design.ASYNC, *design.BULK))
        out += ["async"] * (bool(copies) or (facts.get("tma") or 0.0) > 0.0)
    if name == "mem.uncoalesced" and (facts.excess_share() or 0.0) < limits.EXCESS_SECTORS:
        out.append("narrow")
    if name == "exec.tensor_bound":
        newest = launch.cc.startswith(("10.", "11."))
        tcgen = design.opcodes(launch, design.TCGEN)
        out += [kind] if kind == "attention" else []
        out += ["tcgen"] if tcgen or (tcgen is None and newest) else []
        out += [] if rules_latency.specialised(facts) else ["mma"]
    if name == "mem.spill" and facts.tensor_kernel and rules_latency.specialised(facts):
        out.append("specialised")
    if name == "mem.l2_bw" and not launch.cc.startswith(("9.", "10.", "11.", "12.")):
        kind = ""
    if name == "lat.dependency":
        out.append(facts.top_stall)
    reduction = ("reduction",) if kind in ("softmax", "norm") else ()
    return (*out, kind, *reduction)


def _edit(facts: Facts, decision: Decision, family: families.Family, hotspots: Sequence[Place]) -> NextStep:
    if family.role in ROLES:
        facts.get(family.role)
    reading = facts.readings.found.get(family.role)
    start = "a value that this file does not hold" if reading is None else f"{reading.value:g} {reading.unit}".strip()
    metric = family.role if reading is None else f"{family.role} ({reading.metric})"
    launch, hit = facts.readings.launch, decision.hit
    metrics = tuple(facts.readings.found[r].metric for r in hit.supports if r in facts.readings.found)
    return NextStep(
        kind="edit",
        family=family.id,
        what=f"{family.what}{_limiter(facts, hit.name)}",
        why=f"{hit.why}; at most {hit.bound:.0%} of this kernel's time can be won here",
        command=profile(launch.kernel, "--set full"),
        expect=f"{metric} from {start} toward {family.toward}",
        guard=family.guard,
        refute=family.refute,
        target=_target(facts, hotspots),
        bound=rounded(hit.bound),
        risk=family.risk,
        query=query.query(launch, class_name=hit.name, words=family.words, metrics=metrics),
    )


def _limiter(facts: Facts, name: str) -> str:
    """For occupancy: which resource limits it, and its next step."""
    if name != "lat.occupancy":
        return ""
    limiter = facts.occupancy_limiter()
    step = fit.step(facts.readings, limiter)
    return f" The limiter is {limiter}." + (f" {step.text[:1].upper()}{step.text[1:]}." if step is not None else "")


def _target(facts: Facts, hotspots: Sequence[Place]) -> Target:
    name = facts.readings.launch.function or function(facts.readings.launch.kernel)
    if not hotspots or hotspots[0].share < TARGET:
        return Target(function=name)
    first = hotspots[0]
    return Target(function=name, file=first.file, line=first.line, pc=first.pc, opcode=_opcode(first.sass),
                  share=rounded(first.share))  # fmt: skip


def _opcode(sass: str) -> str:
    words = [w for w in sass.split() if not w.startswith("@")]
    return words[0].rstrip(";") if words else ""


def _stop_stream(facts: Facts, decision: Decision, moved: float | None) -> NextStep:
    """At the DRAM roof with nothing wasted that a report can show; whether the contract needs the bytes, it cannot."""
    hit = decision.hit
    bytes_moved = "" if moved is None else f" of the {moved / 1e6:.4g} MB that it moves"
    return msgspec.structs.replace(
        _stop(facts, decision),
        family="fewer-bytes",
        what=f"Stop tuning how this kernel moves its bytes; only moving fewer{bytes_moved} can make it faster: fusion "
        "with the kernel that produces or consumes them, or a narrower type that the contract allows.",
        why=f"{hit.why}; every byte that the SMs ask for passes DRAM once, so caches have nothing to save; the roof "
        f"leaves at most {_left(decision):.0%}",
        expect=f"no metric of this kernel moves; dram_bytes{bytes_moved and f' ({moved:g} byte)'} falls only with the "
        "contract's work",
        refute="the contract's shapes need fewer bytes than it moves (give --min-bytes): then it reads or writes "
        "something twice",
    )


def _stop(facts: Facts, decision: Decision) -> NextStep:
    hit = decision.hit
    return NextStep(
        kind="stop",
        family="at-roof",
        what="Stop tuning this kernel as it is; only fewer operations or bytes (another algorithm, another type that "
        "the contract allows) can make it faster.",
        why=f"{hit.why}; the roof leaves at most {_left(decision):.0%}",
        command="kernelpilot gate",
        expect="no metric moves: the kernel is within 15 % of the roof that limits it",
        guard="the contract's every case, not only the one profiled",
        refute="a variant of the same algorithm that is faster by more than the bound",
        target=_target(facts, ()),
        bound=rounded(_left(decision)),
        risk=0,
        query=query.query(facts.readings.launch, class_name=hit.name, words="lower precision sparsity"),
    )


def _left(decision: Decision) -> float:
    """What is left below the roof for the same work."""
    return decision.hit.bound if decision.hit.roof is None else decision.hit.roof


def _capture(facts: Facts, decision: Decision) -> NextStep:
    missing = [role for role, v in (("sm_sol", facts.sm), ("memory_sol", facts.memory)) if v is None]
    lacking = [*missing, *decision.undecided]
    wanted = sections(lacking)
    asked = " ".join(f"--section {s}" for s in wanted)
    words = ", ".join(lacking) or "source counters that show where the time goes"
    nothing_new = not missing and bool(lacking) and not any(role in ROLES_OF for role in lacking)
    what = f"Profile the same launch again with the sections {', '.join(wanted)}."
    if nothing_new:
        what = "Profile the same launch with source counters and -lineinfo, and look at its hot lines."
    launch = facts.readings.launch
    return NextStep(
        kind="capture",
        family="more-sections",
        what=what,
        why=f"{decision.hit.why}; missing: {words}",
        command=profile(launch.kernel, asked),
        expect=f"the new file decides {', '.join(_open(decision)) or 'the class'}",
        guard="the same program, case, GPU and clocks as this file",
        refute="the new file leaves the class open",
        target=_target(facts, ()),
        bound=None,
        risk=0,
        query=query.query(launch, class_name=decision.hit.name, words="profile nsight compute"),
    )


def _open(decision: Decision) -> list[str]:
    return list(dict.fromkeys(r.name for r in decision.rejected if r.unknown))


def for_refusal(refused: Refusal) -> NextStep:
    """The step when a file was refused: export or capture the right one."""
    return NextStep(
        kind="capture",
        family="export",
        what="Give a file that holds a report: the .ncu-rep itself, or its raw page as CSV.",
        why=f"{refused.code}: {refused.what}",
        command=refused.fix,
        expect="a digest with a class",
        guard="the same report",
        risk=0,
    )
