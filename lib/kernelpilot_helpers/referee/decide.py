"""Which measurement comes next, and the verdict when none does: pure, over the raws recorded so far.

The same function drives a live attempt, finishes one that was killed, and judges a job that ran elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kernelpilot_helpers import benchmark, correctness, policy
from kernelpilot_helpers.attempt import sane
from kernelpilot_helpers.attempt.job import Phase
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.correctness import Broken, Correct, Wrong
from kernelpilot_helpers.ledger.model import Verdict
from kernelpilot_helpers.referee import baselines
from kernelpilot_helpers.referee.endings import clocks, not_correct
from kernelpilot_helpers.referee.judging import interval, judge
from kernelpilot_helpers.referee.state import QUIET, Ask, Facts, Outcome, RunRole, Runs

__all__ = [
    "QUIET",
    "Ask",
    "Facts",
    "Outcome",
    "RunRole",
    "Runs",
    "build_ids",
    "expected",
    "fixed_look",
    "judge",
    "measured",
    "merged",
    "phases",
    "step",
]


def phases(tier: policy.Tier, device: policy.DevicePolicy, role: RunRole) -> tuple[Phase, ...]:
    """What the job of one role does.

    On a GPU a claim is looked at by the sanitizer, once, and a confirmation also measures the figures to report.
    """
    if role in ("more", "baseline"):
        return ("time",)
    if device.kind == "gpu" and role == "main" and tier.name == policy.CLAIM.name:
        return ("verify", "time", "sanitize")
    return ("verify", "time", "figures") if device.kind == "gpu" and role == "confirm" else ("verify", "time")


def expected(facts: Facts, role: RunRole) -> correctness.Expectation:
    """What the raws of one role must hold."""
    sanitized = "sanitize" in phases(facts.tier, facts.device, role)
    return msgspec.structs.replace(facts.expect, sanitized=sanitized)


def step(facts: Facts, runs: Runs) -> Ask | Outcome:
    """The next measurement to make, or the outcome."""
    if runs.main is None:
        asked = phases(facts.tier, facts.device, "main")
        return Ask(role="main", phases=asked, pairs=facts.tier.looks[0], first_pair=0, why="first look")
    ids = build_ids(runs.main)
    raws_all = [r for r in (runs.main, *runs.more, runs.confirm, *runs.direct) if r is not None]
    if odd := sane.problems(raws_all):
        return Outcome(verdict="BROKEN", reason=f"evidence.garbled: {odd[0]}", build_id=ids[0], binary_id=ids[1])
    if benchmark.identical(runs.main):
        return Outcome(
            verdict="SAME",
            reason="identical.binary: the built program is the incumbent's, so there is nothing to time",
            build_id=ids[0],
            binary_id=ids[1],
        )
    raws = (runs.main, *runs.more)
    verified = correctness.judge(merged(raws), numerics=facts.numerics, expectation=expected(facts, "main"))
    bad = not_correct(verified, ids) or clocks(raws, verified, ids)
    if bad is not None:
        return bad
    bench = judge(facts, raws, facts.tier)
    if bench.need_more is not None:
        done = measured(bench)
        return Ask(role="more", phases=("time",), pairs=bench.need_more - done, first_pair=done, why=bench.reason)
    if facts.unfit:
        return _timed("AMBIGUOUS", f"machine.unfit: {facts.unfit}; {QUIET}", bench, verified, ids, facts)
    if bench.verdict != "IMPROVED" or not facts.tier.confirm:
        return _timed(bench.verdict, bench.reason, bench, verified, ids, facts)
    return _confirmation(facts, runs, bench, verified)


def _confirmation(facts: Facts, runs: Runs, bench: Bench, first: Correct | Wrong | Broken) -> Ask | Outcome:
    ids = build_ids(runs.main) if runs.main is not None else ("", "")
    pairs = measured(bench)
    if runs.confirm is None:
        why = "an improvement counts when fresh processes and seeds show it again"
        asked = phases(facts.tier, facts.device, "confirm")
        return Ask(role="confirm", phases=asked, pairs=pairs, first_pair=0, why=why)
    verified = correctness.judge(runs.confirm, numerics=facts.numerics, expectation=expected(facts, "confirm"))
    bad = not_correct(verified, ids) or clocks((runs.confirm,), verified, ids)
    if bad is not None:
        return bad
    once = fixed_look(facts.tier, pairs)
    again = judge(facts, (runs.confirm,), once)
    if again.verdict != "IMPROVED":
        reason = f"confirm.failed: the second run on fresh processes says {again.verdict} ({again.reason})"
        return _timed("AMBIGUOUS", reason, again, verified, ids, facts)
    direct = baselines.against(facts, runs, once, ids)
    if isinstance(direct, Ask | Outcome):
        return direct
    return Outcome(
        verdict="IMPROVED",
        reason="; ".join([again.reason, *_unfinished(first)]),
        gain=interval(again.geomean),
        vs_baseline=direct.interval,
        confirmed=True,
        bench=again,
        verification=verified,
        build_id=ids[0],
        binary_id=ids[1],
        notes=(*_notes(first, again), *direct.notes),
        fastest=direct.chosen,
    )


def _unfinished(verified: Correct | Wrong | Broken) -> list[str]:
    """Sanitizers that did not finish: the claim stands without them, and says so."""
    notes = verified.notes if isinstance(verified, Correct) else ()
    return [note for note in notes if note.startswith(correctness.UNFINISHED)]


def _notes(verified: Correct | Wrong | Broken, bench: Bench) -> tuple[str, ...]:
    seen = verified.notes if isinstance(verified, Correct) else ()
    return tuple(dict.fromkeys((*seen, *bench.notes)))


def measured(bench: Bench) -> int:
    """Pairs that were run, the ones left out among them."""
    return bench.pairs + len(bench.left_out)


def fixed_look(tier: policy.Tier, pairs: int) -> policy.Tier:
    """The same tier with one fixed look."""
    return policy.Tier(
        name=tier.name, looks=(pairs,), alpha=tier.alpha, blocks=tier.blocks, confirm=False, may_improve=True
    )


def _timed(
    verdict: Verdict, reason: str, bench: Bench, verified: Correct | Wrong | Broken, ids: tuple[str, str], facts: Facts
) -> Outcome:
    gain = interval(bench.geomean)
    return Outcome(
        verdict=verdict,
        reason=reason,
        partial=bench.partial,
        gain=gain,
        vs_baseline=gain if facts.incumbent_is_baseline and facts.baselines == 1 else None,
        bench=bench,
        verification=verified,
        build_id=ids[0],
        binary_id=ids[1],
        notes=_notes(verified, bench),
    )


def build_ids(raw: Raw) -> tuple[str, str]:
    """(build key, binary id) of the candidate, empty strings when it was not built."""
    for build in raw.builds:
        if build.arm == "B":
            return build.build_key, build.binary_id
    return "", ""


def merged(raws: Sequence[Raw]) -> Raw:
    """Several looks of one attempt as one raw, for the correctness judge: checks, events and deaths of all."""
    first = raws[0]
    died = next((r.died for r in raws if r.died is not None), None)
    return msgspec.structs.replace(
        first,
        checks=tuple(c for r in raws for c in r.checks),
        events=tuple(e for r in raws for e in r.events),
        inventory=tuple(u for r in raws for u in r.inventory),
        sanitizer=tuple(u for r in raws for u in r.sanitizer),
        died=died,
    )
