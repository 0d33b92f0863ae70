"""One private HOME for all plays: installed, trusted, with a locked repo that every play copies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.fetch import NotHere, clients
from tests.taskpy import NUMPY

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path[:0] = [str(SCRIPTS)]

from client_lab import Lab  # noqa: E402 (its folder is put on the path just above)
from tests.clients import plays  # noqa: E402


@pytest.fixture(scope="session")
def bins() -> dict[str, str]:
    """The clients' programs; without them every test here is skipped."""
    if not NUMPY:
        pytest.skip("no Python with numpy: set KERNELPILOT_TEST_NUMPY_PYTHON")
    try:
        return clients()
    except NotHere as why:
        pytest.skip(f"the real clients are not here: {why}")


@pytest.fixture(scope="session")
def installed(bins: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, list[dict[str, Any]]]:
    """Both clients in a private HOME, our hook registered and reviewed; and the checks made on the way."""
    lab = Lab(tmp_path_factory.mktemp("clients").resolve() / "lab", NUMPY, bins)
    plays.installed(lab, lend=True)
    plays.trusted(lab)
    return lab, list(lab.checks)


@pytest.fixture
def lab(installed: tuple[Lab, list[dict[str, Any]]]) -> Iterator[Lab]:
    """The same; a test fails when a check failed since it began."""
    lab, _ = installed
    lab.checks.clear()
    yield lab
    assert lab.failed() == []
