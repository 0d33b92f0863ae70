"""Two reports, baseline or parent against candidate: time is the truth, the rest says where it came from."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpilot_helpers import __version__
from kernelpilot_helpers.ncu import comparable, facts_file, group, limits, reach
from kernelpilot_helpers.ncu.change import Change, Diff, Named, Noise, Pair, Side, Verdict
from kernelpilot_helpers.ncu.diagnose import Diagnosis, diagnose
from kernelpilot_helpers.ncu.group import Workload
from kernelpilot_helpers.ncu.pairing import How, pair
from kernelpilot_helpers.ncu.quantity import rounded
from kernelpilot_helpers.ncu.report import Report

ASSUMED = 0.02
"""ours: where neither launches nor the user say how far two runs of the same kernel differ."""
PLATEAU = 0.01
TICK_NS = 32.0
"""The clock behind ``gpu__time_duration`` counts in this step; no noise is below it."""
_ROLES = (
    *("duration", "cycles", "clock", "dram_bytes", "instructions", "occupancy", "occupancy_theoretical"),
    *("registers", "shared", "sm_sol", "memory_sol", "dram_sol", "issue", "spill_requests"),
)
_STALLED = "smsp__average_warps_issue_stalled_"
_EACH = "_per_issue_active.ratio"
_ISSUED = ("smsp__inst_issued.sum", "smsp__issue_active.sum", "smsp__inst_executed.sum")


def compare(baseline: Report, candidate: Report, *, noise: float | None = None) -> Diff:
    """The candidate against the baseline. ``noise``: share below which a change of time says nothing (0.02 is 2 %)."""
    before, after = (group.grouping(r) for r in (baseline, candidate))
    matched, lone_before, lone_after = pair((*before.shown, *before.other), (*after.shown, *after.other))
    pairs = tuple(_pair(baseline, candidate, left, right, how, noise) for left, right, how in matched)
    forbids, unseen = comparable.reports(baseline, candidate)
    forbids = (*forbids, *(reason for p in pairs for reason in p.reasons))
    times = _time(matched, lone_before, lone_after)
    band = _whole_noise(pairs, noise)
    verdict = _verdict(times, band, forbids)
    if times.delta is None and not forbids:
        forbids = ("a duration is missing: without it nothing can be called faster",)
    plateau = bool(pairs) and verdict != "not_comparable" and not any(p.shifted for p in pairs) and _gain(times)
    return Diff(
        tool=__version__,
        verdict=verdict,
        reasons=forbids,
        time=times,
        noise=band,
        plateau=plateau,
        pairs=pairs,
        only_baseline=tuple(_side(g, None) for g in lone_before),
        only_candidate=tuple(_side(g, None) for g in lone_after),
        baseline=_named(baseline),
        candidate=_named(candidate),
        flags=(*unseen, *_flags(matched, lone_before, lone_after)),
    )


def _named(report: Report) -> Named:
    first = report.files[0]
    return Named(name=first.name, sha256=first.sha256)


def _flags(
    matched: Sequence[tuple[Workload, Workload, How]], before: Sequence[Workload], after: Sequence[Workload]
) -> tuple[str, ...]:
    out = []
    if before or after:
        out.append(
            f"{len(before)} kernels only in the baseline, {len(after)} only in the candidate: all are in the time"
        )
    if any(len(left.launches) != len(right.launches) for left, right, _ in matched):
        out.append("a kernel has other numbers of launches in the two reports: times are those of one launch")
    return tuple(out)


def _gain(times: Change) -> bool:
    """Whether the time went down by less than what a plateau allows, or went up."""
    return times.delta is not None and times.delta > -PLATEAU


def _time(
    matched: Sequence[tuple[Workload, Workload, How]], before: Sequence[Workload], after: Sequence[Workload]
) -> Change:
    """Medians of one launch times the baseline's number of launches; lone kernels count with all of theirs."""
    left = [_times(a, len(a.launches)) for a, _, _ in matched] + [_times(g, len(g.launches)) for g in before]
    right = [_times(b, len(a.launches)) for a, b, _ in matched] + [_times(g, len(g.launches)) for g in after]
    return _change("time", "gpu__time_duration.sum, median launch of each kernel", "ns", _sum(left), _sum(right))


def _times(workload: Workload, launches: int) -> float | None:
    return None if workload.median is None else workload.median * launches


def _sum(parts: Sequence[float | None]) -> float | None:
    known = [p for p in parts if p is not None]
    return sum(known) if known and len(known) == len(parts) else None


def _change(
    role: str, metric: str, unit: str, before: float | None, after: float | None, says: str = ""
) -> Change:  # fmt: skip
    delta = rounded(after / before - 1) if before and after is not None else None
    return Change(role=role, metric=metric, unit=unit, baseline=None if before is None else rounded(before),
                  candidate=None if after is None else rounded(after), delta=delta, says=says)  # fmt: skip


def _verdict(time: Change, noise: Noise, forbids: Sequence[str]) -> Verdict:
    if forbids or time.delta is None:
        return "not_comparable"
    if abs(time.delta) <= noise.share:
        return "within_noise"
    return "improved" if time.delta < 0 else "regressed"


