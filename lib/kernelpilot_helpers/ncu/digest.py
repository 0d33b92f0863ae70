"""From bytes to one digest: parse, group launches, one class a group, the headline, exactly one next step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kernelpilot_helpers.ncu import limits, raw, sniff, steps, validity
from kernelpilot_helpers.ncu.decide import decide
from kernelpilot_helpers.ncu.facts import gather
from kernelpilot_helpers.ncu.metrics import Readings
from kernelpilot_helpers.ncu.model import (
    INSUFFICIENT,
    RANK,
    REFUSED,
    Digest,
    Export,
    Group,
    Input,
    Launch,
    NextStep,
    RefusedInput,
)
from kernelpilot_helpers.ncu.quantity import rounded

_SHOWN = (
    *("duration", "sm_sol", "memory_sol", "dram_sol", "l2_sol", "l1_sol", "lsu_wavefronts", "tensor", "issue"),
    *("occupancy", "occupancy_theoretical", "limit_registers", "limit_shared", "limit_warps", "limit_blocks"),
    *("waves", "grid", "block", "cluster", "sms", "registers", "shared", "shared_dynamic"),
)


def digest(data: bytes, *, source: Input, path: str, min_bytes: int | None = None) -> Digest:
    """One digest of the bytes of an export. A file of another kind gives a digest that says so and how to mend it.

    ``min_bytes`` is the least DRAM traffic that the case needs; without it nothing is said to be at the DRAM roof.
    """
    try:
        export = raw.parse(data)
    except RefusedInput as fault:
        return refuse(fault, source=source, path=path)
    groups = _groups(export, min_bytes)
    best = max(range(len(groups)), key=lambda ix: (_weight(groups[ix]), -ix))
    return Digest(
        name=groups[best].name,
        confidence=groups[best].confidence,
        next_step=groups[best].next_step,
        groups=groups,
        refused=None,
        headline=best,
        input=source,
        locale=export.locale,
        flags=validity.of_file(export.launches, export.locale, export.ignored_lines),
    )


def refuse(fault: RefusedInput, *, source: Input, path: str) -> Digest:
    """The digest of a file that is no raw page."""
    refused = sniff.refusal(fault, path=path)
    step: NextStep = steps.for_refusal(refused)
    return Digest(name=REFUSED, confidence="none", next_step=step, groups=(), refused=refused, headline=None,
                  input=source)  # fmt: skip


def _weight(group: Group) -> tuple[float, int]:
    """What could be won: share of time times bound; ties go to the surer class."""
    share = group.time_share if group.time_share is not None else 1.0
    return rounded(share * group.bound), RANK[group.confidence]


def _groups(export: Export, min_bytes: int | None) -> tuple[Group, ...]:
    """Launches with one name, grid, block and device, by time; ties in the order of their names."""
    together: dict[tuple[str, ...], list[tuple[float | None, Launch]]] = defaultdict(list)
    for launch in export.launches:
        key = (launch.kernel, launch.grid, launch.block, launch.device)
        duration = Readings(launch=launch, locale=export.locale).get("duration")
        together[key].append((duration, launch))
    times = {key: _total(members) for key, members in together.items()}
    known = [t for t in times.values() if t is not None]
    total = sum(known) if len(known) == len(times) and sum(known) > 0 else None
    groups = [
        _group(members, export.locale, _share(times[key], total, len(together)), min_bytes)
        for key, members in together.items()
    ]
    return tuple(sorted(groups, key=lambda g: (-(g.time_share or 0.0), g.kernel, g.grid, g.block, g.device)))


def _total(members: Sequence[tuple[float | None, Launch]]) -> float | None:
    known = [d for d, _ in members if d is not None]
    return sum(known) if len(known) == len(members) else None


def _share(time: float | None, total: float | None, groups: int) -> float | None:
    if groups == 1:
        return 1.0
    return None if time is None or total is None else rounded(time / total)


def _group(
    members: Sequence[tuple[float | None, Launch]], locale: str, share: float | None, min_bytes: int | None
) -> Group:
    ordered = sorted(members, key=lambda m: (m[0] if m[0] is not None else -1.0, m[1].id))
    duration, launch = ordered[(len(ordered) - 1) // 2]
    facts = gather(Readings(launch=launch, locale=locale))
    for role in _SHOWN:
        facts.get(role)
    steps.dram_bytes(facts)
    doubts = validity.doubts(facts)
    decision = decide(facts, doubts)
    step = steps.step(facts, decision, min_bytes=min_bytes)
    name = "none.at_limit" if step.kind == "stop" and decision.hit.name == "mem.dram_bw" else decision.hit.name
    first, last = ordered[0][0], ordered[-1][0]
    if first and last and last / first > 1 + limits.SPREAD:
        doubts = (*doubts, f"launches of this group differ {last / first:.1f} times in duration; the median is shown")
    found = facts.readings.found
    missing = dict.fromkeys([*decision.undecided, *facts.readings.asked])
    return Group(
        kernel=launch.kernel,
        grid=launch.grid,
        block=launch.block,
        device=launch.device,
        launches=len(members),
        duration_us=None if duration is None else rounded(duration / 1e3),
        time_share=share,
        name=name,
        confidence=decision.confidence if name != INSUFFICIENT else "none",
        bound=rounded(max(0.0, min(1.0, decision.hit.bound))),
        why=decision.hit.why,
        evidence={role: found[role] for role in sorted(found)},
        supports=tuple(r for r in decision.hit.supports if r in found),
        contradicts=tuple(r for r in decision.hit.contradicts if r in found),
        rejected=decision.rejected,
        missing=tuple(missing),
        flags=doubts,
        next_step=step,
    )
