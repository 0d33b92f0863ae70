"""``bench.json``: one comparison of two arms, with the interval that decided it."""

from __future__ import annotations

from typing import Literal

import msgspec

from kernelpilot_helpers import records

FORMAT = "kernelpilot.bench"
VERSION = 1
Verdict = Literal["IMPROVED", "SAME", "REGRESSED", "AMBIGUOUS"]


class Interval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time of the first arm over time of the second: 1.05 means that the second is 5 % faster."""

    speedup: float
    ci_low: float | None
    """None where two pairs give no interval."""
    ci_high: float | None


class CaseBench(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One workload case; times are medians in microseconds per call."""

    case_id: str
    speedup: float
    ci_low: float | None
    ci_high: float | None
    a_us: float
    b_us: float
    required: bool
    pairs: int
    figure: str = "pipelined"
    """Which of the five figures these times are."""
    method: str = ""
    """GPU: ``graph`` or ``events``."""
    cold_bytes: int | None = None
    """GPU: what one call must move at least; None where it is not known."""
    share_of_ceiling: float | None = None
    """Second arm: rate of moving those bytes over the measured copy nearest in size; None where not measured."""
    share_of_datasheet: float | None = None
    """Second arm: the same over what the datasheet gives; above 1 is quarantined."""


class Bench(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The verdict about speed. Only a confirmed IMPROVED is a gain; its figure is the confirmation's."""

    format: Literal["kernelpilot.bench"] = "kernelpilot.bench"
    version: int = VERSION
    verdict: Verdict
    partial: bool
    """Something improved, but a required case is not shown to be no slower; only with AMBIGUOUS."""
    reason: str
    """``code: text``."""
    objective: Literal["geomean", "total_time"]
    geomean: Interval
    """What the objective says; under total_time the ratio of the weighted sums of times."""
    half_width: float | None
    """Of the interval, as a log ratio (0.01 is about 1 %)."""
    order_effect: float
    """Half the log-ratio difference between pairs started by one arm and by the other; fitted out."""
    bias_bound: float
    """Log ratio below which a difference may be the machine's; from the A/A floor."""
    sign_p: float
    """Exact two-sided sign test over pairs: a cross-check that decides nothing."""
    alpha: float
    """Two-sided error of every interval here."""
    pairs: int
    """Cross-over pairs of fresh processes: the sampling unit."""
    need_more: int | None
    """Number of pairs in all at the next look, where more may decide."""
    arms: tuple[str, str]
    tier: str
    device: str
    note: str
    cases: tuple[CaseBench, ...]
    best_case: str
    worst_case: str
    job_ids: tuple[str, ...]
    cycles: Interval | None = None
    """GPU: the objective in clock cycles; None where a block has no clock reading."""
    left_out: tuple[int, ...] = ()
    """GPU: pairs whose both arms were left out because the GPU was slowed down for heat."""
    notes: tuple[str, ...] = ()
    """What was seen and decided nothing, ``code: text``."""


OWNER = records.Owner(
    format=FORMAT,
    version=VERSION,
    type=Bench,
    fix="run `kernelpilot bench` again; the tool alone writes this file",
)


def dump(bench: Bench) -> bytes:
    """Readable JSON with a final newline. Raises BadRecord for a figure that is not finite."""
    return records.dump(bench)


def parse(data: bytes, at: str = "bench.json") -> Bench:
    """Strict. Raises BadRecord (naming ``at`` and the path inside), NewerFormat for a later version."""
    return records.parse(data, OWNER, at=at)
