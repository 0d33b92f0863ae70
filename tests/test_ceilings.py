"""What a GPU can do at best: the runtime's measuring on a stand-in, and the tool's cache by GPU and driver."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Died, Raw
from kernelpilot_helpers.cli import common, group
from kernelpilot_helpers.errors import KernelPilotError, Refused, ToolMissing
from kernelpilot_helpers.executors import presence
from kernelpilot_helpers.executors.lab import job_sha256
from kernelpilot_helpers.referee import ceilings
from tests import fakegpu

PYTHON = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON") or (
    sys.executable if importlib.util.find_spec("torch") else ""
)
UUID = "GPU-0a1b2c3d-0000-1111-2222-333344445555"
VALUES = {"floor_us": 0.91, "read@64KiB": 50.0, "copy@64KiB": 41.0, "copy@1GiB": 4251.0, "matmul@bf16": 783.0}
DRIVER = """
import importlib.util, json, sys
from pathlib import Path
runtime = Path("RUNTIME")
spec = importlib.util.spec_from_file_location("kernelpilot_runtime", runtime / "__init__.py",
                                              submodule_search_locations=[str(runtime)])
module = importlib.util.module_from_spec(spec)
sys.modules["kernelpilot_runtime"] = module
spec.loader.exec_module(module)
from kernelpilot_runtime import ceilings, cuda
print(json.dumps(ceilings.measure(cuda.open_device())))
"""


class OneLab:
    """A lab that answers every job with one raw record."""

    def __init__(self, *, values: dict[str, float], died: Died | None = None, driver: str = "580.1") -> None:
        self.values, self.died, self.driver = values, died, driver
        self.jobs: list[Job] = []

    def run(self, job: Job, workdir: Path) -> Raw:
        assert (workdir / "oracle" / "reference.py").is_file()
        self.jobs.append(job)
        env = {"gpu": "NVIDIA H200", "gpu_uuid": UUID, "driver": self.driver}
        return Raw(
            job_id=job.job_id, job_sha256=job_sha256(job), framework="torch", env=env, ceilings=self.values,
            died=self.died,
        )  # fmt: skip


@pytest.mark.skipif(not PYTHON, reason="no torch: set KERNELPILOT_TEST_TORCH_PYTHON")
def test_the_runtime_measures_every_direction_and_product_on_a_stand_in(tmp_path: Path) -> None:
    """Breaks when a captured body of the ceilings is not one that a graph takes, or a figure is lost."""
    code = DRIVER.replace("RUNTIME", str(fakegpu.runtime(tmp_path)))
    done = subprocess.run([PYTHON, "-I", "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = {f"{d}@{size}" for d in ("read", "write", "copy") for size in ("64KiB", "1MiB")}
    assert expected | {"floor_us", "matmul@f32", "matmul@bf16"} <= set(found)
    assert all(value > 0 for value in found.values())
    assert 0.01 < found["copy@1MiB"] < 10000  # GB/s of any memory there is


def test_figures_are_kept_by_gpu_and_driver(tmp_path: Path) -> None:
    """Breaks when another driver's figures, or another GPU's, are taken for this one's."""
    lab = OneLab(values=VALUES)
    now = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc)
    found = ceilings.measure(lab, cache=tmp_path, now=now)
    assert lab.jobs[0].phases == ("ceilings",) and lab.jobs[0].device == "gpu"
    assert found.measured == "2026-01-02T03:04:05Z"
    assert ceilings.cached(UUID, "580.1", tmp_path) == found
    assert ceilings.cached(UUID, "590.0", tmp_path) is None
    assert ceilings.cached("GPU-ffffffff", "580.1", tmp_path) is None
    ceilings.path(UUID, tmp_path).write_text("{}")
    assert ceilings.cached(UUID, "580.1", tmp_path) is None


def test_a_job_without_a_gpu_is_a_missing_tool_and_nothing_is_kept(tmp_path: Path) -> None:
    lab = OneLab(values={}, died=Died(arm="", stage="oracle", log="gpu.absent: no driver"))
    with pytest.raises(ToolMissing, match=r"gpu\.absent"):
        ceilings.measure(lab, cache=tmp_path)
    with pytest.raises(KernelPilotError, match="measured nothing"):
        ceilings.measure(OneLab(values={}), cache=tmp_path)
    assert not (tmp_path / "ceilings").exists()


def test_a_machine_without_a_gpu_is_said_before_a_python_is_sought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when somebody without a GPU is sent to install torch first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ceilings, "here", lambda: None)
    monkeypatch.setattr(presence, "gpu_here", lambda: False)
    monkeypatch.setattr(common, "lab_with", lambda *_a, **_how: pytest.fail("a Python was sought"))
    said = CliRunner().invoke(group, ["bench", "--ceilings"], standalone_mode=False).exception
    assert isinstance(said, Refused) and said.what.startswith("no NVIDIA GPU here")


def test_the_visible_gpu_is_chosen_by_number_or_uuid() -> None:
    listing = "GPU-aaaaaaaa-1, 580.1\nGPU-bbbbbbbb-2, 580.1\n"
    assert ceilings.choose(listing, "") == ("GPU-aaaaaaaa-1", "580.1")
    assert ceilings.choose(listing, "1") == ("GPU-bbbbbbbb-2", "580.1")
    assert ceilings.choose(listing, "GPU-bbbb,0") == ("GPU-bbbbbbbb-2", "580.1")
    assert ceilings.choose(listing, "7") is None
    assert ceilings.choose("NVIDIA-SMI has failed\n", "") is None


def test_the_command_prints_kept_figures_and_measures_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when each report measures the GPU anew, or --refresh does not."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ceilings, "here", lambda: (UUID, "580.1"))
    monkeypatch.setattr(presence, "gpu_here", lambda: True)
    lab = OneLab(values=VALUES)
    monkeypatch.setattr(common, "lab_with", lambda argv, **_how: lab)
    first = CliRunner().invoke(group, ["bench", "--ceilings"], standalone_mode=False)
    assert first.exception is None, first.exception
    assert "1GiB" in first.output and "4251" in first.output and "bf16 783" in first.output
    again = CliRunner().invoke(group, ["bench", "--ceilings", "--json"], standalone_mode=False)
    data = json.loads(again.output)
    assert (data["cached"], data["values"], len(lab.jobs)) == (True, VALUES, 1)
    CliRunner().invoke(group, ["bench", "--ceilings", "--refresh"], standalone_mode=False)
    assert len(lab.jobs) == 2
    refused = CliRunner().invoke(group, ["bench", "--refresh"])
    assert refused.exit_code == 2 and "--ceilings" in refused.output
