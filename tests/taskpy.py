"""The task Pythons that tests measure with: named by the installer, else this interpreter when it has numpy."""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest

NUMPY = os.environ.get("KERNELPILOT_TEST_NUMPY_PYTHON") or (
    sys.executable if importlib.util.find_spec("numpy") is not None else ""
)
TORCH = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON", "")

needs_numpy = pytest.mark.skipif(not NUMPY, reason="no Python with numpy: set KERNELPILOT_TEST_NUMPY_PYTHON")
needs_torch = pytest.mark.skipif(not TORCH, reason="no Python with torch: set KERNELPILOT_TEST_TORCH_PYTHON")
