"""Correct, Wrong or Broken, and by which name: the first fault names the reason, all are findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import correctness
from kernelpilot_helpers.attempt.job import Arm, Job, JobCase, TensorSpec, TimeSpec, VerifySpec
from kernelpilot_helpers.attempt.raw import Artifact, Check, Died, Event, Raw
from kernelpilot_helpers.correctness import Broken, Correct, Outcome, Wrong, judge
from tests.correct_sim import ALL, EXPECT, GOOD, TAIL, broken, build, check, checks, raw, stats


def verdict(one: Raw, **changed: Any) -> Outcome:
    return judge(one, expectation=msgspec.structs.replace(EXPECT, **changed))


def code(got: Outcome) -> str:
    return "" if isinstance(got, Correct) else got.reason.split(":")[0]


def where(test: Callable[[Check], bool], **changed: Any) -> Raw:
    return raw([broken(c, **changed) if test(c) else c for c in checks()])


def test_all_right_is_correct_and_says_how_right() -> None:
    got = verdict(raw())
    assert isinstance(got, Correct)
    assert got.checks == 26
    assert [(w.case_id, w.output, w.rms_ratio, w.max_ulp) for w in got.worst] == [
        ("c0", "out", 1.0, 2.0),
        ("edge", "out", 1.0, 2.0),
    ]


@pytest.mark.parametrize(
    ("test", "name"),
    [
        (lambda c: True, "wrong.tolerance"),
        (lambda c: c.probe == "timed", "cheat.timed_only"),
        (lambda c: c.probe == "element", "cheat.fingerprint"),
        (lambda c: c.regime == "large", "wrong.regime"),
        (lambda c: c.regime != "gen", "wrong.regime"),
        (lambda c: c.case_id == "edge", "wrong.shape"),
        (lambda c: c.call_ix > 0, "wrong.second_call"),
        (lambda c: c.probe == "repeat", "wrong.second_call"),
        (lambda c: c.call_ix == 0, "wrong.tolerance"),
    ],
)
def test_the_probe_that_fails_names_the_fault(test: Callable[[Check], bool], name: str) -> None:
    got = verdict(where(test))
    assert isinstance(got, Wrong)
    assert code(got) == name
    assert {"wrong.tolerance"} <= {f.code for f in got.findings}


@pytest.mark.parametrize("test", [lambda c: c.probe in ("repeat", "timed"), lambda c: c.call_ix > 0])
def test_an_old_answer_is_a_cache(test: Callable[[Check], bool]) -> None:
    """Every element of later calls is wrong, the first call is right: the content was not read again."""
    assert code(verdict(where(test, where=ALL))) == "cheat.cache"
    assert code(verdict(where(test, where=TAIL))) == "wrong.second_call"
    assert code(verdict(where(test, where=None, note="stale: equals call 0"))) == "cheat.cache"


def test_what_one_case_leaves_behind_may_spoil_the_next() -> None:
    """A workspace shared by cases: the first case's first call is right, everything after it is wrong."""
    assert code(verdict(where(lambda c: c.case_id == "edge" or c.call_ix > 0))) == "wrong.second_call"
    assert code(verdict(where(lambda c: c.case_id == "edge"))) == "wrong.shape"


def test_an_imprecise_kernel_is_not_a_second_call() -> None:
    """Breaks if a rare large error, absent from the first call by luck, is told as something left behind."""
    rare = [broken(c) if c.probe == "repeat" and c.case_id == "c0" and c.seed_ix == 2 else c for c in checks()]
    assert code(verdict(raw([msgspec.structs.replace(c, regime="gen") for c in rare]))) == "wrong.tolerance"


def test_calls_that_are_wrong_only_together_are_wrong() -> None:
    """Every single call of one row is within its limit, all of them lean the same way."""
    leaning = [msgspec.structs.replace(c, stats=stats(bias=0.9, max=4.0)) for c in checks()]
    shapes = {"c0": {"out": (1, 1000)}, "edge": {"out": (1, 1000)}}
    got = verdict(raw(leaning), shapes=shapes)
    assert isinstance(got, Wrong)
    assert got.reason.startswith("wrong.tolerance: a bias of +0.9 ulp over 14 calls")


