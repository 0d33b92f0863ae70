"""The gain once more, with what the GPU's own timer saw and the candidate's process did not report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from kernelpilot_helpers.attempt.raw import Raw, Samples
from kernelpilot_helpers.policy import POLICY, Policy

from .crossover import Fit, fit
from .rule import Rule, gains, shown
from .table import pair_values, tabulate

MOST = 0.75
"""Of the gain: what must be there by the GPU's own timer. Honest arms have all of it."""


def _seen(a: Samples, b: Samples, policy: Policy) -> Samples:
    """B's blocks with what their stamps hold beyond A's usual gap and the least that counts."""
    least_us = policy.gpu_stamp_gain_us if b.method == "graph" else policy.gpu_stamp_events_us
    usual = median(s - t for s, t in zip(a.stamp_ns, a.ns, strict=True)) + least_us * 1000 * b.groups
    ns = tuple(t + max(round(s - t - usual), 0) for s, t in zip(b.stamp_ns, b.ns, strict=True))
    return msgspec.structs.replace(b, ns=ns)


def as_seen(
    raws: Sequence[Raw],
    *,
    timed: Sequence[str],
    weights: Mapping[str, float] | None,
    arms: tuple[str, str],
    policy: Policy = POLICY,
) -> Fit | None:
    """The objective's fit as the stamps have it; None unless every block of both arms has them."""
    items = [s for raw in raws for s in raw.samples if s.arm in arms]
    if not items or any(not s.groups or len(s.stamp_ns) != len(s.ns) for s in items):
        return None
    first = {(s.pair, s.case_id): s for s in items if s.arm == arms[0]}
    told = [
        msgspec.structs.replace(
            raw,
            samples=tuple(
                _seen(first[s.pair, s.case_id], s, policy) if s.arm == arms[1] else s
                for s in raw.samples
                if s.arm in arms
            ),
        )
        for raw in raws
    ]
    table = tabulate(told, timed=timed, arms=arms)
    return fit(pair_values(table, weights), table.orders)


def unseen(time: Fit, seen: Fit | None, rule: Rule) -> str:
    """Why a gain is not believed: by the GPU's own timer there is none, or much less of it. Else empty."""
    if seen is None or not gains(time, rule, rule.alpha):
        return ""
    if gains(seen, rule, rule.alpha) and seen.mu >= MOST * time.mu:
        return ""
    return f"suspect.clock: by events {shown(time, rule.alpha)}, by the GPU's own timer {shown(seen, rule.alpha)}"
