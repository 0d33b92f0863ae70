"""The gain over the baseline comes from direct runs: against each of several, and case by case the fastest counts."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from kernelpilot_helpers import benchmark, correctness, policy
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.correctness import Broken, Correct, Wrong
from kernelpilot_helpers.ledger.model import Interval
from kernelpilot_helpers.referee.endings import clocks, not_correct
from kernelpilot_helpers.referee.judging import interval, judge
from kernelpilot_helpers.referee.state import Ask, Facts, Outcome, Runs

LEFT_OUT = "baseline.left_out"


@dataclass(frozen=True, kw_only=True, slots=True)
class Direct:
    """What the direct runs say."""

    interval: Interval | None
    chosen: dict[str, int] = field(default_factory=dict)
    """Case -> index of its fastest baseline; empty where the contract names one baseline."""
    notes: tuple[str, ...] = ()


def wanted(facts: Facts) -> tuple[int, ...]:
    """Baselines that need a run of their own, in order: the confirmation is the one against the incumbent."""
    return tuple(range(1 if facts.incumbent_is_baseline else 0, facts.baselines))


def against(facts: Facts, runs: Runs, once: policy.Tier, ids: tuple[str, str]) -> Ask | Outcome | Direct:
    """The next direct run, an outcome where the candidate fails in one, or what they say together.

    ``once`` is the tier with the one look that the confirmation had. ``runs.confirm`` is there and good.
    """
    asked = wanted(facts)
    if len(runs.direct) < len(asked):
        which = asked[len(runs.direct)]
        why = "the gain over the baseline comes from a direct run"
        return Ask(role="baseline", phases=("time",), pairs=once.looks[0], first_pair=0, why=why, which=which)
    own = {0: runs.confirm} if facts.incumbent_is_baseline and runs.confirm is not None else {}
    found = {**own, **dict(zip(asked, runs.direct, strict=False))}
    for ix in asked:
        bad = _candidate_fails(facts, found[ix], ids)
        if bad is not None:
            return bad
    if facts.baselines == 1:
        return Direct(interval=interval(judge(facts, (found[0],), once).geomean))
    notes: list[str] = []
    for ix in asked:
        if ix and (fault := _fault(facts, found[ix])):
            notes.append(f"{LEFT_OUT}: baseline {ix + 1}: {fault}")
            del found[ix]
    combined = benchmark.against_fastest(
        {ix: (raw,) for ix, raw in found.items()}, timed=facts.timed, tier=once, weights=facts.weights
    )
    return Direct(interval=interval(combined.interval), chosen=combined.chosen, notes=tuple(notes))


def _judged(facts: Facts, raw: Raw, arm: str) -> Correct | Wrong | Broken:
    """A direct run only times: its rechecked blocks are judged, and a baseline may call the library."""
    only_timed = msgspec.structs.replace(
        facts.expect,
        seeds=0,
        gpu=False,
        sanitized=False,
        library_calls=facts.expect.library_calls or arm == "A",
    )
    return correctness.judge(raw, arm=arm, numerics=facts.numerics, expectation=only_timed)


def _candidate_fails(facts: Facts, raw: Raw, ids: tuple[str, str]) -> Outcome | None:
    verified = _judged(facts, raw, "B")
    if isinstance(verified, Wrong) or (isinstance(verified, Broken) and verified.blame == "candidate"):
        return not_correct(verified, ids)
    return clocks((raw,), verified, ids) if isinstance(verified, Correct) else None


def _fault(facts: Facts, raw: Raw) -> str:
    """Why a baseline's run does not count: it does not run here, or is wrong. Empty when it counts."""
    verified = _judged(facts, raw, "A")
    if isinstance(verified, Wrong):
        # Its blocks are the only calls that were compared: that it is right elsewhere, nobody knows.
        told = [f"{f.code}: {f.text}" for f in verified.findings if f.code != "cheat.timed_only"]
        return next(iter(told), verified.reason)
    return "" if isinstance(verified, Correct) else verified.reason