def test_the_second_call_is_counted() -> None:
    one = [broken(c) if c.probe == "repeat" and c.call_ix == 1 else c for c in checks()]
    assert "second call only" in judge(raw(one), expectation=EXPECT).reason  # type: ignore[union-attr]


def test_a_difference_of_bits_is_not_an_error_of_size() -> None:
    noted = [msgspec.structs.replace(c, note="3 elements differ") if c.probe == "bitwise" else c for c in checks()]
    got = verdict(raw(noted))
    assert code(got) == "wrong.nondeterministic"
    bare = [msgspec.structs.replace(c, stats=None) if c.probe == "bitwise" else c for c in checks()]
    assert isinstance(verdict(raw(bare)), Correct)


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        (stats(unwritten=4, nonfinite_equal=False), "wrong.unwritten"),
        (stats(nonfinite_equal=False), "wrong.nonfinite"),
        (stats(rms=1.0), "wrong.tolerance"),
        (None, "wrong.tolerance"),
    ],
)
def test_the_kind_of_error_names_it_otherwise(bad: Any, name: str) -> None:
    assert code(verdict(where(lambda c: True, stats=bad, where=None, note="shape differs"))) == name


def test_a_wrong_output_is_explained() -> None:
    got = verdict(where(lambda c: c.case_id == "c0"))
    assert isinstance(got, Wrong)
    assert "columns >= N - N % 128 (N = 1000: 896..999), every row" in got.reason
    assert "at (0, 896) got 0, want 1.25" in got.reason


@pytest.mark.parametrize(
    ("died", "name", "blame"),
    [
        (Died(arm="B", stage="call", case_id="c0", timeout=True), "timeout", "candidate"),
        (Died(arm="B", stage="call", signal="SIGSEGV"), "crash.signal", "candidate"),
        (Died(arm="B", stage="call", exit=3, log="Traceback\nValueError: no"), "crash.exit", "candidate"),
        (Died(arm="B", stage="build", log="kernel.c:1: error: nope"), "build.failed", "candidate"),
        (Died(arm="B", stage="load", log="no entry"), "load.failed", "candidate"),
        (Died(arm="B", stage="protocol"), "protocol.broken", "candidate"),
        (Died(arm="A", stage="call", signal="SIGSEGV"), "incumbent.broken", "incumbent"),
        (Died(arm="Z", stage="build"), "incumbent.broken", "incumbent"),
        (Died(arm="", stage="oracle", log="no such dtype"), "oracle.broken", "harness"),
        (Died(arm="B", stage="oracle"), "oracle.broken", "harness"),
    ],
)
def test_a_death_is_broken_and_blames_whose_it_was(died: Died, name: str, blame: str) -> None:
    got = verdict(raw(died=died))
    assert isinstance(got, Broken)
    assert (code(got), got.blame) == (name, blame)
    assert died.log in got.log


def test_the_compilers_last_line_is_the_reason() -> None:
    got = verdict(raw(died=Died(arm="B", stage="build", log="kernel.c:1: error: nope\n")))
    assert code(got) == "build.failed" and "kernel.c:1: error: nope" in got.reason  # type: ignore[union-attr]


def event(kind: str, arm: str = "B") -> Event:
    return Event(arm=arm, kind=kind, detail="seen")


@pytest.mark.parametrize(
    "kind", ["cheat.thread", "cheat.cache", "policy.library_call", "memory.redzone", "check.violation"]
)
def test_an_event_makes_a_right_answer_wrong(kind: str) -> None:
    got = verdict(raw(events=(event(kind),)))
    assert isinstance(got, Wrong)
    assert got.reason.partition(";")[0] == f"{kind}: seen"
    assert ("policy.library_calls = false" in got.reason) == (kind == "policy.library_call")


def test_cheats_are_named_before_memory_and_memory_before_errors() -> None:
    events = (event("memory.redzone"), event("policy.library_call"), event("cheat.thread"))
    got = verdict(where(lambda c: True))
    assert code(got) == "wrong.tolerance"
    both = msgspec.structs.replace(where(lambda c: True), events=events)
    got = verdict(both)
    assert isinstance(got, Wrong)
    want = ["cheat.thread", "policy.library_call", "memory.redzone", "wrong.tolerance"]
    assert list(dict.fromkeys(f.code for f in got.findings)) == want
    assert code(verdict(msgspec.structs.replace(both, events=events[:1]))) == "memory.redzone"


