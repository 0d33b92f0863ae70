"""A machine without any GPU: said first, with what helps there, and nothing is left behind."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import __main__ as boundary
from kernelpilot_helpers.cli import common
from kernelpilot_helpers.errors import Refused, ToolMissing
from kernelpilot_helpers.executors import absent, presence
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.executors.task_python import TaskPython
from kernelpilot_helpers.ledger.model import Motivation
from kernelpilot_helpers.referee import locking, portable, workspace
from kernelpilot_helpers.referee.attempt import Request
from tests import gpu_sim
from tests.referee_sim import clock, quiet, write_variant

MEASURING = (("try",), ("verify",), ("bench",), ("attempt", "-m", "x"), ("tune",))


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU, on which looking for a Python is a fault of the test."""
    monkeypatch.setattr(presence, "gpu_here", lambda: False)
    monkeypatch.setattr(common, "local_lab", lambda _: pytest.fail("a Python was sought"))


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What a refused command says."""
    assert boundary.main([*argv]) == 1
    return capsys.readouterr().err


def test_a_device_node_or_a_driver_that_counts_one_is_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a machine with a GPU is turned away, or a control node or a driver alone passes for a GPU."""
    monkeypatch.setattr(presence, "DEVICES", tmp_path)
    monkeypatch.setattr(presence, "DRIVER", "libno-such-driver.so.1")
    assert not presence.gpu_here()
    (tmp_path / "nvidiactl").touch()
    assert not presence.gpu_here()
    (tmp_path / "nvidia7").touch()
    assert presence.gpu_here()
    (tmp_path / "nvidia7").unlink()
    for count, code, want in ((1, 0, True), (0, 0, False), (1, 100, False)):

        class Driver:
            said = code
            number = count

            def __init__(self, _name: str) -> None: ...

            def cuInit(self, _flags: int) -> int:  # noqa: N802 - the driver's own name
                return self.said

            def cuDeviceGetCount(self, into: Any) -> int:  # noqa: N802
                into._obj.value = self.number
                return 0

        monkeypatch.setattr("ctypes.CDLL", Driver)
        assert presence.gpu_here() is want


@pytest.mark.usefixtures("nowhere")
def test_a_missing_lock_comes_first_then_the_gpu_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when somebody with a laptop is sent to install a torch, or a refused command leaves job folders."""
    repo = gpu_sim.repo(tmp_path)
    for argv in MEASURING:
        assert "the contract is not locked\n  fix: kernelpilot lock" in told(capsys, *argv, "--repo", str(repo))
    said = told(capsys, "lock", "--repo", str(repo))
    assert said.startswith("kernelpilot: contract.toml: target.gpu: no NVIDIA GPU here")
    assert f"fix: git clone HOST:{repo} && cd repo && kernelpilot plan && kernelpilot lock  # " in said
    assert "audit" not in said and not (repo / workspace.LOCAL).exists()
    locking.lock(repo, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    write_variant(repo, "fused", "# tuned\n" + gpu_sim.CODE)
    before = sorted(p.name for p in (repo / workspace.LOCAL).iterdir())
    for argv in MEASURING:
        said = told(capsys, *argv, "--repo", str(repo))
        assert "no NVIDIA GPU here" in said and "fix: kernelpilot job export " in said
    assert sorted(p.name for p in (repo / workspace.LOCAL).iterdir()) == before


def test_a_lock_that_stands_is_told_of_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a lock made elsewhere and pulled in is asked for once more."""
    repo = gpu_sim.repo(tmp_path)
    locking.lock(repo, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    monkeypatch.setattr(presence, "gpu_here", lambda: False)
    assert workspace.require_ready(repo, need_lock=False).lock is not None
    assert portable.export(repo, _request(repo), tmp_path / "out", clock=clock).path.is_dir()


def _request(repo: Path) -> Request:
    write_variant(repo, "fused", "# tuned\n" + gpu_sim.CODE)
    return Request(variant="fused", motivation=Motivation(kind="benchmark", text="x"))


def test_a_bundle_for_a_gpu_is_not_started_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a GPU's jobs are run in a numpy Python, or a CPU's are refused for want of a GPU."""
    repo = gpu_sim.repo(tmp_path)
    locking.lock(repo, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    bundle = portable.export(repo, _request(repo), tmp_path / "out", clock=clock).path
    assert portable.on_gpu(bundle)
    monkeypatch.setattr(presence, "gpu_here", lambda: False)
    monkeypatch.setattr(common, "lab_with", lambda *_a, **_how: pytest.fail("a Python was sought"))
    assert "no NVIDIA GPU here" in told(capsys, "job", "run", str(bundle))
    for path in bundle.glob("jobs/*/job.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "device": "cpu"}))
    assert not portable.on_gpu(bundle)


def test_a_torch_without_cuda_is_refused_before_the_audit(tmp_path: Path) -> None:
    """Breaks when the audit is announced for a Python that cannot see any GPU, or its fix cannot be pasted."""
    repo = gpu_sim.repo(tmp_path)
    python = TaskPython(argv=(sys.executable,), framework="torch", version="2.1")
    said: list[str] = []
    lab = LocalLab(python, tmp_path / "lock", cache=tmp_path / "cache")
    with pytest.raises(ToolMissing, match="has a torch without CUDA") as caught:
        locking.lock(repo, amend=False, why="", lab=lab, clock=clock, say=said.append)
    assert said == [] and not list((repo / workspace.LOCAL).glob("*/*"))
    assert caught.value.fix.startswith("export KERNELPILOT_PYTHON=$(which python3)  # ")
    assert subprocess.run(["sh", "-n", "-c", caught.value.fix], check=False).returncode == 0
    absent.require_cuda(LocalLab(dataclasses.replace(python, cuda="13.0"), tmp_path / "lock"))
    absent.require_cuda(FakeLab())


def test_a_lock_that_git_does_not_hold_is_made_anew(tmp_path: Path) -> None:
    """Breaks when the fix is a checkout of a file that no commit has."""
    repo = gpu_sim.repo(tmp_path)
    other = gpu_sim.repo(tmp_path / "other")
    locking.lock(other, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    data = msgspec.json.decode((other / workspace.LOCK).read_bytes())
    data["files"]["contract.toml"] = "0" * 64
    (repo / workspace.LOCK).write_bytes(msgspec.json.encode(data))
    with pytest.raises(Refused) as caught:
        workspace.open_repo(repo)
    assert caught.value.fix.startswith(f"rm {workspace.LOCK} && kernelpilot lock  # ")
    (other / "reference.py").write_text("# changed\n")
    with pytest.raises(Refused) as caught:
        workspace.open_repo(other)
    assert caught.value.fix.startswith("git checkout -- reference.py  # ")
