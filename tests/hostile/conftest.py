"""The zoo's pens: small locked repos, one for numpy and one for torch, made when a module first asks."""

from __future__ import annotations

import pytest

from tests.hostile.pen import Pen
from tests.taskpy import NUMPY, TORCH


@pytest.fixture(scope="module")
def pen(tmp_path_factory: pytest.TempPathFactory) -> Pen:
    return Pen(tmp_path_factory.mktemp("pen"), NUMPY)


@pytest.fixture(scope="module")
def torch_pen(tmp_path_factory: pytest.TempPathFactory) -> Pen:
    return Pen(tmp_path_factory.mktemp("torch"), TORCH)