def test_library_calls_may_be_allowed() -> None:
    one = raw(events=(event("policy.library_call"),))
    assert isinstance(verdict(one, library_calls=True), Correct)
    assert isinstance(verdict(one), Wrong)


def test_a_death_names_the_reason_before_a_cheat() -> None:
    crash = Died(arm="B", stage="call", signal="SIGSEGV")
    got = verdict(raw(died=crash, events=(event("cheat.thread"),)))
    assert isinstance(got, Broken)
    assert (code(got), [f.code for f in got.findings]) == ("crash.signal", ["crash.signal", "cheat.thread"])


def test_dying_of_a_forged_reply_is_a_cheat() -> None:
    """Breaks if writing on the result channel is let off as an accident of the protocol."""
    died = Died(arm="B", stage="protocol")
    got = verdict(raw(died=died, events=(event("cheat.channel"),)))
    assert isinstance(got, Wrong)
    assert code(got) == "cheat.channel"


def test_dying_of_a_replaced_function_is_a_cheat() -> None:
    """Breaks as on an H200: a replay that did nothing left events unrecorded, and the verdict spoke of a crash."""
    died = Died(arm="B", stage="call", exit=1, log="CudaError: cuEventElapsedTime: CUDA_ERROR_INVALID_HANDLE (400)")
    got = verdict(raw(died=died, events=(event("cheat.patched"),)))
    assert isinstance(got, Wrong)
    assert code(got) == "cheat.patched"
    assert got.findings[-1].code == "crash.exit"


def test_an_arm_that_the_harness_ended_for_a_cheat_is_wrong_and_one_that_crashed_beside_it_is_broken() -> None:
    """Breaks as on an H200: work launched ahead of the spans was found, and the verdict spoke of a crash."""
    events = (event("cheat.outside_window"),)
    ended = Died(arm="B", stage="call", log="worker\ncheat.outside_window: 18 nodes run outside the timed spans\n")
    got = verdict(raw(died=ended, events=events))
    assert isinstance(got, Wrong)
    assert code(got) == "cheat.outside_window"
    crashed = verdict(raw(died=Died(arm="B", stage="call", log="Segmentation fault"), events=events))
    assert isinstance(crashed, Broken)


def test_a_binary_in_the_source_is_named_before_the_build_it_stopped() -> None:
    got = verdict(raw(died=Died(arm="B", stage="build"), events=(event("build.binary_in_source"),)))
    assert isinstance(got, Broken)
    assert code(got) == "build.binary_in_source"


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"ok": False, "log": "error: x"}, "build.failed"),
        ({"build_id_ok": False}, "build.stale"),
        ({"loaded": (("kernel.so", "f" * 64),)}, "build.foreign"),
    ],
)
def test_what_ran_must_be_what_was_built(changed: dict[str, Any], name: str) -> None:
    got = verdict(raw(builds=(build("A"), build("B", **changed))))
    assert isinstance(got, Broken)
    assert (code(got), got.blame) == (name, "candidate")


def test_a_library_built_here_may_be_loaded() -> None:
    made = Artifact(path="kernel.so", sha256="f" * 64, normal_sha256="0" * 64, build_id="1", command=(), compiler="cc")
    mine = build("B", artifacts=(made,), loaded=(("kernel.so", "f" * 64),))
    assert isinstance(verdict(raw(builds=(build("A"), mine))), Correct)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (raw([c for c in checks() if c.case_id != "edge"]), "output out was not compared for seed 0, 1, 2"),
        (raw([c for c in checks() if c.seed_ix != 2 or c.case_id != "c0"]), "not compared for seed 2"),
        (raw([c for c in checks() if c.probe != "call"]), "not compared for seed 0, 1, 2"),
        (raw([c for c in checks() if c.probe != "timed"]), "not rechecked while it was timed"),
        (raw([]), "not compared"),
        (raw(builds=(build("A"),)), "no build record of arm B"),
    ],
)
def test_no_evidence_is_never_a_pass(one: Raw, words: str) -> None:
    got = verdict(one)
    assert isinstance(got, Broken)
    assert (code(got), got.blame) == ("evidence.missing", "harness")
    assert words in got.reason


