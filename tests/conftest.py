"""What every test shares: a locked standalone repo judged by a fake lab, copied for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import referee_sim


@pytest.fixture(autouse=True)
def _private_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test reads or writes the user's files."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "KP_CRASH_AT"):
        monkeypatch.delenv(name, raising=False)
    yield


@pytest.fixture(scope="session")
def locked_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One scaffolded and locked repo a session; never written to by a test."""
    folder = tmp_path_factory.mktemp("template") / "repo"
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(folder.parent)
    try:
        referee_sim.locked_repo(folder)
    finally:
        if before is not None:
            os.environ["HOME"] = before
    return folder


@pytest.fixture
def repo(locked_template: Path, tmp_path: Path) -> Path:
    """A copy of the locked repo with one variant, ``fused``, not committed yet."""
    target = tmp_path / "repo"
    shutil.copytree(locked_template, target)
    referee_sim.write_variant(target, "fused", "def entry(**tensors):\n    pass\n")
    return target
