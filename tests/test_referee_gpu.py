"""A GPU contract played through without a GPU: jobs, lock, attempt, and the machine that has none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers.attempt.raw import Died, Raw
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors import absent, presence
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.referee import jobs, locking, recover, workspace
from kernelpilot_helpers.referee.locking import Locked
from tests import gpu_sim
from tests.referee_sim import attempt, clock, quiet, write_variant

GIB = 2**30


def lock(repo: Path, lab: FakeLab) -> Locked:
    return locking.lock(repo, amend=False, why="", lab=lab, clock=clock, say=quiet)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = gpu_sim.repo(tmp_path_factory.mktemp("gpu"))
    lock(made, FakeLab())
    return made


def question(ws: workspace.Workspace, arms: int) -> jobs.Question:
    program = jobs.baseline_program(ws, ws.baseline().tree)
    names: tuple[jobs.ArmName, ...] = ("A", "B", "Z")
    return jobs.Question(job_id="j", phases=("verify", "time"), arms=dict.fromkeys(names[:arms], program), pairs=2)


def test_a_job_for_a_gpu_says_everything_that_its_runtime_needs(repo: Path, tmp_path: Path) -> None:
    """Breaks if a field of the contract is lost on its way into job.json, or the CPU's limits are kept."""
    ws = workspace.open_repo(repo)
    job = jobs.make(ws, question(ws, 3), tmp_path / "job")
    assert (job.device, job.framework, job.graph) == ("gpu", "torch", "must")
    assert job.report == ("pipelined", "isolated", "host")
    assert {c.case_id: c.figure for c in job.cases if c.timed} == {"decode": "isolated", "prefill": "pipelined"}
    assert job.limits.arena_bytes == 8 * GIB
    assert (job.limits.build_s, job.limits.wall_s) == (300.0, 900.0)
    assert job.time is not None
    assert (job.time.sample_us, job.time.zygote_pairs) == (2000.0, 10)
    two = jobs.make(ws, question(ws, 2), tmp_path / "job").limits.arena_bytes
    assert two == 8 * GIB, "an A/A control must hold as many calls a block as a job with the baseline beside it"
    assert (tmp_path / "job" / "oracle" / "reference.py").is_file()


def test_every_baseline_is_a_program_of_one_tree(repo: Path) -> None:
    """Breaks if the second baseline is timed under the first one's entry, or both share a build."""
    ws = workspace.open_repo(repo)
    first, second = (jobs.baseline_program(ws, "t", ix) for ix in (0, 1))
    assert (first.entry, second.entry) == ("candidate.py:entry", "compiled.py:entry")
    assert jobs.build_key(first, ws.contract.target) != jobs.build_key(second, ws.contract.target)


