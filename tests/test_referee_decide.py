"""What is asked for next on a GPU and when it ends: claims, the sanitizer, heat, several baselines."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from kernelpilot_helpers import correctness, policy, scaffold
from kernelpilot_helpers.attempt.job import Arm, Job, JobCase, Phase, TensorSpec, TimeSpec, VerifySpec
from kernelpilot_helpers.attempt.raw import Died, Event, GpuLook, Raw, Sanitized
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.fake_gpu import Script
from kernelpilot_helpers.referee import decide, locking, seals, workspace
from kernelpilot_helpers.referee.decide import Ask, Facts, Outcome, Runs
from tests import referee_sim as sim
from tests.bench_sim import look

NOWHERE = Path("/nonexistent")
CASES = ("c0", "c1")
Device = Literal["cpu", "gpu"]


def case(name: str) -> JobCase:
    x = TensorSpec(name="x", role="in", dtype="float32", shape=(64, 1024), stride=(1024, 1))
    tensors = (x, msgspec.structs.replace(x, name="y", role="out"))
    return JobCase(
        case_id=name, axes={}, flags={}, tensors=tensors, required=True, edge=False, held_out=False, timed=True
    )


RESOLVED = tuple(case(name) for name in CASES)


def job(
    phases: tuple[Phase, ...], *, pairs: int = 2, first_pair: int = 0, device: Device = "gpu", who: str = "A"
) -> Job:
    """Arm A is the incumbent or, by another ``who``, a baseline."""

    def arm(name: Literal["A", "B"], key: str) -> Arm:
        return Arm(name=name, source=f"arms/{name}", entry="c.py:entry", build_key=key, is_baseline=False)

    return Job(
        job_id="j",
        device=device,
        phases=phases,
        cases=RESOLVED,
        arms=(arm("A", who * 8), arm("B", "b" * 8)),
        verify=VerifySpec(),
        time=TimeSpec(pairs=pairs, first_pair=first_pair, blocks=4, sample_us=1000.0),
    )


def _kind(device: policy.DevicePolicy) -> Device:
    return "gpu" if device.kind == "gpu" else "cpu"


def facts(*, tier: str = "accept", device: policy.DevicePolicy = policy.GPU, **changed: Any) -> Facts:
    base: dict[str, Any] = {
        "tier": policy.tiers(device.kind)[tier],
        "device": device,
        "max_pairs": None,
        "numerics": policy.NUMERICS,
        "expect": correctness.expect(job(("verify", "time"), device=_kind(device))),
        "timed": CASES,
        "required": frozenset(CASES),
        "weights": None,
        "bias_bound": 0.0,
        "unfit": "",
        "incumbent_is_baseline": True,
        "mutation_score": "",
        "cases": RESOLVED,
    }
    return Facts(**{**base, **changed})


def raw(ask: Ask, lab: FakeLab, *, device: Device = "gpu") -> Raw:
    who = f"{ask.which}" if ask.role == "baseline" else "A"
    return lab.run(
        job(ask.phases, pairs=ask.pairs, first_pair=ask.first_pair, device=device, who=who), NOWHERE
    )  # fmt: skip


def drive(
    known: Facts, main: FakeLab, baselines: Mapping[int, FakeLab | Raw] | None = None
) -> tuple[Outcome, list[tuple[str, int]]]:
    """Answer until it ends: (outcome, (role, which) of each ask)."""
    state = Runs()
    asked: list[tuple[str, int]] = []
    while True:
        answer = decide.step(known, state)
        if isinstance(answer, Outcome):
            return answer, asked
        asked.append((answer.role, answer.which))
        lab = (baselines or {}).get(answer.which, main) if answer.role == "baseline" else main
        made = lab if isinstance(lab, Raw) else raw(answer, lab, device=_kind(known.device))
        state = state.with_raw(answer.role, made)


def first(known: Facts) -> Ask:
    answer = decide.step(known, Runs())
    assert isinstance(answer, Ask)
    return answer


# --- tiers and the sanitizer


def test_only_a_claim_on_a_gpu_is_looked_at_by_the_sanitizer() -> None:
    assert first(facts(tier="claim")).phases == ("verify", "time", "sanitize")
    assert first(facts(tier="claim")).pairs == 10
    assert first(facts()).phases == first(facts(tier="claim", device=policy.CPU)).phases == ("verify", "time")
    outcome, asked = drive(facts(tier="claim"), FakeLab(speedup=1.1))
    assert (outcome.verdict, asked) == ("IMPROVED", [("main", 0), ("confirm", 0)])
    assert outcome.notes == ()


def test_a_claim_with_errors_of_the_sanitizer_is_wrong() -> None:
    outcome, asked = drive(facts(tier="claim"), FakeLab(speedup=1.1, gpu=Script(sanitizer=2)))
    assert (outcome.verdict, asked) == ("WRONG", [("main", 0)])
    assert outcome.reason == "memory.sanitizer: memcheck found 2 errors (case c0)"


def test_a_claim_whose_sanitizer_did_not_finish_says_so() -> None:
    """Breaks if silence of a tool that was killed reads like a clean bill."""
    lab = FakeLab(speedup=1.1)
    main = raw(first(facts(tier="claim")), lab)
    ended = Sanitized(tool="racecheck", case_id="c1", errors=None, seconds=60.0, note="killed after 60 s")
    state = Runs(main=msgspec.structs.replace(main, sanitizer=(ended,)))
    ask = decide.step(facts(tier="claim"), state)
    assert isinstance(ask, Ask)
    outcome = decide.step(facts(tier="claim"), state.with_raw("confirm", raw(ask, lab)))
    assert isinstance(outcome, Outcome) and outcome.verdict == "IMPROVED"
    said = "sanitizer.unfinished: racecheck on case c1: killed after 60 s"
    assert outcome.reason.endswith(f"; {said}") and outcome.notes == (said,)
    silent = decide.step(facts(tier="claim"), Runs(main=msgspec.structs.replace(main, sanitizer=())))
    assert isinstance(silent, Outcome) and silent.reason.startswith("evidence.missing")


def test_a_screen_never_improves() -> None:
    assert drive(facts(tier="screen"), FakeLab(speedup=1.5))[0].verdict == "AMBIGUOUS"
    assert drive(facts(tier="screen"), FakeLab(speedup=0.5))[0].verdict == "REGRESSED"


# --- what a GPU's figures must survive, through the whole


@pytest.mark.parametrize(
    ("changed", "verdict", "code"),
    [
        ({"gpu": Script(ours=0.5)}, "WRONG", "policy.library_call"),
        ({"wrong": "graph"}, "WRONG", "wrong.graph_only"),
        ({"wrong": "late"}, "WRONG", "wrong.stream"),
        ({"events": [Event(arm="B", kind="capture.sync", case_id="c0", detail=".item()")]}, "BROKEN", "capture.sync"),
    ],
)
def test_the_gpus_faults_end_an_attempt(changed: dict[str, Any], verdict: str, code: str) -> None:
    outcome, asked = drive(facts(), FakeLab(speedup=1.1, **changed))
    assert (outcome.verdict, outcome.reason.split(":")[0], asked) == (verdict, code, [("main", 0)])


def test_a_time_below_the_memorys_floor_ends_in_quarantine() -> None:
    """512 KiB a call at 3.8 GB/s take 138 us; the incumbent's take 150, the candidate's 125."""
    main = raw(first(facts()), FakeLab(speedup=1.2))
    slow = msgspec.structs.replace(main, env={**main.env, "dram_gbs": 3.8})
    outcome = decide.step(facts(), Runs(main=slow))
    assert isinstance(outcome, Outcome)
    assert (outcome.verdict, outcome.partial) == ("AMBIGUOUS", False)
    assert outcome.reason.startswith("suspect.floor: case c0 has 512.0 KiB cold")


def hot(one: Raw, *looks: GpuLook) -> Raw:
    return msgspec.structs.replace(one, gpu=looks)


def test_the_next_look_follows_the_pairs_that_were_run() -> None:
    """Breaks if pairs that were left out are numbered again: the table would hold them twice."""
    main = hot(raw(first(facts()), FakeLab(speedup=1.004, noise=0.02)), look(1, "hw_thermal"))
    ask = decide.step(facts(), Runs(main=main))
    assert isinstance(ask, Ask)
    assert (ask.role, ask.first_pair, ask.pairs) == ("more", 6, 4)
    more = raw(ask, FakeLab(speedup=1.004, noise=0.02, seed=1))
    again = decide.step(facts(), Runs(main=main, more=(more,)))
    assert isinstance(again, Ask) and (again.first_pair, again.pairs) == (10, 10)


def test_a_confirmation_has_as_many_pairs_as_were_run() -> None:
    main = hot(raw(first(facts()), FakeLab(speedup=1.1)), look(1, "hw_slowdown"))
    ask = decide.step(facts(), Runs(main=main))
    assert isinstance(ask, Ask) and (ask.role, ask.pairs, ask.first_pair) == ("confirm", 6, 0)
    outcome = decide.step(facts(), Runs(main=main, confirm=hot(raw(ask, FakeLab(speedup=1.1)), look(0, "hw_thermal"))))
    assert isinstance(outcome, Outcome)
    assert (outcome.verdict, outcome.bench and outcome.bench.pairs) == ("IMPROVED", 4)


# --- several baselines


def test_one_baseline_asks_as_ever() -> None:
    outcome, asked = drive(facts(), FakeLab(speedup=1.1))
    assert asked == [("main", 0), ("confirm", 0)]
    assert outcome.vs_baseline == outcome.gain and outcome.fastest == {}
    later = facts(incumbent_is_baseline=False)
    outcome, asked = drive(later, FakeLab(speedup=1.1), {0: FakeLab(speedup=1.5)})
    assert asked == [("main", 0), ("confirm", 0), ("baseline", 0)]
    assert outcome.vs_baseline is not None and outcome.vs_baseline.speedup == pytest.approx(1.5, rel=5e-3)


class Steady(FakeLab):
    """Arm B always takes the same time, and the other arm ``gain`` times that: candidates do not change with A."""

    def __init__(self, gain: Mapping[str, float], **more: Any) -> None:
        super().__init__(speedup=gain, **more)
        self.gain = gain

    def run(self, job: Job, workdir: Path) -> Raw:
        """One job."""
        made = super().run(job, workdir)
        scaled = []
        for item in made.samples:
            ns = tuple(round(t * self.gain[item.case_id]) for t in item.ns)
            scaled.append(msgspec.structs.replace(item, ns=ns, wall_ns=tuple(t + 40_000 for t in ns)))
        return msgspec.structs.replace(made, samples=tuple(scaled))


def steady(c0: float, c1: float, **more: Any) -> Steady:
    return Steady({"c0": c0, "c1": c1}, **more)


def test_the_gain_over_several_baselines_is_over_the_fastest_of_each_case() -> None:
    """1.3 and 1.1 over the incumbent, which is the first baseline, 1.2 over the second: sqrt(1.2 x 1.1) = 1.1489."""
    outcome, asked = drive(facts(baselines=2), steady(1.3, 1.1), {1: steady(1.2, 1.2)})
    assert asked == [("main", 0), ("confirm", 0), ("baseline", 1)]
    assert outcome.fastest == {"c0": 1, "c1": 0}
    assert outcome.vs_baseline is not None and outcome.vs_baseline.speedup == pytest.approx(1.1489, rel=4e-3)
    assert outcome.gain is not None and outcome.gain.speedup == pytest.approx(1.1958, rel=4e-3)


def test_every_baseline_is_run_when_the_incumbent_is_none_of_them() -> None:
    known = facts(baselines=3, incumbent_is_baseline=False)
    rest = {0: steady(2.0, 2.0), 1: steady(1.5, 1.8), 2: steady(1.6, 1.4)}
    outcome, asked = drive(known, steady(1.1, 1.1), rest)
    assert asked == [("main", 0), ("confirm", 0), ("baseline", 0), ("baseline", 1), ("baseline", 2)]
    assert outcome.fastest == {"c0": 1, "c1": 2}
    assert outcome.vs_baseline is not None and outcome.vs_baseline.speedup == pytest.approx(1.4491, rel=4e-3)


def test_a_baseline_that_does_not_run_here_is_left_out_by_name() -> None:
    """Breaks if a baseline that needs another GPU, or is wrong, sets the mark or stops the attempt."""
    died = steady(1.0, 1.0, died=Died(arm="A", stage="load", log="ImportError: no module named fast_lib"))
    outcome, _ = drive(facts(baselines=2), steady(1.3, 1.1), {1: died})
    assert outcome.fastest == {"c0": 0, "c1": 0}
    assert outcome.notes == ("baseline.left_out: baseline 2: load.failed: ImportError: no module named fast_lib",)
    ask = Ask(role="baseline", phases=("time",), pairs=6, first_pair=0, why="", which=1)
    made = raw(ask, steady(1.01, 1.01))
    poor = tuple(
        msgspec.structs.replace(c, stats=msgspec.structs.replace(c.stats, nonfinite_equal=False))
        for c in made.checks
        if c.arm == "A" and c.stats is not None
    )
    wrong = msgspec.structs.replace(made, checks=(*(c for c in made.checks if c.arm == "B"), *poor))
    outcome, _ = drive(facts(baselines=2), steady(1.3, 1.1), {1: wrong})
    assert outcome.fastest == {"c0": 0, "c1": 0}
    assert outcome.notes[0].startswith("baseline.left_out: baseline 2: wrong.nonfinite: ")


def test_a_candidate_that_fails_in_a_direct_run_gains_nothing() -> None:
    """Breaks if a cheat may switch itself on when the arm beside it is a baseline."""
    outcome, _ = drive(facts(baselines=2), steady(1.3, 1.1), {1: steady(1.2, 1.2, wrong="timed")})
    assert (outcome.verdict, outcome.reason.split(":")[0]) == ("WRONG", "cheat.timed_only")


def test_without_direct_runs_nothing_is_said_about_several_baselines() -> None:
    """The incumbent is one of two baselines: breaks if the gain over it is passed off as the gain over the fastest."""
    outcome, asked = drive(facts(baselines=2), steady(0.9, 0.9))
    assert (outcome.verdict, outcome.vs_baseline, asked) == ("REGRESSED", None, [("main", 0)])
    assert drive(facts(), steady(0.9, 0.9))[0].vs_baseline is not None


def test_looks_are_judged_as_one_record() -> None:
    """Breaks if a later look's kernels or sanitizer runs are dropped on the way to the judge."""
    main = raw(first(facts(tier="claim")), FakeLab())
    got = decide.merged((main, main))
    assert (len(got.inventory), len(got.sanitizer)) == (2 * len(main.inventory), 2 * len(main.sanitizer))


