"""A GPU task from its lock to a green gate, judged by FakeLab; and what only a GPU's machine can do to it."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import contract as contracts
from kernelpilot_helpers import plan, policy, proc
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import FigureTime, Raw, Residency
from kernelpilot_helpers.contract.cases import from_documents
from kernelpilot_helpers.contract.model import Contract
from kernelpilot_helpers.errors import BadRecord, NotComparable
from kernelpilot_helpers.evidence import gpu_run
from kernelpilot_helpers.evidence.gpu_run import GpuRun
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.lab import RAW_FILE
from kernelpilot_helpers.gate.next_step import next_step
from kernelpilot_helpers.ledger.model import Motivation
from kernelpilot_helpers.referee import attempt as attempts
from kernelpilot_helpers.referee import (
    dispatching,
    finishing,
    gating,
    importing,
    ledgers,
    locking,
    portable,
    runs,
    scratch,
    tuning,
    workspace,
)
from tests import evidence_sim, gpu_sim, loop_sim
from tests.referee_sim import attempt, clock, quiet, write_variant

BOOT = Path("/proc/sys/kernel/random/boot_id")


class On:
    """FakeLab on a machine of this boot, whose GPU changes its name as the jobs go by."""

    def __init__(self, *uuids: str, dram_gbs: float = 4800.0, speedup: float = 1.5) -> None:
        self.uuids = uuids
        self.dram_gbs = dram_gbs
        self.speedup = speedup
        self.jobs: list[Job] = []

    def run(self, job: Job, workdir: Path) -> Raw:
        """One job; the last name stays."""
        uuid = self.uuids[min(len(self.jobs), len(self.uuids) - 1)]
        seed = len(self.jobs)
        self.jobs.append(job)
        raw = FakeLab(speedup=self.speedup, noise=0.001, seed=seed).run(job, workdir)
        here = {"gpu_uuid": uuid, "dram_gbs": self.dram_gbs, "boot_id": BOOT.read_text().strip()}
        raw = msgspec.structs.replace(raw, env={**raw.env, **here})
        (workdir / RAW_FILE).write_bytes(msgspec.json.encode(raw))
        return raw


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A locked GPU task with two baselines and a variant that nobody has measured; never written to by a test."""
    repo = gpu_sim.repo(tmp_path_factory.mktemp("gpu"))
    locking.lock(repo, amend=False, why="", lab=On("GPU-0"), clock=clock, say=quiet)
    write_variant(repo, "fused", "# tuned\n" + gpu_sim.CODE)
    return repo


@pytest.fixture
def repo(locked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(locked, tmp_path / "repo"))


def said(repo: Path, *, final: bool = False) -> tuple[bool, bool, str]:
    """(pass, done, next) of the gate."""
    evidence, report = gating.judged(repo, final=final)
    assert [f"{f.rule} {f.what}" for f in report.findings if f.severity == "block"] == []
    return report.passed, report.done.met, next_step(evidence, report)


def test_a_gpu_task_goes_from_its_lock_to_a_green_gate(repo: Path) -> None:
    """Breaks if one rule, ledger or page cannot read what a GPU's run holds, or two baselines' figure is no run's."""
    loop_sim.Loop(repo).setup()
    write_variant(repo, "odd", "# odd\n" + gpu_sim.CODE)
    assert attempt(repo, FakeLab(wrong="graph"), "odd").row.verdict == "WRONG"
    row = attempt(repo, FakeLab(speedup=1.5, noise=0.001), tier="claim", max_pairs=None).row
    assert (row.verdict, len(row.runs)) == ("IMPROVED", 4), "control, first look, confirmation, second baseline"
    assert said(repo) == (True, False, "kernelpilot tune")
    tuning.tune(repo, max_pairs=6, lab=FakeLab(speedup=1.5, noise=0.001), clock=clock, say=quiet)
    assert said(repo)[2] == "kernelpilot dispatch"
    dispatching.dispatch(repo, clock=clock)
    for path, text in evidence_sim.DIGEST.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
        proc.commit(repo, "research digest", [path])
    assert said(repo) == (True, True, "kernelpilot report --final")
    finishing.finish(repo, clock=clock, judge=finishing.gate_of)
    assert said(repo, final=True)[:2] == (True, True)
    assert ledgers.check(repo) == []
    final, page = ((repo / f"artifacts/{name}").read_text() for name in ("FINAL.md", "report.html"))
    decided = "isolated times by graph replay, hot x, residual; cold weight (decode)"
    assert f"Decided by: {decided}" in final and f"Decided by {decided}" in page
    assert "| decode | isolated " in final and "10.00 -> 10.00 | 11.00 -> 11.00 | 12.00 -> 12.00" in final
    assert f"[{row.runs[2]}] [{row.runs[3]}]\n" in final, "both baselines' runs stand behind the figure"
    assert "SM clock 1830 to 1830 MHz" in final and "SM clock 1830 to 1830 MHz" in page
    assert "the fastest of 2 baselines in each case" in page