def test_a_build_key_of_a_gpu_depends_on_its_architecture(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if a cubin for another architecture or of another nvcc passes for the same program."""
    target = workspace.open_repo(repo).contract.target
    program = jobs.variant_program("tree")
    other = msgspec.structs.replace(target, arch="sm_100a")
    cpu = msgspec.structs.replace(target, gpu="cpu", arch="")
    monkeypatch.setattr(jobs, "nvcc_version", lambda: "one")
    keys = [jobs.build_key(program, t) for t in (target, other, cpu)]
    monkeypatch.setattr(jobs, "nvcc_version", lambda: "two")
    keys += [jobs.build_key(program, target)]
    assert len(set(keys)) == 4
    assert jobs.build_key(program, cpu) == keys[2] == jobs.build_key(program)


def test_lock_attempt_improved(repo: Path) -> None:
    """Breaks if any step of the loop still refuses a GPU target, or its samples cannot be judged."""
    write_variant(repo, "fused", "# tuned\n" + gpu_sim.CODE)
    lab = FakeLab(speedup=1.25, noise=0.001)
    done = attempt(repo, lab)
    assert done.row.verdict == "IMPROVED", done.row.reason
    assert done.row.gain is not None and 1.2 < done.row.gain.speedup < 1.3
    assert lab.jobs and {job.device for job in lab.jobs} == {"gpu"}


@pytest.mark.parametrize(
    ("log", "start"),
    [
        ("gpu.absent: torch has no CUDA\nTraceback", "export KERNELPILOT_PYTHON="),
        ("gpu.busy: pid 7 holds it since noon", "nvidia-smi  #"),
        ("gpu.memory: 3 GiB are free", "nvidia-smi  #"),
    ],
)
def test_a_machine_without_a_free_gpu_is_a_refusal_and_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, start: str
) -> None:
    """Breaks if the reference is blamed for a missing GPU, or a later command records BROKEN for a run of nothing."""
    monkeypatch.setattr(presence, "gpu_here", lambda: True)
    made = gpu_sim.repo(tmp_path)
    gone = FakeLab(died=Died(arm="", stage="oracle", log=log))
    with pytest.raises(Refused) as caught:
        lock(made, gone)
    first = log.splitlines()[0]
    assert (caught.value.what, caught.value.where) == (f"no GPU to measure on: {first}", "contract.toml: target.gpu")
    assert caught.value.fix.startswith(start)
    assert not (made / workspace.LOCK).exists()


def test_an_attempt_without_a_gpu_leaves_the_lineage_alone(tmp_path: Path) -> None:
    """Breaks if the floor's run or the attempt's own is later taken for a killed attempt."""
    made = gpu_sim.repo(tmp_path)
    lock(made, FakeLab())
    write_variant(made, "fused", "# tuned\n" + gpu_sim.CODE)
    with pytest.raises(Refused, match=r"no GPU to measure on: gpu.absent: driver too old"):
        attempt(made, FakeLab(died=Died(arm="", stage="oracle", log="gpu.absent: driver too old")))
    ws = workspace.open_repo(made)
    assert recover.recover(ws, clock) == []
    assert [row.kind for row in workspace.open_repo(made).rows] == ["baseline"]
    done = attempt(made, FakeLab(speedup=1.3, noise=0.001))
    assert (done.row.version.partition("_")[0], done.row.verdict) == ("v001", "IMPROVED")


def died(stage: str, log: str) -> Raw:
    return Raw(job_id="j", job_sha256="", framework="torch", env={}, died=Died(arm="", stage=stage, log=log))


def test_only_the_oracles_own_codes_mean_that_there_is_no_gpu() -> None:
    """Breaks if a candidate escapes its verdict by printing the code of a missing GPU."""
    assert absent.code_of(died("oracle", "gpu.absent: no driver")) == "gpu.absent"
    assert absent.code_of(died("call", "gpu.absent: no driver")) == ""
    assert absent.code_of(died("oracle", "the reference failed: gpu.absent: x")) == ""
    assert absent.code_of(died("oracle", "gpu.fault: x")) == ""


def test_what_a_fake_gpu_shows_is_what_a_real_one_would(repo: Path, tmp_path: Path) -> None:
    """Breaks if a test of a GPU's verdict runs on a raw record that no GPU writes."""
    ws = workspace.open_repo(repo)
    asked = msgspec.structs.replace(
        jobs.make(ws, question(ws, 2), tmp_path / "job"), phases=("verify", "time", "figures", "sanitize")
    )
    raw = FakeLab().run(asked, tmp_path / "none")
    assert {(s.figure, s.method) for s in raw.samples} == {("isolated", "graph"), ("pipelined", "graph")}
    assert all(len(s.mhz) == len(s.ns) for s in raw.samples)
    assert {c.probe for c in raw.checks} == {"call", "repeat", "graph", "late", "timed"}
    assert {f.figure for f in raw.figures} == {"pipelined", "isolated", "host", "span", "floor", "touch"}
    assert {(r.tensor, r.reached) for r in raw.residency} == {("x", "hot"), ("residual", "hot"), ("weight", "cold")}
    assert [s.tool for s in raw.sanitizer] == ["memcheck", "racecheck", "initcheck"]
    assert raw.inventory and all(k.ours for k in raw.inventory)
    assert raw.env["gpu_uuid"] == "GPU-fake"
