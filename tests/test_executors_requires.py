"""Baselines that need a package which the task's Python lacks: named before the lock, with a line that mends it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import contract
from kernelpilot_helpers.attempt.raw import Died, Raw
from kernelpilot_helpers.contract.model import Baseline, Contract
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors import requires
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.executors.task_python import TaskPython
from kernelpilot_helpers.referee import locking
from tests import gpu_sim
from tests.referee_sim import clock, quiet

ABSENT = "no-such-package-4711"
DIED = Died(
    arm="A", stage="load", log="Traceback (most recent call last):\nModuleNotFoundError: No module named 'fast.ops'\n"
)


def lab(folder: Path) -> LocalLab:
    python = TaskPython(argv=(sys.executable,), framework="torch", version="0", cuda="13.0")
    return LocalLab(python, folder / "lock", cache=folder / "cache")


def made(*baselines: Baseline) -> Contract:
    text = (Path(__file__).parent / "golden/contract/good/gpu_add_rmsnorm.toml").read_bytes()
    return msgspec.structs.replace(contract.parse(text, at="contract.toml"), baseline=baselines)


def test_a_package_that_is_not_there_is_named_with_its_remedy(tmp_path: Path) -> None:
    """Breaks when a baseline that cannot run is locked, or one that can is refused for its version or spelling."""
    good = Baseline(id="eager", requires=("msgspec>=0.1", "click", "json"))
    requires.require_packages(lab(tmp_path), made(good))
    other = Baseline(id="fast", requires=("msgspec", f"{ABSENT}>=2"))
    with pytest.raises(Refused) as said:
        requires.require_packages(lab(tmp_path), made(good, other))
    assert said.value.what == f"baseline fast needs {ABSENT}>=2, which the task's Python lacks"
    assert said.value.fix == (
        f"{sys.executable} -m pip install '{ABSENT}>=2'  "
        '# or delete baseline "fast" from contract.toml before the lock'
    )
    with pytest.raises(Refused) as sole:
        requires.require_packages(lab(tmp_path), made(other))
    assert "or write another baseline" in sole.value.fix


def test_a_lab_elsewhere_is_not_asked() -> None:
    """Breaks when this machine's Python is asked about another's packages."""
    requires.require_packages(FakeLab(), made(Baseline(id="fast", requires=(ABSENT,))))


def test_a_baseline_that_could_not_be_imported_names_the_package(tmp_path: Path) -> None:
    """Breaks when the lock blames reference.py for a package, or a package for a file that the repo lacks."""
    raw = Raw(job_id="j", job_sha256="", framework="torch", env={}, died=DIED)
    with pytest.raises(Refused, match="baseline eager needs fast, which"):
        requires.require_imported(raw, FakeLab(), made(Baseline(id="eager")), tmp_path)
    with pytest.raises(Refused, match="baseline eager needs fast-kernels>=1, which"):
        requires.require_imported(raw, FakeLab(), made(Baseline(id="eager", requires=("fast-kernels>=1",))), tmp_path)
    (tmp_path / "baseline/fast").mkdir(parents=True)
    requires.require_imported(raw, FakeLab(), made(Baseline(id="eager")), tmp_path)
    for other in (msgspec.structs.replace(DIED, arm="B"), msgspec.structs.replace(DIED, log="ImportError: x")):
        shutil.rmtree(tmp_path / "baseline", ignore_errors=True)
        requires.require_imported(
            msgspec.structs.replace(raw, died=other), FakeLab(), made(Baseline(id="eager")), tmp_path
        )


def test_the_lock_ends_with_it(tmp_path: Path) -> None:
    """Breaks when the audit's own words hide what to install, or a half-made lock stays."""
    repo = gpu_sim.repo(tmp_path)
    with pytest.raises(Refused, match="baseline eager needs fast, which"):
        locking.lock(repo, amend=False, why="", lab=FakeLab(died=DIED), clock=clock, say=quiet)
    path = repo / "contract.toml"
    compiled = 'fn = "baseline/compiled.py:entry", requires = ['
    path.write_text(path.read_text().replace(compiled, f'{compiled}"{ABSENT}"'))
    with pytest.raises(Refused, match=f"baseline compiled needs {ABSENT}"):
        locking.lock(repo, amend=False, why="", lab=lab(tmp_path), clock=clock, say=quiet)
    assert not (repo / "artifacts/contract.lock.json").exists()
