"""Is the worker's clock honest? Its ticks are held against the parent's clock and the kernel's, block by block."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from kernelpilot_helpers.attempt.raw import Raw, Samples
from kernelpilot_helpers.correctness import Finding
from kernelpilot_helpers.policy import POLICY, Policy
from kernelpilot_helpers.units import micros

CONSTANT_BLOCKS = 8
"""So many blocks that all last the same number of nanoseconds were not read off a clock."""
CHEAT, SUSPECT, FLUSH = "cheat.clock", "suspect.clock", "cheat.flush"
BACKWARD_NS = 1000
"""A block may not outlast the parent's span around it; this much is left to two readings of one clock."""


def _us(ns: float) -> str:
    return micros(ns / 1000)


def _most(flags: Sequence[bool]) -> bool:
    return 2 * sum(flags) > len(flags)


def _on_gpu(items: Sequence[Samples]) -> bool:
    return any(s.method for s in items)


def _dead(items: Sequence[Samples]) -> str:
    """What is wrong with the ticks by themselves."""
    ticks = [t for s in items for t in s.ns]
    if not ticks or min(ticks) <= 0:
        return "the worker's clock says that a block took no time"
    if len(ticks) >= CONSTANT_BLOCKS and len(set(ticks)) == 1:
        return f"the worker's clock says {_us(ticks[0])} for each of {len(ticks)} blocks"
    return ""


def _beyond(item: Samples, policy: Policy) -> bool:
    ns, wall = median(item.ns), median(item.wall_ns)
    return wall > policy.wall_ratio_max * ns + policy.wall_slack_us * 1000


def _backward(item: Samples) -> bool:
    return median(item.ns) > median(item.wall_ns) + BACKWARD_NS


def _said(items: Sequence[Samples]) -> str:
    owner = "the GPU's" if _on_gpu(items) else "the worker's"
    ns = median(t for s in items for t in s.ns)
    wall = median(t for s in items for t in s.wall_ns)
    return f"{owner} clock says {_us(ns)}, the parent's {_us(wall)}"


def _overheads(items: Sequence[Samples]) -> list[int]:
    return sorted(w - t for s in items for w, t in zip(s.wall_ns, s.ns, strict=True))


