"""Which measurement comes next, and the verdict when none does: pure, over the raws recorded so far.

The same function drives a live attempt, finishes one that was killed, and judges a job that ran elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from kernelpilot_helpers import benchmark, correctness, policy
from kernelpilot_helpers.attempt import sane
from kernelpilot_helpers.attempt.job import Phase
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.correctness import Broken, Correct, Wrong
from kernelpilot_helpers.ledger.model import Interval, Verdict

QUIET = "busy machine: try again when it is quiet"
"""The way out of every verdict that a disturbed machine left open; such a tree needs no ``--again``."""

RunRole = Literal["main", "more", "confirm", "baseline", "floor", "audit", "tune"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What a verdict depends on besides the raws."""

    tier: policy.Tier
    device: policy.DevicePolicy
    max_pairs: int | None
    numerics: policy.Numerics
    expect: correctness.Expectation
    timed: tuple[str, ...]
    required: frozenset[str]
    weights: dict[str, float] | None
    bias_bound: float
    unfit: str
    """Why this machine's A/A floor allows no verdict on speed; empty when it does."""
    incumbent_is_baseline: bool
    mutation_score: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """The raws of one attempt, by the question that each answers."""

    main: Raw | None = None
    more: tuple[Raw, ...] = ()
    confirm: Raw | None = None
    baseline: Raw | None = None

    def with_raw(self, role: RunRole, raw: Raw) -> Runs:
        """A copy that holds one raw more."""
        if role == "main":
            return Runs(main=raw, more=self.more, confirm=self.confirm, baseline=self.baseline)
        if role == "more":
            return Runs(main=self.main, more=(*self.more, raw), confirm=self.confirm, baseline=self.baseline)
        if role == "confirm":
            return Runs(main=self.main, more=self.more, confirm=raw, baseline=self.baseline)
        return Runs(main=self.main, more=self.more, confirm=self.confirm, baseline=raw)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """The next job."""

    role: RunRole
    phases: tuple[Phase, ...]
    pairs: int
    first_pair: int
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The end of an attempt: everything that its row and its printed object need."""

    verdict: Verdict
    reason: str
    partial: bool = False
    gain: Interval | None = None
    vs_baseline: Interval | None = None
    confirmed: bool = False
    bench: Bench | None = None
    """The bench that decided: the confirmation's when there was one."""
    verification: Correct | Wrong | Broken | None = None
    build_id: str = ""
    binary_id: str = ""
    notes: tuple[str, ...] = field(default=())


def step(facts: Facts, runs: Runs) -> Ask | Outcome:
    """The next measurement to make, or the outcome."""
    if runs.main is None:
        return Ask(role="main", phases=("verify", "time"), pairs=facts.tier.looks[0], first_pair=0, why="first look")
    ids = build_ids(runs.main)
    raws_all = [r for r in (runs.main, *runs.more, runs.confirm, runs.baseline) if r is not None]
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
    verified = correctness.judge(merged(raws), numerics=facts.numerics, expectation=facts.expect)
    bad = _not_correct(verified, ids) or _clocks(raws, verified, ids)
    if bad is not None:
        return bad
    bench = judge(facts, raws, facts.tier)
    if bench.need_more is not None:
        done = bench.pairs
        return Ask(role="more", phases=("time",), pairs=bench.need_more - done, first_pair=done, why=bench.reason)
    if facts.unfit:
        return _timed("AMBIGUOUS", f"machine.unfit: {facts.unfit}; {QUIET}", bench, verified, ids, facts)
    if bench.verdict != "IMPROVED" or not facts.tier.confirm:
        return _timed(bench.verdict, bench.reason, bench, verified, ids, facts)
    return _confirmation(facts, runs, bench, ids)


