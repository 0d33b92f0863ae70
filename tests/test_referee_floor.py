"""The A/A floor of an attempt: an unfit one is measured anew, and judges nothing for an hour."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Raw, Samples
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.ledger.model import Motivation
from kernelpilot_helpers.referee import attempt as attempts
from kernelpilot_helpers.referee import floor, ledgers, measure, runs
from kernelpilot_helpers.referee.runs import FloorRecord
from tests.referee_sim import clock, locked_repo, quiet, write_variant

QUIET = "busy machine: try again when it is quiet"


class Busy:
    """A machine whose controls are as noisy as the list says, one after another; all else is quiet."""

    def __init__(self, *noise: float, speedup: float = 1.5) -> None:
        self.noise = list(noise)
        self.speedup = speedup
        self.controls = 0

    def run(self, job: Job, workdir: Path) -> Raw:
        """One job."""
        if len({arm.build_key for arm in job.arms}) > 1 or "audit" in job.phases:
            return FakeLab(speedup=self.speedup).run(job, workdir)
        self.controls += 1
        return FakeLab(noise=self.noise.pop(0), seed=3).run(job, workdir)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repo that was locked while the machine was busy, on the boot that FakeLab names."""
    monkeypatch.setattr(measure, "boot_id", lambda: "fake")
    done = locked_repo(tmp_path / "repo", Busy(0.4))
    assert done.floor is not None and not done.floor.fit
    write_variant(tmp_path / "repo", "fused", "def entry(**tensors):\n    pass\n")
    return tmp_path / "repo"


def attempt(repo: Path, lab: Busy, *, again: bool = False) -> attempts.Recorded:
    motivation = Motivation(kind="benchmark", text="fewer temporaries")
    request = attempts.Request(variant="fused", motivation=motivation, max_pairs=10, again=again)
    return attempts.attempt(repo, request, lab=lab, clock=clock, say=quiet)


def test_an_unfit_floor_of_the_lock_does_not_decide_the_next_attempt(repo: Path) -> None:
    """Breaks when one busy minute at the lock makes an hour of verdicts impossible."""
    lab = Busy(0.002)
    row = attempt(repo, lab).row
    assert (row.verdict, lab.controls) == ("IMPROVED", 1)
    cited = [run for run in row.runs if (repo / "artifacts/runs" / run / "floor.json").exists()]
    assert cited == list(row.runs[:1]) and runs.floors(repo, cited)[0].fit
    write_variant(repo, "fused", "def entry(**tensors):\n    return 1\n")
    again = Busy()
    assert attempt(repo, again).row.verdict is not None
    assert again.controls == 0, "a fit control is shared for an hour"
    assert ledgers.check(repo) == []


def test_a_machine_that_is_still_busy_says_the_way_out_and_is_asked_again(repo: Path) -> None:
    """Breaks when a verdict comes off a noisy machine, or its row forbids the same tree for ever."""
    row = attempt(repo, Busy(0.4)).row
    assert row.verdict == "AMBIGUOUS" and row.status == "rejected"
    assert row.reason.startswith("machine.unfit: floor.noise: ") and row.reason.endswith(QUIET)
    later = attempt(repo, Busy(0.002))
    assert (later.row.kind, later.row.verdict) == ("attempt", "IMPROVED")
    assert ledgers.check(repo) == []


def test_only_a_fit_young_control_of_this_boot_is_shared() -> None:
    """Breaks when an unfit, an old or another boot's control counts."""
    now = dt.datetime(2026, 1, 1, 12, 0, tzinfo=dt.timezone.utc)

    def record(run: str, at: str, *, boot: str = "b", fit: bool = True) -> FloorRecord:
        return FloorRecord(run=run, at=at, booking={"boot_id": boot}, half_width=0.01, point=0.0, fit=fit)

    found = [
        record("young", "2026-01-01T11:30:00Z"),
        record("old", "2026-01-01T10:59:59Z"),
        record("unfit", "2026-01-01T11:59:00Z", fit=False),
        record("elsewhere", "2026-01-01T11:59:00Z", boot="c"),
    ]
    assert [r.run for r in floor.usable(found, boot_id="b", now=now)] == ["young"]


def test_a_disturbed_clock_says_to_try_again(repo: Path) -> None:
    """Breaks when suspect.clock leaves a person without a next step."""

    class Late(Busy):
        def run(self, job: Job, workdir: Path) -> Raw:
            raw = super().run(job, workdir)
            return raw if len({arm.build_key for arm in job.arms}) == 1 else _late(raw, workdir)

    row = attempt(repo, Late(0.002)).row
    assert row.verdict == "AMBIGUOUS" and row.reason.startswith("suspect.clock: ") and row.reason.endswith(QUIET)


def _late(raw: Raw, workdir: Path) -> Raw:
    """Every block's wall clock runs on for long after its ticks, in both arms."""

    def slow(item: Samples) -> Samples:
        return msgspec.structs.replace(item, wall_ns=tuple(3 * t + 10_000_000 for t in item.ns))

    late = msgspec.structs.replace(raw, samples=tuple(slow(s) for s in raw.samples))
    (workdir / "raw.json").write_bytes(msgspec.json.encode(late))
    return late


def test_a_tier_without_such_a_look_says_what_to_give(repo: Path) -> None:
    """Breaks when the remedy begins with a bare option, which is no command."""
    motivation = Motivation(kind="benchmark", text="x")
    request = attempts.Request(variant="fused", motivation=motivation, max_pairs=2)
    with pytest.raises(Refused) as caught:
        attempts.attempt(repo, request, lab=Busy(), clock=clock, say=quiet)
    assert caught.value.fix.startswith("give --max-pairs 6")
