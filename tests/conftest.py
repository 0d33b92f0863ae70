"""What every test shares: a locked standalone repo judged by a fake lab, copied for each test."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import referee_sim

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what it puts into the background so, and whatever tests start inherits it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

MEASURES = (
    "hostile/test_alone",
    "clients/test_kernel_loop",
    "cli/test_end_to_end",
    "cli/test_help",
    "test_demo",
    "test_executors_local",
    "test_executors_task_python",
    "test_runtime_wire",
    "test_zoo_mends",
)
"""Tests below ``tests/`` that carry the marker ``measures``."""

JOBS = ("hostile/test_zoo", "test_runtime_arms", "test_runtime_torch")
"""Tests that share the machine and run whole jobs on the CPU."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what must not share the machine; ``./install.sh --test`` runs it by itself, after all the others."""
    here = Path(__file__).parent
    for item in items:
        if str(item.path.relative_to(here)).startswith(MEASURES):
            item.add_marker(pytest.mark.measures)


@pytest.fixture(autouse=True, scope="module")
def _own_core(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give the jobs of each of several workers a core of their own.

    The runtime puts its judge on the first core that it may use and the arms on the last: jobs of two workers would
    wait for each other there.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    below = str(request.path.relative_to(Path(__file__).parent))
    if not worker or not below.startswith(JOBS) or not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(allowed)[int(worker.removeprefix("gw")) % len(allowed)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.fixture(autouse=True, scope="session")
def _private_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's files.

    Set once: a change for each test would be made while the zoo's lanes, which are threads, read the environment.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        for name in (
            "XDG_CACHE_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "CODEX_HOME",
            "CLAUDE_CONFIG_DIR",
            "KP_CRASH_AT",
        ):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def locked_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One scaffolded and locked repo a session; never written to by a test."""
    folder = tmp_path_factory.mktemp("template") / "repo"
    referee_sim.locked_repo(folder)
    return folder


@pytest.fixture
def repo(locked_template: Path, tmp_path: Path) -> Path:
    """A copy of the locked repo with one variant, ``fused``, not committed yet."""
    target = tmp_path / "repo"
    shutil.copytree(locked_template, target)
    referee_sim.write_variant(target, "fused", "def entry(**tensors):\n    pass\n")
    return target