def _hides(a: Sequence[Samples], b: Sequence[Samples], policy: Policy) -> bool:
    """Whether arm B claims less time than the parent saw, once A's own overhead is taken off.

    On a GPU this finds work that the events do not see: on a stream that was not joined, after the last event.

    A busy machine gives both arms long waits now and then: B's middle must lie beyond all but a tenth of A's
    blocks, and in most pairs.
    """
    share, least_us = policy.clock_disagree, policy.clock_disagree_us
    if _on_gpu(b):
        share, least_us = policy.gpu_clock_disagree, policy.gpu_clock_disagree_us
    limit = max(share * median(t for s in b for t in s.ns), least_us * 1000)
    of_a, of_b = _overheads(a), _overheads(b)
    by_pair = {s.pair: [s] for s in a}
    both = [(by_pair[s.pair], [s]) for s in b if s.pair in by_pair]
    if _on_gpu(b):
        # Waiting only adds, and hidden work is in every block: B's quickest block against A's usual one. Against A's
        # quickest, one lucky wait of eight blocks flagged honest candidates on an idle H200 (100 us of 1.3 ms).
        usual = [of_b[0] - median(of_a), *(_overheads(y)[0] - median(_overheads(x)) for x, y in both)]
        return usual[0] > limit and _most([beyond > limit for beyond in usual[1:]])
    if median(of_b) - of_a[len(of_a) * 9 // 10] <= limit:
        return False
    return bool(both) and _most([median(_overheads(y)) - median(_overheads(x)) > limit for x, y in both])


def _unclaimed(item: Samples) -> float:
    """Processor time charged for a block and not claimed by its ticks: median, nanoseconds."""
    return median(c - t for c, t in zip(item.cpu_ns, item.ns, strict=True))


def _hidden(a: Sequence[Samples], b: Sequence[Samples], policy: Policy) -> str:
    """Work of arm B that its ticks leave out: the kernel charged its process more than they explain.

    A waiting or preempted process is charged nothing, so a busy machine does not show here. Arm A's own overhead
    (reading the command, writing the reply) is the yardstick, to be exceeded in most pairs.
    """
    of_a = {s.pair: _unclaimed(s) for s in a if s.cpu_ns}
    both = [(of_a[s.pair], _unclaimed(s)) for s in b if s.cpu_ns and s.pair in of_a]
    limit = max(policy.charge_disagree * median(t for s in b for t in s.ns), policy.charge_disagree_us * 1000)
    if not both or not _most([y - x > limit for x, y in both]):
        return ""
    mine, usual = median(y for _, y in both), median(x for x, _ in both)
    if mine - usual <= limit:
        return ""
    return f"the kernel charged {_us(mine)} a block beyond the worker's own clock, {_us(usual)} for the incumbent"


def _unseen(item: Samples) -> float:
    """What the GPU's own timer saw of a span beyond what the worker reports: median, nanoseconds."""
    return median(s - t for s, t in zip(item.stamp_ns, item.ns, strict=True)) / max(item.groups, 1)


def _stamped(a: Sequence[Samples], b: Sequence[Samples], policy: Policy) -> str:
    """Spans of arm B that are longer by the GPU's own timer than it reports.

    Launch gaps between a stamp and a span's mark are the incumbent's as well, to be exceeded in most pairs.
    """
    of_a = {s.pair: s for s in a if s.stamp_ns}
    both = [(of_a[s.pair], s) for s in b if s.pair in of_a]
    if any(not s.stamp_ns for _, s in both):
        return "the GPU's own timer did not see every block"
    flags = []
    for mine, other in both:
        beyond = _unseen(other) - _unseen(mine)
        span = median(other.ns) / max(other.groups, 1)
        least_us = policy.gpu_stamp_us if other.method == "graph" else policy.gpu_stamp_events_us
        flags.append(beyond > least_us * 1000 + policy.gpu_stamp_share * span)
    if not flags or not _most(flags):
        return ""
    seen = median(t for _, s in both for t in s.stamp_ns)
    said = median(t for _, s in both for t in s.ns)
    return f"the GPU's own timer says {_us(seen)} a block, the worker's events {_us(said)}"


def _unflushed(a: Sequence[Samples], b: Sequence[Samples], policy: Policy) -> str:
    """Flushes of the cache that end much sooner in arm B, in most pairs."""
    of_a = {s.pair: median(s.flush_ns) for s in a if s.flush_ns}
    both = [(of_a[s.pair], median(s.flush_ns)) for s in b if s.flush_ns and s.pair in of_a]
    if not both or not _most([y < policy.gpu_flush_share * x for x, y in both]):
        return ""
    usual, mine = median(x for x, _ in both), median(y for _, y in both)
    return f"the cache was flushed in {_us(mine)} a block, in {_us(usual)} for the incumbent"


def _unread(items: Sequence[Samples]) -> str:
    """Why these ticks or walls are no measurement at all, whatever the other arm's are."""
    if text := _dead(items):
        return text
    if any(len(s.wall_ns) != len(s.ns) for s in items):
        return "not every block was timed by the parent's clock"
    if any(len(s.cpu_ns) not in (0, len(s.ns)) for s in items):
        return "not every block has its processor time"
    if any(len(more) not in (0, len(s.ns)) for s in items for more in (s.stamp_ns, s.flush_ns)):
        return "not every block has its stamps"
    return _said(items) if _most([_backward(s) for s in items]) else ""


def _case(a: Sequence[Samples], b: Sequence[Samples], policy: Policy) -> tuple[str, str, str]:
    """(fault of A, fault of B, code for B); empty texts where there is none."""
    of_a, of_b = _unread(a), _unread(b)
    if of_a or of_b:
        return of_a, of_b, SUSPECT if of_a else CHEAT
    if text := _stamped(a, b, policy):
        return "", text, CHEAT
    if text := _unflushed(a, b, policy):
        return "", text, FLUSH
    if _hides(a, b, policy):
        # Stamps have vouched for the spans: what else the parent waited for may be a busy host's doing.
        code = SUSPECT if all(s.stamp_ns for s in b) else CHEAT
        return "", f"{_said(b)}; the incumbent's own overhead does not explain it", code
    if text := _hidden(a, b, policy):
        return "", text, CHEAT
    if _on_gpu([*a, *b]):
        return "", "", ""  # a replay's spans leave the flushes out, so the ratio of the clocks says nothing
    slow = [_most([_beyond(s, policy) for s in items]) for items in (a, b)]
    return _said(a) if slow[0] else "", _said(b) if slow[1] else "", SUSPECT


def suspicions(
    raws: Sequence[Raw], policy: Policy = POLICY, *, arms: tuple[str, str] = ("A", "B")
) -> tuple[Finding, ...]:
    """Faults of the clocks, case by case; empty means that both clocks tell one story.

    GPU samples (``method`` given) hold device time, the parent's wall clock and no processor time, and the GPU's own
    timer around the spans and flushes.

    ``cheat.clock`` (arm B): ticks that are zero, constant, longer than the parent's span, or short of it, or of the
    processor time charged, or of the GPU's own timer, by more than the incumbent's overhead explains.
    ``cheat.flush`` (arm B): the cache was not flushed before its calls. ``suspect.clock``: a busy machine, or
    the incumbent's; measure again.
    """
    groups: defaultdict[str, dict[str, list[Samples]]] = defaultdict(lambda: {arm: [] for arm in arms})
    for raw in raws:
        for item in raw.samples:
            if item.arm in arms:
                groups[item.case_id][item.arm].append(item)
    found: list[Finding] = []
    for case, by_arm in sorted(groups.items()):
        of_a, of_b, code = _case(by_arm[arms[0]], by_arm[arms[1]], policy)
        if of_a:
            found.append(Finding(code=SUSPECT, text=f"arm {arms[0]}: {of_a}", case_id=case, arm=arms[0]))
        if of_b:
            text = of_b if code in (CHEAT, FLUSH) else f"arm {arms[1]}: {of_b}"
            found.append(Finding(code=code, text=text, case_id=case, arm=arms[1]))
    return tuple(found)