def test_a_second_output_that_was_not_compared_is_missing() -> None:
    shapes = {"c0": {"out": (1, 1), "residual": (1, 1)}, "edge": {"out": (1, 1)}}
    got = verdict(raw(), shapes=shapes)
    assert code(got) == "evidence.missing" and "residual" in got.reason  # type: ignore[union-attr]


def test_a_job_that_asked_for_nothing_proves_nothing() -> None:
    assert code(verdict(raw(), seeds=0, timed_cases=())) == "evidence.missing"
    assert code(verdict(raw(), cases=(), timed_cases=())) == "evidence.missing"


def test_the_incumbents_fault_is_not_the_candidates() -> None:
    """Breaks if an incumbent that fails its own recheck is used as a yardstick, or condemns the candidate."""
    bad_a = msgspec.structs.replace(check("c0", arm="A", probe="timed", pair=0), stats=stats(rms=9.0))
    one = raw()
    got = verdict(msgspec.structs.replace(one, checks=(*one.checks, bad_a)))
    assert isinstance(got, Broken)
    assert (code(got), got.blame) == ("incumbent.wrong", "incumbent")
    assert isinstance(verdict(raw(events=(event("cheat.thread", "A"),))), Broken)
    both = where(lambda c: True)
    assert isinstance(verdict(msgspec.structs.replace(both, checks=(*both.checks, bad_a))), Wrong)


def test_an_event_that_this_tool_does_not_know_is_not_a_pass() -> None:
    got = verdict(raw(events=(event("novel.trick"),)))
    assert isinstance(got, Broken)
    assert (code(got), got.blame) == ("event.unknown", "harness")
    assert isinstance(verdict(raw(events=(event("note.slow"),))), Correct)


def test_a_timed_job_repeats_itself_once() -> None:
    many = [*checks(), *(broken(check("c0", probe="timed", call_ix=i, pair=i)) for i in range(50))]
    got = verdict(raw(many))
    assert isinstance(got, Wrong)
    assert len(got.findings) == 2


def job(**changed: Any) -> Job:
    def tensor(name: str, role: Any, shape: tuple[int, ...]) -> TensorSpec:
        return TensorSpec(name=name, role=role, dtype="float32", shape=shape, stride=(1,) * len(shape))

    def case(case_id: str, *, edge: bool) -> JobCase:
        tensors = (tensor("x", "in", (8, 16)), tensor("r", "inout", (2, 4, 16)), tensor("o", "out", (16,)))
        return JobCase(
            case_id=case_id, axes={"N": 16}, flags={}, tensors=tensors, required=True, edge=edge, held_out=False,
            timed=not edge,
        )  # fmt: skip

    base: dict[str, Any] = {
        "job_id": "j",
        "phases": ("verify", "time"),
        "cases": (case("c0", edge=False), case("e0", edge=True)),
        "arms": (Arm(name="B", source="b", entry="candidate.py:entry", build_key="1", is_baseline=False),),
        "verify": VerifySpec(seeds=5),
        "time": TimeSpec(pairs=2),
    }
    return Job(**{**base, **changed})


def test_the_job_says_what_must_be_there() -> None:
    got = correctness.expect(job())
    assert (got.cases, got.outputs, got.seeds, got.timed_cases) == (("c0", "e0"), ("r", "o"), 5, ("c0",))
    assert got.edge_cases == ("e0",)
    assert got.shapes["c0"] == {"r": (8, 16), "o": (1, 16)}
    assert correctness.expect(job(phases=("time",))).seeds == 0
    assert correctness.expect(job(phases=("verify",))).timed_cases == ()


def test_good_statistics_are_good() -> None:
    """Breaks if the fixture that every test above starts from is itself beyond a limit."""
    assert correctness.faults(GOOD) == ()


@pytest.mark.parametrize(
    "test", [lambda c: c.case_id == "edge", lambda c: c.call_ix > 0, lambda c: c.regime == "large"]
)
def test_a_precision_miss_near_the_limit_accuses_nobody(test: Callable[[Check], bool]) -> None:
    """Breaks when the luck of a draw is called a bug of shape, state or regime: the errors are a few ulp everywhere."""
    near = stats(rms=1.2, max=5.4)
    missed = [msgspec.structs.replace(c, stats=near) if test(c) and c.probe != "bitwise" else c for c in checks()]
    got = verdict(raw(missed))
    assert isinstance(got, Wrong) and got.reason.startswith("wrong.tolerance: a precision miss near the limit")
