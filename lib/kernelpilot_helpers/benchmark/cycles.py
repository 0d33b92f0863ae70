"""The same comparison in clock cycles: where a clock was read after every block, time must not say the opposite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kernelpilot_helpers.attempt.raw import Raw, Samples

from .crossover import Fit, fit
from .rule import Rule, gains, loses, shown
from .table import pair_values, tabulate


def _counted(item: Samples) -> Samples:
    """Times exchanged for cycles (in thousandths: ns x MHz), block by block."""
    ns = tuple(t * mhz for t, mhz in zip(item.ns, item.mhz, strict=True))
    return msgspec.structs.replace(item, ns=ns, wall_ns=ns)


def in_cycles(
    raws: Sequence[Raw],
    *,
    timed: Sequence[str],
    weights: Mapping[str, float] | None,
    arms: tuple[str, str],
) -> Fit | None:
    """The objective's fit in cycles; None unless every block of both arms has a clock above zero."""
    items = [s for raw in raws for s in raw.samples if s.arm in arms]
    if not items or any(len(s.mhz) != len(s.ns) or min(s.mhz, default=0) <= 0 for s in items):
        return None
    counted = [
        msgspec.structs.replace(raw, samples=tuple(_counted(s) for s in raw.samples if s.arm in arms)) for raw in raws
    ]
    table = tabulate(counted, timed=timed, arms=arms)
    return fit(pair_values(table, weights), table.orders)


def contradiction(time: Fit, cycles: Fit | None, rule: Rule) -> str:
    """Why nothing is decided: one says faster and the other slower, both beyond their noise. Else empty.

    A difference in size alone is no contradiction: how far a kernel's power lets the clock rise is its own doing.
    """
    if cycles is None:
        return ""
    if not (
        (gains(time, rule, rule.alpha) and loses(cycles, rule))
        or (loses(time, rule) and gains(cycles, rule, rule.alpha))
    ):
        return ""
    return f"clock.contradiction: in time {shown(time, rule.alpha)}, in clock cycles {shown(cycles, rule.alpha)}"