def test_before_the_lock_the_next_step_names_the_machine(tmp_path: Path) -> None:
    """Breaks if a person is sent to lock a GPU task where there is no GPU."""
    repo = gpu_sim.repo(tmp_path)
    evidence, report = gating.judged(repo, final=False)
    evidence = dataclasses.replace(evidence, files={plan.PATH: "# plan"})
    assert next_step(evidence, report) == "kernelpilot lock  # it measures, so on a machine with the H200"
    assert isinstance(evidence.contract, Contract)
    for name in ("cuda", "any"):
        target = msgspec.structs.replace(evidence.contract.target, gpu=name)
        anything = dataclasses.replace(evidence, contract=msgspec.structs.replace(evidence.contract, target=target))
        assert next_step(anything, report).endswith("so on a machine with an NVIDIA GPU")


# --- a booking


def test_another_gpu_than_the_controls_gets_a_control_of_its_own(repo: Path) -> None:
    """Breaks if the quiet of one GPU vouches for another one of the same machine."""
    lab = On("GPU-1")
    row = attempts.attempt(repo, request(), lab=lab, clock=clock, say=quiet).row
    assert row.verdict == "IMPROVED"
    floors = runs.floors(repo, row.runs)
    assert [f.booking["gpu_uuid"] for f in floors] == ["GPU-1"]
    assert [c.case_id for c in floors[0].cases] == ["decode", "prefill"]
    assert len(lab.jobs) == len(row.runs) + 1, "the job before the control was for nothing"
    assert ledgers.check(repo) == []


def test_the_same_gpu_shares_the_control_of_the_lock(repo: Path) -> None:
    """Breaks if every attempt pays for a control, or a fit one is not found again."""
    row = attempts.attempt(repo, request(), lab=On("GPU-0"), clock=clock, say=quiet).row
    assert row.verdict == "IMPROVED" and runs.floors(repo, row.runs) == []


def test_a_gpu_that_changes_under_the_jobs_is_no_machine(repo: Path) -> None:
    """Breaks if a verdict mixes two GPUs, or what was measured so is later taken for a killed attempt."""
    with pytest.raises(NotComparable, match="different GPUs"):
        attempts.attempt(repo, request(), lab=On("GPU-1", "GPU-2", "GPU-3"), clock=clock, say=quiet)
    ws = workspace.open_repo(repo)
    assert runs.orphans(repo, ws.rows) == [] and [r.kind for r in ws.rows] == ["baseline"]


def request(tier: str = "accept") -> attempts.Request:
    return attempts.Request(variant="fused", motivation=Motivation(kind="benchmark", text="t"), tier=tier)


# --- a bundle


def test_a_claim_travels_with_a_run_for_each_baseline(repo: Path, tmp_path: Path) -> None:
    """Breaks if a bundle leaves out a baseline, the sanitizer or the figures that an attempt here would measure."""
    out = portable.export(repo, request("claim"), tmp_path / "out", clock=clock).path
    bundle = portable.load(out)
    assert [(p.role, p.which) for p in bundle.parts] == [("floor", 0), ("main", 0), ("confirm", 0), ("baseline", 1)]
    lab = On("GPU-7")
    portable.run_bundle(out, lab, quiet)
    assert [job.phases for job in lab.jobs] == [
        ("verify", "time"), ("verify", "time", "sanitize"), ("verify", "time", "figures"), ("time",),
    ]  # fmt: skip
    assert {job.time.blocks for job in lab.jobs[1:] if job.time} == {16}
    row = importing.import_bundle(repo, out, clock=clock).row
    assert row.verdict == "IMPROVED" and row.vs_baseline is not None and len(row.runs) == 4
    assert ledgers.check(repo) == []


# --- the judge


