"""The GPU's memory and probes, on CPU tensors of a Python that has torch: one process runs them all."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).parent / "gpu_memory_checks.py"
NAMES = re.findall(r"^def (check_\w+)", CHECKS.read_text(), re.MULTILINE)
PYTHON = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON") or (
    sys.executable if importlib.util.find_spec("torch") else ""
)
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="no torch here: set KERNELPILOT_TEST_TORCH_PYTHON to a Python that has it"
)


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """What each check raised; empty where it passed."""
    argv = [PYTHON, "-W", "ignore", str(CHECKS)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", NAMES)
def test_on_cpu_tensors(name: str, told: dict[str, str]) -> None:
    assert not told[name], told[name]
