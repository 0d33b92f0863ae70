"""What a GPU job must show beside right outputs: its probes, whose kernels ran, and a clean sanitizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pytest

from kernelpilot_helpers import correctness
from kernelpilot_helpers.attempt.job import Job, TimeSpec, VerifySpec
from kernelpilot_helpers.attempt.raw import Check, Died, Event, Raw, Sanitized
from kernelpilot_helpers.correctness import Broken, Correct, Outcome, Wrong, judge
from tests.correct_sim import ALL, ON_GPU, broken, build, checks, gpu_checks, gpu_raw, raw, stats, use


def verdict(one: Raw, **changed: Any) -> Outcome:
    return judge(one, expectation=msgspec.structs.replace(ON_GPU, **changed))


def code(got: Outcome) -> str:
    return "" if isinstance(got, Correct) else got.reason.split(":")[0]


def where(test: Callable[[Check], bool], **changed: Any) -> Raw:
    return gpu_raw([broken(c, **changed) if test(c) else c for c in gpu_checks()])


def sanitized(errors: int | None, tool: Literal["memcheck", "racecheck", "initcheck"] = "memcheck") -> Sanitized:
    note = "" if errors is not None else "no answer in 60 s"
    return Sanitized(tool=tool, case_id="c0", errors=errors, seconds=5.0, note=note)


# --- probes


def test_a_whole_gpu_job_is_correct() -> None:
    got = verdict(gpu_raw())
    assert isinstance(got, Correct) and got.notes == ()


@pytest.mark.parametrize(
    ("probes", "name"),
    [
        (("graph",), "wrong.graph_only"),
        (("graph", "timed"), "wrong.graph_only"),  # timed blocks are replays as well
        (("late",), "wrong.stream"),
        (("late", "graph"), "wrong.stream"),
        (("timed",), "cheat.timed_only"),
        (("graph", "call", "repeat", "element", "late"), "wrong.tolerance"),
    ],
)
def test_the_gpus_probes_name_their_faults(probes: tuple[str, ...], name: str) -> None:
    got = verdict(where(lambda c: c.probe in probes, where=ALL))
    assert isinstance(got, Wrong) and code(got) == name


def test_a_cache_is_still_a_cache_on_a_gpu() -> None:
    """Breaks if failing probes of the GPU hide that the first call was right and all later ones were not."""
    assert code(verdict(where(lambda c: c.call_ix > 0, where=ALL))) == "cheat.cache"


def test_a_precision_miss_is_not_blamed_on_the_graph() -> None:
    near = stats(rms=0.7, max=9.0)
    assert code(verdict(where(lambda c: c.probe == "graph", stats=near, where=None))) == "wrong.tolerance"


@pytest.mark.parametrize("probe", ["graph", "late"])
def test_a_probe_that_was_not_made_is_never_a_pass(probe: str) -> None:
    got = verdict(gpu_raw([c for c in gpu_checks() if c.probe != probe or c.case_id != "edge"]))
    assert isinstance(got, Broken)
    assert (got.blame, got.reason) == (
        "harness", f"evidence.missing: output out was not compared under the probe {probe} (case edge)"
    )  # fmt: skip


def test_only_what_cannot_be_captured_goes_without_a_replay() -> None:
    """Breaks if one case's excuse covers another case, or the late probe."""
    uncaptured = [c for c in gpu_checks() if c.probe != "graph"]
    said = [Event(arm="B", kind="note.capture", case_id=c, detail="host branch") for c in ("c0", "edge")]
    got = verdict(gpu_raw(uncaptured, events=tuple(said)))
    assert isinstance(got, Correct) and "note.capture: host branch" in got.notes
    assert code(verdict(gpu_raw(uncaptured, events=tuple(said[:1])))) == "evidence.missing"
    of_a = tuple(msgspec.structs.replace(e, arm="A") for e in said)
    assert code(verdict(gpu_raw(uncaptured, events=of_a))) == "evidence.missing"
    assert code(verdict(gpu_raw(checks(), events=tuple(said)))) == "evidence.missing", "late is asked all the same"
    assert isinstance(verdict(gpu_raw(uncaptured), graph=False), Correct), "the contract says never"


# --- capture


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        ("capture.sync", "do not wait for the GPU inside a call"),
        ("capture.legacy_stream", "launch on the current stream"),
        ("capture.unjoined", "make the current stream wait"),
        ("capture.allocation", "take memory once, in prepare()"),
        ("capture.empty", "launch at least one kernel"),
        ("capture.invalid", "compile, tune and load libraries in prepare()"),
        ("capture.host_node", "launch kernels only"),
        ("capture.failed", "torch.cuda.graph()"),
    ],
)
def test_what_cannot_be_captured_is_broken_and_says_what_to_change(kind: str, fix: str) -> None:
    got = verdict(gpu_raw(events=(Event(arm="B", kind=kind, case_id="c0", detail="in call 3"),)))
    assert isinstance(got, Broken)
    assert (got.stage, got.blame) == ("capture", "candidate")
    assert got.reason.startswith(f"{kind}: in call 3; ") and fix in got.reason and got.reason.endswith("(case c0)")


def test_a_cheat_under_capture_is_wrong() -> None:
    event = Event(arm="B", kind="cheat.outside_window", case_id="c0", detail="2 kernels before the first call")
    assert code(verdict(gpu_raw(events=(event,)))) == "cheat.outside_window"


