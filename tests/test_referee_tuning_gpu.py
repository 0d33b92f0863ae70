"""``tune`` and ``dispatch`` of a GPU task, played without a GPU: its tier, its margin, times that decide nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import autotune, records
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import NotComparable, Refused
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.lab import RAW_FILE
from kernelpilot_helpers.referee import dispatching, locking, tuning
from tests import gpu_sim
from tests.referee_sim import attempt, clock, quiet, write_variant


class Odd:
    """A lab whose GPU was hot in every pair, or whose memory is said to be slower than the version's times need."""

    def __init__(self, *, hot: bool = False, dram_gbs: float = 4800.0) -> None:
        self.hot = hot
        self.dram_gbs = dram_gbs
        self.jobs = 0

    def run(self, job: Job, workdir: Path) -> Raw:
        """One job."""
        self.jobs += 1
        raw = FakeLab(speedup=1.5, noise=0.001).run(job, workdir)
        pairs = range(job.time.pairs if self.hot and job.time else 0)
        hot = tuple(msgspec.structs.replace(raw.gpu[0], pair=pair, reasons=("hw_thermal",)) for pair in pairs)
        raw = msgspec.structs.replace(raw, gpu=(*raw.gpu, *hot), env={**raw.env, "dram_gbs": self.dram_gbs})
        (workdir / RAW_FILE).write_bytes(msgspec.json.encode(raw))
        return raw


def tune(repo: Path, lab: object) -> tuning.TunedMap:
    return tuning.tune(repo, max_pairs=6, lab=lab, clock=clock, say=quiet)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A locked GPU task with one improved version."""
    made = gpu_sim.repo(tmp_path_factory.mktemp("gpu"))
    locking.lock(made, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    write_variant(made, "fused", "# tuned\n" + gpu_sim.CODE)
    done = attempt(made, FakeLab(speedup=1.5, noise=0.001))
    assert done.row.verdict == "IMPROVED", done.row.reason
    return made


def test_a_gpu_is_tuned_by_its_own_tier_and_dispatched(repo: Path) -> None:
    """Breaks when the CPU's blocks, device or margin judge a GPU's cells, or its dispatcher is a CPU's."""
    lab = FakeLab(speedup=1.5, noise=0.001)
    done = tune(repo, lab)
    assert [(job.time.blocks, job.time.pairs, job.device) for job in lab.jobs if job.time] == [(12, 6, "gpu")]
    assert done.map.device == "gpu"
    assert {c.case_id: round(c.vs_baseline.speedup, 1) for c in done.map.cells} == {"decode": 1.5, "prefill": 1.5}
    assert {"gpu_uuid", "driver"} <= set(done.map.environment)
    table = dispatching.dispatch(repo, clock=clock).table
    assert sorted(r.regime for r in table.rules) == ["decode", "prefill"]
    text = (repo / "dispatch/dispatch.py").read_text()
    assert "class _OnGpu(_Version):" in text
    assert "The baseline is eager, the first of the contract's" in text


def test_five_percent_slower_is_too_much_on_a_gpu(repo: Path) -> None:
    """Breaks when the CPU's margin of 10 % lets a version serve a case on a GPU where it is 5 % slower."""
    lab = FakeLab(speedup={"decode": 0.95, "prefill": 1.5}, noise=0.001)
    assert tune(repo, lab).map.device == "gpu"
    table = dispatching.dispatch(repo, clock=clock).table
    assert [r.regime for r in table.rules] == ["prefill"]
    assert [(r.regime, r.version) for r in table.refused] == [("decode", "baseline")]


def test_times_of_a_hot_gpu_choose_nothing(repo: Path) -> None:
    """Breaks when a throttled GPU's times become cells of the map, or it is not measured a second time."""
    before = (repo / autotune.MAP_PATH).read_bytes()
    lab = Odd(hot=True)
    with pytest.raises(NotComparable, match=r"could not be measured: suspect.heat"):
        tune(repo, lab)
    assert lab.jobs == 2
    assert (repo / autotune.MAP_PATH).read_bytes() == before


def test_a_version_that_is_faster_than_memory_serves_nothing(repo: Path) -> None:
    """Breaks when times that cannot be, for the bytes that a call moves, become cells of the map."""
    found = records.load(repo / autotune.MAP_PATH, autotune.OWNER)
    took = next(c.baseline_us for c in found.cells if c.case_id == "decode")
    weight = 4096 * 2  # the one cold tensor: the baseline moves it at 0.83 x of the datasheet, the version at 1.25 x
    with pytest.raises(Refused, match=r"nothing to map: v001_fused: suspect.floor: case decode"):
        tune(repo, Odd(dram_gbs=1.2 * weight / took / 1000))
