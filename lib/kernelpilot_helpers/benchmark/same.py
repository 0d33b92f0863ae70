"""Two arms that are the same program need no clock."""

from __future__ import annotations

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import NotComparable
from kernelpilot_helpers.policy import DevicePolicy, Tier

from .bench import Bench, Interval


def _binary(raw: Raw, arm: str) -> str:
    ids = {b.binary_id for b in raw.builds if b.arm == arm and b.ok and b.build_id_ok}
    return ids.pop() if len(ids) == 1 else ""


def identical(raw: Raw, *, arms: tuple[str, str] = ("A", "B")) -> bool:
    """Whether both arms were built, and into the same program."""
    first, second = (_binary(raw, arm) for arm in arms)
    return bool(first) and first == second


def identical_bench(raw: Raw, *, tier: Tier, device: DevicePolicy, arms: tuple[str, str] = ("A", "B")) -> Bench:
    """SAME without timing: no pairs, no cases, ratio exactly 1. Raises NotComparable for unlike programs."""
    if not identical(raw, arms=arms):
        raise NotComparable(
            f"arms {arms[0]} and {arms[1]} are not the same program",
            where=f"job {raw.job_id}",
            fix="time them: kernelpilot bench",
        )
    return Bench(
        verdict="SAME",
        partial=False,
        reason=f"identical.binary: both arms are program {_binary(raw, arms[0])[:12]}; nothing was timed",
        objective="geomean",
        geomean=Interval(speedup=1.0, ci_low=1.0, ci_high=1.0),
        half_width=0.0,
        order_effect=0.0,
        bias_bound=0.0,
        sign_p=1.0,
        alpha=tier.alpha,
        pairs=0,
        need_more=None,
        arms=arms,
        tier=tier.name,
        device=device.kind,
        note=device.note,
        cases=(),
        best_case="",
        worst_case="",
        job_ids=(raw.job_id,),
    )
