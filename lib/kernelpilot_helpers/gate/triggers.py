"""When a version must be profiled before work goes on from it: computed from its runs alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelpilot_helpers.benchmark import CaseBench
from kernelpilot_helpers.evidence.digest_facts import DigestFacts
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.facts import best_of, epoch_rows
from kernelpilot_helpers.gate.weak import streak
from kernelpilot_helpers.ledger import BASELINE, Row
from kernelpilot_helpers.policy import Policy

CLAIM = "claim"
ROUNDING = 1e-9
"""1.02 is 0.02 away from 1, and a little more as a float."""
ROLES = ("confirm", "main", "more", "baseline")
ASKED = re.compile(r"^\W*profile\W+(v\d{3,}(?:_[a-z0-9][a-z0-9_-]*)?)(?:\s*/\s*(\S+))?", re.IGNORECASE | re.MULTILINE)
"""How a round contract says that its reviewer wants a profile: a line ``Profile: v003_tiled/m64``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trigger:
    """One reason to profile a version."""

    row: Row
    why: str
    case_id: str
    """On which case; empty where any one will do."""
    regime: str


def triggers(evidence: Evidence, policy: Policy) -> Iterator[Trigger]:
    """Every trigger of a version that is a parent, would be the next one's, or is claimed. Raises NotEvaluated."""
    rows, best = epoch_rows(evidence), best_of(evidence)
    parents = {row.parent for row in rows if row.kind == "attempt"} | {best.version}
    weak, _ = streak(evidence, policy)
    for row in rows:
        if row.kind not in ("attempt", "baseline") or row.verdict in ("WRONG", "BROKEN"):
            continue
        if row.kind == "attempt" and (row.version in parents or row.tier == CLAIM):
            yield from _of_runs(evidence, policy, rows, row)
        if row.version == best.version and len(weak) >= policy.weak_rounds:
            said = f"{len(weak)} weak rounds in a row stand on it"
            yield _trigger(evidence, row, said, _longest(evidence, row))
    yield from _asked(evidence, rows)


def _of_runs(evidence: Evidence, policy: Policy, rows: Sequence[Row], row: Row) -> Iterator[Trigger]:
    ratio = _against_baseline(rows, row)
    if ratio is not None and abs(ratio - 1) <= policy.profile_band + ROUNDING:
        said = f"it is within {policy.profile_band:.0%} of the baseline ({ratio:.3g}x)"
        yield _trigger(evidence, row, said, _longest(evidence, row))
    slower = [c for c in cases(evidence, row) if c.required and c.ci_high is not None and c.ci_high < 1]
    if slower:
        worst = min(slower, key=lambda c: c.speedup)
        yield _trigger(evidence, row, f"required case {worst.case_id} is slower ({worst.speedup:.3g}x)", worst.case_id)
    figures = [f.speedup for f in (row.gain, row.vs_baseline) if f is not None]
    far = [f for f in figures if f > policy.far_off or f * policy.far_off < 1]
    if far:
        said = f"{far[0]:.3g}x is more than {policy.far_off:g}x away from what was there before"
        yield _trigger(evidence, row, said, _longest(evidence, row))


def _against_baseline(rows: Sequence[Row], row: Row) -> float | None:
    """The direct figure, else the product of the gains down the chain of incumbents; None where a link is missing."""
    if row.vs_baseline is not None:
        return row.vs_baseline.speedup
    by_name = {r.version: r for r in rows if r.kind in ("attempt", "baseline")}
    ratio, at, seen = 1.0, row, {row.version}
    while at.kind != "baseline":
        before = by_name.get(at.incumbent)
        if at.gain is None or before is None or (before.version in seen and before.kind != "baseline"):
            return None
        ratio *= at.gain.speedup
        seen.add(before.version)
        at = before
    return ratio


def _asked(evidence: Evidence, rows: Sequence[Row]) -> Iterator[Trigger]:
    loop = evidence.loop
    for text in loop.contracts.values() if loop else ():
        for found in ASKED.finditer(text):
            label, case_id = found[1], (found[2] or "").rstrip(".,;")
            mine = [r for r in rows if label in (r.version, r.version.partition("_")[0]) and r.kind != "decision"]
            known = {c.case_id for c in evidence.cases}
            if mine and mine[-1].verdict not in ("WRONG", "BROKEN"):
                case = case_id if case_id in known else _longest(evidence, mine[-1])
                yield _trigger(evidence, mine[-1], "the reviewer asks for it", case)


def _trigger(evidence: Evidence, row: Row, why: str, case_id: str) -> Trigger:
    return Trigger(row=row, why=why, case_id=case_id, regime=regime_of(evidence, case_id))


def regime_of(evidence: Evidence, case_id: str) -> str:
    """The regime of a written case; empty for an edge, or an unknown one."""
    return next((c.regime for c in evidence.written if c.case_id == case_id), "")


def cases(evidence: Evidence, row: Row) -> tuple[CaseBench, ...]:
    """Cases of the run that says most of a version."""
    found = [evidence.runs[name] for name in row.runs if name in evidence.runs]
    for role in ROLES:
        for run in found:
            if run.role == role and run.bench is not None:
                return run.bench.cases
    return ()


def _longest(evidence: Evidence, row: Row) -> str:
    """The timed case with most time; the first one of W where no run tells."""
    calls = {c.case_id: c.calls for c in evidence.written}
    timed = cases(evidence, row)
    if timed:
        return max(timed, key=lambda c: c.b_us * calls.get(c.case_id, 1)).case_id
    return next((c.case_id for c in evidence.cases if c.timed), "")


def served(evidence: Evidence, trigger: Trigger) -> bool:
    """Whether a digest answers: the version's own in this regime, or another's of the class that its own show.

    A filed fallback is the waiver of a digest. A digest of the same tree is the version's own.
    """
    here = [d for d in evidence.digests if _counts(evidence, d)]
    mine = [d for d in here if d.profile is not None and d.profile.tree == trigger.row.tree]
    if any(_regime(evidence, d) == trigger.regime for d in mine):
        return True
    classes = {d.name for d in mine if d.real and not d.name.startswith("none.")}
    return any(d.real and d.name in classes and _regime(evidence, d) == trigger.regime for d in here)


def _counts(evidence: Evidence, digest: DigestFacts) -> bool:
    epoch = facts.lock_of(evidence).epoch
    return digest.profile is not None and digest.profile.epoch == epoch and not digest.faults


def _regime(evidence: Evidence, digest: DigestFacts) -> str:
    return regime_of(evidence, digest.case_id)


def baseline_decided(evidence: Evidence) -> bool:
    """Whether a digest of this epoch's baseline, or the waiver of one, is there and holds."""
    return any(d.subject == BASELINE and _counts(evidence, d) for d in evidence.digests)