def test_a_try_is_held_against_the_memory_as_well(repo: Path) -> None:
    """Breaks if an edit that skips its work looks fast until it is attempted."""
    first = scratch.run(repo, "fused", mode="try", lab=On("GPU-0"), clock=clock).bench
    assert first is not None and [c.cold_bytes for c in first.cases] == [8192, 8192]
    a, b = first.cases[0].a_us, first.cases[0].b_us
    limit = 8192 / ((a + b) / 2) / 1000  # GB/s: the incumbent is just possible, the candidate is not
    found = scratch.run(repo, "fused", mode="try", lab=On("GPU-0", dram_gbs=limit), clock=clock).bench
    assert found is not None and found.reason.startswith("suspect.floor: case decode")


def test_a_contract_may_tighten_the_margin_of_its_judge(repo: Path) -> None:
    """Breaks if the contract's own margin is accepted and read by nobody."""
    ws = workspace.open_repo(repo)
    assert ws.device.noninferiority == policy.GPU.noninferiority == 0.02
    path = repo / workspace.CONTRACT
    text = path.read_text()
    assert text.count("[objective]\n") == 1
    path.write_text(text.replace("[objective]\n", "[objective]\nnoninferiority_pct = 0.5\n"))
    assert workspace.open_repo(repo, need_lock=False).device.noninferiority == 0.005


def test_what_is_never_captured_is_never_chained() -> None:
    """Breaks if a candidate that forbids capture is asked for the figure that only a graph gives."""
    text = gpu_sim.REQUEST.replace('graph = "must"', 'graph = "never"').replace('"isolated"}', '"chained"}')
    with pytest.raises(BadRecord) as caught:
        contracts.parse(_contract(text), at="contract.toml")
    assert 'timing.decide.decode = "chained": a chain of calls is one CUDA graph' in caught.value.what
    made = contracts.parse(_contract(text.replace('"chained"}', '"isolated"}')), at="contract.toml")
    with pytest.raises(BadRecord, match='decode: decide = "chained": a chain'):
        from_documents(
            [{"case_id": "decode", "axes": {"M": 16, "N": 4096}, "regime": "decode", "decide": "chained"}],
            made, at="cases",
        )  # fmt: skip


def _contract(text: str) -> bytes:
    head, _, rest = text.partition("[task]")
    lines = f"[task]{rest}".partition("[[cases]]")[0]
    assert 'reference = "ref.py:ref"' in head
    return f'format = "kernelpilot.contract"\nversion = 1\n[reference]\nfn = "reference.py:ref"\n{lines}'.encode()


# --- what is shown


def figure(arm: str, name: str, us: float, **more: object) -> FigureTime:
    return FigureTime(arm=arm, case_id="c", figure=name, us=us, **more)  # type: ignore[arg-type]


def test_a_figure_is_shown_with_what_it_lacks() -> None:
    """Breaks if a tensor that was not where it was asked to be, a missing arm or the energy goes unsaid."""
    one = evidence_sim.bench()
    case = msgspec.structs.replace(one.cases[0], case_id="c", figure="chained", method="events", a_us=3.0, b_us=2.0)
    one = msgspec.structs.replace(one, cases=(case,))
    run = GpuRun(
        figures=(
            figure("A", "sustained", 4.0, joules=5e-4), figure("B", "sustained", 3.5, joules=4e-4),
            figure("A", "host", 9.0), figure("A", "touch", 1.0), figure("B", "touch", 1.0, note="by event pairs"),
        ),
        residency=(
            Residency(case_id="c", tensor="w", asked="cold", reached="partial", how="h"),
            Residency(case_id="c", tensor="x", asked="hot", reached="hot", how="h"),
        ),
    )  # fmt: skip
    columns, (line,) = gpu_run.table(run, one)
    assert dict(zip(columns, line, strict=True)) == {
        "Case": "c",
        "Decided by, us": "chained 3.00 -> 2.00",
        "host, us": "9.00 -> -",
        "sustained, us": "4.00 -> 3.50 (500 -> 400 uJ)",
        "touch, us": "1.00 -> 1.00 (by event pairs)",
        "Where the tensors were": "partial w (asked cold); hot x",
    }
    assert gpu_run.decided_by(run, one) == "chained times by event pairs, partial w (asked cold); hot x"
    assert (gpu_run.decided_by(GpuRun(), evidence_sim.bench()), gpu_run.clocks(GpuRun())) == ("", "")
