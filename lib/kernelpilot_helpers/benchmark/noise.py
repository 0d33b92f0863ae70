"""The A/A floor: what this machine makes of two equal programs, and so what it may be trusted with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.policy import ACCEPT, DevicePolicy

from .crossover import fit
from .heat import cool
from .table import pair_values, tabulate


class CaseFloor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case of the A/A job; log ratios."""

    case_id: str
    point: float
    half_width: float | None


class Floor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Noise and bias of equal programs; log ratios (0.01 is about 1 %)."""

    half_width: float | None
    """None with two pairs, which never make a machine fit."""
    point: float
    bias_bound: float
    """|point|: the floor measures bias. Noise is in every comparison's own interval and not counted twice."""
    pairs: int
    alpha: float
    fit: bool
    reason: str
    """``code: text``."""
    cases: tuple[CaseFloor, ...]


def _reason(half: float | None, point: float, limit: float) -> tuple[bool, str]:
    if half is None:
        return False, "floor.too_few_pairs: two pairs give no interval; measure four or more"
    if half > limit:
        return False, f"floor.noise: half width {half * 100:.2f} % (limit {limit * 100:.2g} %): a busy machine"
    if abs(point) > limit:
        return False, f"floor.bias: equal programs differ by {point * 100:+.2f} % (limit {limit * 100:.2g} %)"
    return True, f"floor.fit: half width {half * 100:.2f} %, bias {point * 100:+.2f} %"


def floor(
    raws: Sequence[Raw],
    *,
    timed: Sequence[str],
    device: DevicePolicy,
    alpha: float = ACCEPT.alpha,
    weights: Mapping[str, float] | None = None,
    arms: tuple[str, str] = ("A", "B"),
) -> Floor:
    """Judge a machine by A/A jobs of one booking. Raises NotComparable as ``judge`` does."""
    cooled = cool(raws)
    table = tabulate(cooled.raws, timed=timed, arms=arms)
    overall = fit(pair_values(table, weights), table.orders)
    half = overall.half_width(alpha)
    fine, reason = _reason(half, overall.mu, device.floor_max)
    if cooled.doubt:
        fine, reason = False, cooled.doubt.replace("suspect.heat", "floor.heat", 1)
    fits = {c: fit([cell.log_ratio for cell in row], table.orders) for c, row in table.cells.items()}
    return Floor(
        half_width=half,
        point=overall.mu,
        bias_bound=abs(overall.mu),
        pairs=len(table.pairs),
        alpha=alpha,
        fit=fine,
        reason=reason,
        cases=tuple(CaseFloor(case_id=c, point=f.mu, half_width=f.half_width(alpha)) for c, f in fits.items()),
    )