def _confirmation(facts: Facts, runs: Runs, bench: Bench, ids: tuple[str, str]) -> Ask | Outcome:
    if runs.confirm is None:
        why = "an improvement counts when fresh processes and seeds show it again"
        return Ask(role="confirm", phases=("verify", "time"), pairs=bench.pairs, first_pair=0, why=why)
    verified = correctness.judge(runs.confirm, numerics=facts.numerics, expectation=facts.expect)
    bad = _not_correct(verified, ids) or _clocks((runs.confirm,), verified, ids)
    if bad is not None:
        return bad
    once = fixed_look(facts.tier, bench.pairs)
    again = judge(facts, (runs.confirm,), once)
    if again.verdict != "IMPROVED":
        reason = f"confirm.failed: the second run on fresh processes says {again.verdict} ({again.reason})"
        return _timed("AMBIGUOUS", reason, again, verified, ids, facts)
    direct: Interval | None = None
    if not facts.incumbent_is_baseline:
        if runs.baseline is None:
            why = "the gain over the baseline comes from a direct run"
            return Ask(role="baseline", phases=("time",), pairs=bench.pairs, first_pair=0, why=why)
        direct = _interval(judge(facts, (runs.baseline,), once))
    return Outcome(
        verdict="IMPROVED",
        reason=again.reason,
        gain=_interval(again),
        vs_baseline=_interval(again) if facts.incumbent_is_baseline else direct,
        confirmed=True,
        bench=again,
        verification=verified,
        build_id=ids[0],
        binary_id=ids[1],
    )


def fixed_look(tier: policy.Tier, pairs: int) -> policy.Tier:
    """The same tier with one fixed look."""
    return policy.Tier(
        name=tier.name, looks=(pairs,), alpha=tier.alpha, blocks=tier.blocks, confirm=False, may_improve=True
    )


def judge(facts: Facts, raws: Sequence[Raw], tier: policy.Tier) -> Bench:
    """The bench of these raws under the facts of an attempt; ``tier`` may be one fixed look."""
    return benchmark.judge(
        raws,
        tier=tier,
        device=facts.device,
        required=facts.required,
        timed=facts.timed,
        weights=facts.weights,
        bias_bound=facts.bias_bound,
        max_pairs=facts.max_pairs,
    )


def _not_correct(verified: Correct | Wrong | Broken, ids: tuple[str, str]) -> Outcome | None:
    if isinstance(verified, Correct):
        return None
    word: Verdict = "WRONG" if isinstance(verified, Wrong) else "BROKEN"
    return Outcome(verdict=word, reason=verified.reason, verification=verified, build_id=ids[0], binary_id=ids[1])


def _clocks(raws: Sequence[Raw], verified: Correct | Wrong | Broken, ids: tuple[str, str]) -> Outcome | None:
    """The clocks must tell one story: a lying candidate is WRONG, a disturbed machine decides nothing."""
    findings = sorted(benchmark.suspicions(raws), key=lambda f: not f.code.startswith("cheat."))
    if not findings:
        return None
    first = findings[0]
    cheat = first.code.startswith("cheat.")
    return Outcome(
        verdict="WRONG" if cheat else "AMBIGUOUS",
        reason=f"{first.code}: {first.text}" + ("" if cheat else f"; {QUIET}"),
        verification=verified,
        build_id=ids[0],
        binary_id=ids[1],
        notes=tuple(f"{f.code}: {f.text}" for f in findings[1:]),
    )


def _timed(
    verdict: Verdict, reason: str, bench: Bench, verified: Correct | Wrong | Broken, ids: tuple[str, str], facts: Facts
) -> Outcome:
    gain = _interval(bench)
    return Outcome(
        verdict=verdict,
        reason=reason,
        partial=bench.partial,
        gain=gain,
        vs_baseline=gain if facts.incumbent_is_baseline else None,
        bench=bench,
        verification=verified,
        build_id=ids[0],
        binary_id=ids[1],
    )


def _interval(bench: Bench) -> Interval | None:
    mean = bench.geomean
    if mean.ci_low is None or mean.ci_high is None:
        return None
    return Interval(speedup=mean.speedup, ci_low=mean.ci_low, ci_high=mean.ci_high)


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
        died=died,
    )
