"""``verify.json``: what is kept of a judgement of correctness."""

from __future__ import annotations

from typing import Literal

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import BadRecord

from .outcome import Broken, Correct, Finding, Outcome, Worst, Wrong
from .verdict import worst

FORMAT = "kernelpilot.verify"
VERSION = 1
FIX = "run `kernelpilot verify` again; the tool alone writes this file"


class Verification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One judgement. ``reason`` is empty for Correct, ``blame`` is empty for all but Broken."""

    format: Literal["kernelpilot.verify"] = "kernelpilot.verify"
    version: int = VERSION
    job_id: str
    arm: str
    framework: str
    verdict: Literal["Correct", "Wrong", "Broken"]
    reason: str
    stage: str
    blame: Literal["", "candidate", "incumbent", "harness"]
    findings: tuple[Finding, ...]
    worst: tuple[Worst, ...]
    checks: int
    """How many comparisons of one output with the reference were made for this arm."""
    regimes: tuple[str, ...]
    mutation_score: str
    notes: tuple[str, ...]
    log: str


OWNER = records.Owner(format=FORMAT, version=VERSION, type=Verification, fix=FIX)


def record(raw: Raw, judged: Outcome, *, arm: str = "B", mutation_score: str = "") -> Verification:
    """What to store of ``judged``; ``mutation_score`` is the task audit's, made when the contract was locked."""
    checks = [c for c in raw.checks if c.arm == arm]
    own = judged.mutation_score if isinstance(judged, Correct) else ""
    return Verification(
        job_id=raw.job_id,
        arm=arm,
        framework=raw.framework,
        verdict=_word(judged),
        reason="" if isinstance(judged, Correct) else judged.reason,
        stage=judged.stage if isinstance(judged, Broken) else "",
        blame=judged.blame if isinstance(judged, Broken) else "",
        findings=() if isinstance(judged, Correct) else judged.findings,
        worst=worst(checks),
        checks=len(checks),
        regimes=tuple(sorted({c.regime for c in checks})),
        mutation_score=mutation_score or own,
        notes=judged.notes if isinstance(judged, Correct) else (),
        log=judged.log if isinstance(judged, Broken) else "",
    )


def _word(judged: Outcome) -> Literal["Correct", "Wrong", "Broken"]:
    if isinstance(judged, Correct):
        return "Correct"
    return "Wrong" if isinstance(judged, Wrong) else "Broken"


def to_outcome(kept: Verification, *, at: str = "verify.json") -> Outcome:
    """The judgement back from its stored form.

    Raises:
        BadRecord: a Correct with a fault or without a check, or a failure without its reason or blame.
    """
    if kept.verdict == "Correct":
        if kept.findings or kept.reason or not kept.checks:
            raise BadRecord("says Correct, but holds a fault or no check", where=at, fix=FIX)
        return Correct(worst=kept.worst, checks=kept.checks, mutation_score=kept.mutation_score, notes=kept.notes)
    if not kept.reason:
        raise BadRecord(f"says {kept.verdict} without a reason", where=at, fix=FIX)
    if kept.verdict == "Wrong":
        return Wrong(reason=kept.reason, findings=kept.findings)
    if not kept.blame:
        raise BadRecord("says Broken without saying whose fault it is", where=at, fix=FIX)
    return Broken(stage=kept.stage, reason=kept.reason, blame=kept.blame, findings=kept.findings, log=kept.log)


def dump(kept: Verification) -> bytes:
    """Readable JSON with a final newline. Raises BadRecord for a figure that is not finite."""
    return records.dump(kept)


def parse(data: bytes, at: str = "verify.json") -> Verification:
    """Strict. Raises BadRecord (naming ``at`` and the path inside), NewerFormat for a later version."""
    return records.parse(data, OWNER, at=at)