TWO = '\n[[baseline]]\nid = "{}"\nfn = "baseline/candidate.py:{}"\n'


def test_two_baselines_through_the_lineage(tmp_path: Path) -> None:
    """Breaks if a direct run times the wrong baseline, drops the yardstick, or cannot be judged again."""
    repo = tmp_path / "repo"
    scaffold.make(scaffold.example(task=sim.TASK), repo, kernelpilot=Path(sys.executable))
    contract = repo / "contract.toml"
    one = re.sub(r"(?ms)^baseline\s*=\s*\[.*?\]\s*$", "", contract.read_text()).replace('gpu = "cpu"', 'gpu = "H200"')
    contract.write_text(one + TWO.format("first", "entry") + TWO.format("second", "other"))
    (repo / "baseline/candidate.py").write_text(
        "def entry(**tensors):\n    pass\n\n\ndef other(**tensors):\n    pass\n"
    )
    locking.lock(repo, amend=False, why="", lab=FakeLab(), clock=sim.clock, say=sim.quiet)
    sim.write_variant(repo, "fused", "def entry(**tensors):\n    pass\n")
    lab = FakeLab(speedup=1.3)
    recorded = sim.attempt(repo, lab, max_pairs=None)
    assert (recorded.row.verdict, [len(j.arms) for j in lab.jobs]) == ("IMPROVED", [2, 2, 3])
    assert [(arm.name, arm.entry, arm.is_baseline) for arm in lab.jobs[-1].arms] == [
        ("A", "candidate.py:other", False),
        ("B", "candidate.py:entry", False),
        ("Z", "candidate.py:entry", True),
    ]
    assert lab.jobs[-1].time is not None and (lab.jobs[-1].phases, lab.jobs[-1].time.blocks) == (("time",), 12)
    assert recorded.outcome is not None and set(recorded.outcome.fastest.values()) <= {0, 1}
    ws = workspace.open_repo(repo)
    assert [seals.rejudged(ws, row) for row in ws.rows] == [[], []]
    kept = [run for run in recorded.row.runs if (repo / "artifacts/runs" / run / "bench.json").exists()]
    assert len(kept) == 3, "a bench beside each of main, confirmation and direct run"
