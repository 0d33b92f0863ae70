"""A repository without a loop, and one with: made once, then put back to where it stood (its paths are absolute)."""

import copy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rlcr.real import RLCR, Real


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Real]:
    base, saved = tmp_path_factory.mktemp("loop"), tmp_path_factory.mktemp("saved")
    made = Real(base / "at")
    made.run(RLCR, "status")  # leaves the runtime's bytecode in HOME, which a test would else pay for
    shutil.copytree(made.base, saved / "real", symlinks=True)
    done = made.setup()
    assert done.returncode == 0, done.stderr
    shutil.copytree(made.base, saved / "looped", symlinks=True)
    made.work(0)
    shutil.copytree(made.base, saved / "worked", symlinks=True)

    def stage(name: str) -> Real:
        shutil.rmtree(made.base)
        shutil.copytree(saved / name, made.base, symlinks=True)
        fresh = copy.copy(made)
        fresh.env = dict(made.env)
        return fresh

    return stage


@pytest.fixture
def real(stages: Callable[[str], Real]) -> Real:
    """A repository with a plan and an evidence command, no loop."""
    return stages("real")


@pytest.fixture
def looped(stages: Callable[[str], Real]) -> Real:
    """The same with a loop in round 0."""
    return stages("looped")


@pytest.fixture
def worked(stages: Callable[[str], Real]) -> Real:
    """The same with round 0's work done and nothing stopped yet."""
    return stages("worked")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder outside every repository."""
    return tmp_path
