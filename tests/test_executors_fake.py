"""FakeLab must be believable: deterministic, strict-parsable, and wrong only where its script says."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from kernelpilot_helpers.attempt.job import Arm, Job, JobCase, Limits, TensorSpec, TimeSpec, VerifySpec
from kernelpilot_helpers.attempt.raw import Died, Event
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.lab import parse_raw


def case(name: str, *, timed: bool = True) -> JobCase:
    x = TensorSpec(name="x", role="in", dtype="float32", shape=(4, 64), stride=(64, 1))
    out = TensorSpec(name="out", role="out", dtype="float32", shape=(4, 64), stride=(64, 1))
    return JobCase(
        case_id=name, axes={"N": 64}, flags={}, tensors=(x, out), required=True, edge=not timed,
        held_out=False, timed=timed,
    )  # fmt: skip


def job(keys: tuple[str, str] = ("aa", "bb")) -> Job:
    arms = (
        Arm(name="A", source="a", entry="candidate.py:entry", build_key=keys[0], is_baseline=True),
        Arm(name="B", source="b", entry="candidate.py:entry", build_key=keys[1], is_baseline=False),
    )
    return Job(
        job_id="j", phases=("audit", "verify", "time"), arms=arms,
        cases=(case("c0"), case("e0", timed=False)),
        time=TimeSpec(pairs=6, first_pair=6, blocks=4), verify=VerifySpec(), limits=Limits(),
    )  # fmt: skip


def gain(raw_samples, pair: int) -> float:
    by = {s.arm: s for s in raw_samples if s.pair == pair}
    return math.log(statistics.median(by["A"].ns) / statistics.median(by["B"].ns))


def test_speedup_is_seen_and_edge_cases_are_not_timed(tmp_path: Path) -> None:
    raw = FakeLab(speedup=2.0, noise=0.001).run(job(), tmp_path)
    assert {s.case_id for s in raw.samples} == {"c0"}
    assert sorted({s.pair for s in raw.samples}) == [6, 7, 8, 9, 10, 11]
    assert abs(gain(raw.samples, 6) - math.log(2.0)) < 0.01
    assert {s.first_arm for s in raw.samples if s.pair == 7} == {"B"}


def test_one_build_key_is_one_program_whatever_the_script_says() -> None:
    raw = FakeLab(speedup=2.0, noise=0.001).run(job(("aa", "aa")), Path("nowhere"))
    assert abs(gain(raw.samples, 6)) < 0.01
    assert raw.builds[0].binary_id == raw.builds[1].binary_id


def test_files_left_behind_parse_strictly_and_repeat(tmp_path: Path) -> None:
    raw = FakeLab(seed=3).run(job(), tmp_path)
    assert parse_raw((tmp_path / "raw.json").read_bytes()) == raw
    assert FakeLab(seed=3).run(job(), Path("nowhere")) == raw
    assert FakeLab(seed=4).run(job(), Path("nowhere")) != raw


def test_tail_names_the_last_columns_of_b_only() -> None:
    raw = FakeLab(wrong="tail").run(job(), Path("nowhere"))
    bad = [c for c in raw.checks if c.where is not None]
    assert {c.arm for c in bad} == {"B"}
    assert {c.where.bad_cols for c in bad if c.where} == {((56, 64),)}
    assert all(c.stats and c.stats.max < 3 for c in raw.checks if c.arm == "A")


def test_second_call_leaves_the_first_call_right() -> None:
    raw = FakeLab(wrong="second_call").run(job(), Path("nowhere"))
    verdicts = {(c.call_ix > 0, c.where is not None) for c in raw.checks if c.arm == "B"}
    assert verdicts == {(False, False), (True, True)}


def test_died_stops_at_its_stage_and_events_pass_through() -> None:
    event = Event(arm="B", kind="cheat.thread")
    raw = FakeLab(died=Died(arm="B", stage="build", log="boom"), events=[event]).run(job(), Path("nowhere"))
    assert (raw.checks, raw.samples, raw.events) == ((), (), (event,))
    assert [(b.arm, b.ok, b.log) for b in raw.builds] == [("A", True, ""), ("B", False, "boom")]
    raw = FakeLab(died=Died(arm="B", stage="call")).run(job(), Path("nowhere"))
    assert raw.checks and not raw.samples