@pytest.mark.parametrize("why", ["gpu.absent", "gpu.busy: pid 77 holds it", "gpu.memory: 3 GiB are free"])
def test_a_gpu_that_is_not_there_is_nobodys_fault(why: str) -> None:
    died = Died(arm="", stage="oracle", exit=1, log=f"{why}\n")
    got = verdict(gpu_raw(died=died))
    assert isinstance(got, Broken) and got.blame == "harness"
    assert code(got) == why.split(":", maxsplit=1)[0]


# --- whose kernels ran


def leaf(foreign: int, *, names: tuple[str, ...] = ("ampere_sgemm_128",)) -> tuple[Any, ...]:
    """10 us a call, so much of it (in ns) in kernels of others."""
    mine = use("fig_leaf", 10_000 - foreign, ours=True)
    return (mine, *(use(n, foreign // len(names), ours=False) for n in names))


def test_a_fig_leaf_over_a_library_is_wrong() -> None:
    got = verdict(gpu_raw(inventory=leaf(9_000, names=("ampere_sgemm_128", "Memset", "x" * 80))))
    assert isinstance(got, Wrong)
    want = f"90 % of the GPU time is in what this candidate did not build: Memset, ampere_sgemm_128, {'x' * 57}..."
    assert got.reason == (
        f"policy.library_call: {want}; the library computes it, and policy.library_calls = false in contract.toml "
        "forbids that (case c0)"
    )


@pytest.mark.parametrize(("foreign", "name"), [(1_000, ""), (1_010, "policy.library_call")])
def test_a_tenth_of_the_time_may_be_fills_and_copies(foreign: int, name: str) -> None:
    assert code(verdict(gpu_raw(inventory=leaf(foreign)))) == name


def test_one_case_is_enough_and_cases_are_not_averaged() -> None:
    """Breaks if a library call on one small shape disappears among the others."""
    big = (use("tuned_kernel", 900_000, ours=True), use("gemm", 900, ours=False, case="edge"))
    assert "(case edge)" in getattr(verdict(gpu_raw(inventory=big)), "reason", "")


@pytest.mark.parametrize(("ours", "name"), [((True, True), ""), ((True, False), "policy.library_call")])
def test_names_without_times_pass_only_where_all_are_the_candidates_own(ours: tuple[bool, ...], name: str) -> None:
    """Breaks if a library's kernel goes unseen because the graph that named it has no durations."""
    named = tuple(use(f"k{n}", 0, ours=own) for n, own in enumerate(ours))
    assert code(verdict(gpu_raw(inventory=named))) == name


def test_an_allowed_library_is_only_noted() -> None:
    got = verdict(gpu_raw(inventory=leaf(9_000)), library_calls=True)
    assert isinstance(got, Correct)
    assert got.notes[0].startswith("library.share: case c0: 90 % of the GPU time")


def test_the_baseline_against_itself_may_call_the_library() -> None:
    """An A/A control has the baseline as arm B: breaks if a torch baseline is called a fig leaf there."""
    same = (build("A"), build("B", build_key="AAAA"))
    assert isinstance(verdict(gpu_raw(inventory=leaf(9_000), builds=same)), Correct)
    of_a = (*leaf(0), use("gemm", 9_000, ours=False, arm="A"))
    assert isinstance(verdict(gpu_raw(inventory=of_a)), Correct), "the incumbent's kernels are not asked for"


def test_a_job_that_did_not_watch_a_timed_case_is_no_pass() -> None:
    got = verdict(gpu_raw(inventory=()))
    assert isinstance(got, Broken)
    assert got.reason == "evidence.missing: nobody saw which kernels a call runs (case c0)"
    blind = gpu_raw(inventory=(), events=(Event(arm="B", kind="note.inventory", detail="no profiler"),))
    assert "runs (no profiler)" in getattr(verdict(blind), "reason", "")
    assert isinstance(verdict(blind, library_calls=True), Correct), "what may be called need not be watched"
    assert isinstance(judge(raw(), expectation=msgspec.structs.replace(ON_GPU, gpu=False)), Correct), "a CPU has none"


# --- the sanitizer


def test_errors_of_the_sanitizer_are_wrong() -> None:
    found = (sanitized(0), sanitized(3, "racecheck"))
    got = verdict(gpu_raw(sanitizer=found), sanitized=True)
    assert isinstance(got, Wrong) and got.reason == "memory.sanitizer: racecheck found 3 errors (case c0)"


def test_a_sanitizer_that_did_not_finish_is_said_and_is_no_pass() -> None:
    got = verdict(gpu_raw(sanitizer=(sanitized(0), sanitized(None, "initcheck"))), sanitized=True)
    assert isinstance(got, Correct)
    assert got.notes == ("sanitizer.unfinished: initcheck on case c0: no answer in 60 s",)
    assert code(verdict(gpu_raw(), sanitized=True)) == "evidence.missing", "asked for and not there"


def test_a_wrong_output_is_told_before_what_is_missing() -> None:
    bad = [broken(c) if c.probe == "call" else c for c in checks()]
    assert code(verdict(gpu_raw(bad, inventory=()))).startswith("wrong.")


def test_the_job_says_what_is_expected() -> None:
    base: dict[str, Any] = {"job_id": "j", "cases": (), "arms": (), "verify": VerifySpec(), "time": TimeSpec(pairs=2)}
    got = correctness.expect(Job(device="gpu", graph="never", phases=("verify", "time", "sanitize"), **base))
    assert (got.gpu, got.graph, got.sanitized) == (True, False, True)
    plain = correctness.expect(Job(phases=("verify", "time"), **base))
    assert (plain.gpu, plain.graph, plain.sanitized) == (False, True, False)
