"""The A/A floor: the baseline against itself on this booking, measured when no fit one is younger than an hour."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelpilot_helpers import benchmark, correctness, policy
from kernelpilot_helpers import contract as contracts
from kernelpilot_helpers.attempt import sane
from kernelpilot_helpers.attempt.job import Job, TimeSpec, VerifySpec
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.correctness import Correct
from kernelpilot_helpers.errors import BadRecord, KernelPilotError
from kernelpilot_helpers.referee.runs import FloorRecord
from kernelpilot_helpers.referee.workspace import Workspace

Clock = Callable[[], dt.datetime]


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """What the A/A controls allow one to say on this machine."""

    bias_bound: float
    unfit: str
    booking: dict[str, Any] = field(default_factory=dict)
    """Of the youngest control: where the jobs that are judged by it must have run."""


def utc_now() -> dt.datetime:
    """The clock of the referee; tests pass another."""
    return dt.datetime.now(dt.timezone.utc)


def stamp(clock: Clock) -> str:
    """UTC, ISO 8601, to the second."""
    return clock().strftime("%Y-%m-%dT%H:%M:%SZ")


def booking(raw: Raw) -> dict[str, Any]:
    """What must be equal for two measurements to share a floor."""
    return benchmark.booking(raw.env)


def judge(workspace: Workspace, raw: Raw, *, run: str, at: str) -> FloorRecord:
    """The floor that an A/A raw shows. Raises KernelPilotError when the baseline is not correct against itself."""
    if odd := sane.problems([raw]):
        raise BadRecord(
            f"the A/A control holds what no measurement can give: {odd[0]}", where=run, fix="measure it again"
        )
    verified = correctness.judge(raw, numerics=workspace.numerics, expectation=expectation(workspace))
    if not isinstance(verified, Correct):
        raise KernelPilotError(
            f"the baseline fails against itself: {verified.reason}",
            where=f"artifacts/runs/{run}",
            fix="mend baseline/ or reference.py",
        )
    found = benchmark.floor([raw], device=workspace.device, timed=workspace.timed, weights=workspace.weights)
    return FloorRecord(
        run=run,
        at=at,
        booking=booking(raw),
        half_width=found.half_width if found.half_width is not None else 1.0,
        point=found.point,
        fit=found.fit,
        reason=found.reason,
        cases=found.cases,
    )


def expectation(workspace: Workspace) -> correctness.Expectation:
    """Which checks must be present before anything is called correct."""
    return correctness.expect(
        Job(
            job_id="",
            device=contracts.device(workspace.contract.target),
            graph=workspace.contract.call.graph or "may",
            phases=("verify", "time"),
            library_calls=workspace.contract.policy.library_calls,
            cases=workspace.resolved,
            arms=(),
            verify=VerifySpec(seeds=policy.POLICY.verify_seeds),
            time=TimeSpec(pairs=2),
        )
    )


def usable(
    records: Sequence[FloorRecord], *, boot_id: str, now: dt.datetime, like: Mapping[str, Any] | None = None
) -> list[FloorRecord]:
    """Controls of this boot that are young enough and fit: an unfit one says what the machine was like, then.

    ``like`` is the booking of a job just made here: controls of another GPU, driver or Python are none of its.
    """
    limit = now - dt.timedelta(minutes=policy.POLICY.aa_minutes)
    young = [r for r in records if r.fit and r.booking.get("boot_id") == boot_id and _when(r.at) >= limit]
    return [r for r in young if like is None or not benchmark.moved(r.booking, like)]


def _when(at: str) -> dt.datetime:
    try:
        return dt.datetime.strptime(at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=dt.timezone.utc)
    except ValueError:
        return dt.datetime.min.replace(tzinfo=dt.timezone.utc)


def pooled(records: Sequence[FloorRecord]) -> Floor:
    """Bias from all controls together, fitness from the youngest. Raises ValueError without a control."""
    if not records:
        raise ValueError("no A/A control")
    last = max(records, key=lambda r: r.at)
    same = [r for r in records if r.booking == last.booking]
    bias = abs(sum(r.point for r in same) / len(same))
    return Floor(bias_bound=bias, unfit="" if last.fit else last.reason, booking=last.booking)