def _noise(left: Workload, right: Workload, given: float | None) -> Noise:
    if given is not None:
        return Noise(share=rounded(given), source="given")
    seen = [group.noise(left), group.noise(right)]
    known = [n for n in seen if n is not None]
    ticks = [TICK_NS / w.median for w in (left, right) if w.median]
    if len(known) == len(seen):
        return Noise(share=rounded(max([*known, *ticks])), source="launches")
    return Noise(share=rounded(max([ASSUMED, *ticks])), source="assumed")


def _whole_noise(pairs: Sequence[Pair], given: float | None) -> Noise:
    if given is not None:
        return Noise(share=rounded(given), source="given")
    if pairs and all(p.noise.source == "launches" for p in pairs):
        return max((p.noise for p in pairs), key=lambda n: n.share)
    return Noise(share=max([ASSUMED, *(p.noise.share for p in pairs)]), source="assumed")


def _pair(baseline: Report, candidate: Report, left: Workload, right: Workload, how: How, given: float | None) -> Pair:
    before, after = diagnose(baseline, left.launch), diagnose(candidate, right.launch)
    sizes = comparable.sizes(before, after, same_name=how != "order" and left.key[0] == right.key[0])
    reasons = (sizes,) if sizes else ()
    changes = _changes(before, after)
    band = _noise(left, right, given)
    verdict = _verdict(changes[0], band, reasons)
    shifted = before.name != after.name
    return Pair(
        baseline=_side(left, before),
        candidate=_side(right, after),
        matched=how,
        verdict=verdict,
        reasons=reasons,
        noise=band,
        changes=changes,
        stalls=_stalls(before, after),
        shifted=shifted,
        plateau=not shifted and verdict != "not_comparable" and _gain(changes[0]),
        reach=reach.compare(facts_file.build(baseline, left.launch), facts_file.build(candidate, right.launch)),
    )


def _side(workload: Workload, found: Diagnosis | None) -> Side:
    launch = workload.launch
    share = None if workload.share is None else rounded(workload.share)
    plain = Side(kernel=workload.kernel, grid=launch.grid, block=launch.block, launches=len(workload.launches),
                 time_share=share)  # fmt: skip
    if found is None:
        return plain
    known = [(r.value, role) for role in ("sm_sol", "memory_sol") if (r := found.facts.readings.found.get(role))]
    busiest = f"{max(known)[1]} {max(known)[0]:.1f} %" if known else ""
    return Side(kernel=plain.kernel, grid=plain.grid, block=plain.block, launches=plain.launches, time_share=share,
                name=found.name, confidence=found.decision.confidence, busiest=busiest)  # fmt: skip


def _changes(before: Diagnosis, after: Diagnosis) -> tuple[Change, ...]:
    """Duration first; what neither report holds is left out after it."""
    out = []
    for role in _ROLES:
        left, right = (d.facts.readings.found.get(role) for d in (before, after))
        some = left or right
        if some is None and role != "duration":
            continue
        metric, unit = (some.metric, some.unit) if some is not None else ("gpu__time_duration.sum", "ns")
        out.append(
            _change(role, metric, unit, left.value if left else None, right.value if right else None)
        )  # fmt: skip
    return tuple(_said(out))


def _said(changes: Sequence[Change]) -> list[Change]:
    """Same cycles and another time are another clock, not a faster kernel."""
    by_role = {c.role: c.delta for c in changes}
    cycles, clock = by_role.get("cycles"), by_role.get("clock")
    if cycles is None or clock is None or abs(clock) <= limits.CLOCKS_AGREE / 5 or abs(cycles) >= abs(clock) / 2:
        return list(changes)
    text = "the clock changed more than the cycles: part of the change of time is no change of the kernel"
    return [
        Change(role=c.role, metric=c.metric, unit=c.unit, baseline=c.baseline, candidate=c.candidate, delta=c.delta,
               says=text if c.role == "clock" else c.says)
        for c in changes
    ]  # fmt: skip


def _stalls(before: Diagnosis, after: Diagnosis) -> tuple[Change, ...]:
    """Warp cycles by reason, largest first; empty where either report lacks what makes shares into cycles."""
    left, right = _cycles(before), _cycles(after)
    if not left or not right:
        return ()
    names = sorted({*left, *right}, key=lambda n: (-max(left.get(n, 0.0), right.get(n, 0.0)), n))
    return tuple(
        _change(n, f"{_STALLED}{n}{_EACH} x instructions issued", "warp cycles", left.get(n), right.get(n))
        for n in names[:8]
    )


def _cycles(found: Diagnosis) -> dict[str, float]:
    metrics = found.launch.metrics
    issued = next((v.number for n in _ISSUED if (v := metrics.get(n)) is not None and v.number is not None), None)
    if issued is None:
        return {}
    names = [n for n in metrics if n.startswith(_STALLED) and n.endswith(_EACH) and not n.endswith(f"selected{_EACH}")]
    return {
        name.removeprefix(_STALLED).removesuffix(_EACH): float(number) * float(issued)
        for name in names
        if (number := metrics[name].number) is not None
    }
