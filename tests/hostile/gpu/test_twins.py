"""Tricks that need no GPU, against the GPU path over the fake device: the same runtime, jobs and decisions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from kernelpilot_helpers.executors import deploy
from kernelpilot_helpers.executors import local as local_lab
from kernelpilot_helpers.referee.decide import Outcome
from tests import fakegpu
from tests.hostile.gpu.pen import NARROW, TWINS, ZOO, Pen, faults, flagged
from tests.hostile.gpu.table import CHEATS, EITHER, HONEST_TWINS, MORE_TWINS
from tests.hostile.gpu.table import TWINS as FEW

TORCH = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON", "")
CODES = {**FEW, **(MORE_TWINS if os.environ.get("KERNELPILOT_TEST_ALL_TWINS") else {})}
LANES = 2
Crowd = dict[str, "Future[Outcome]"]
needs_torch = pytest.mark.skipif(not TORCH, reason="no Python with torch: set KERNELPILOT_TEST_TORCH_PYTHON")


def folder(name: str) -> Path:
    """A twin of its own, else the zoo's candidate as it is."""
    return TWINS / name if (TWINS / name).is_dir() else ZOO / name


@pytest.fixture(scope="module")
def crowd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    """The chosen ones, two at once, by labs that deploy the runtime with the fake device laid over it."""
    base = tmp_path_factory.mktemp("twins")
    source = fakegpu.runtime(base)
    chosen = [getattr(i, "callspec").params["name"] for i in request.session.items if _twin(i)]  # noqa: B009
    spare: Queue[Pen] = Queue()
    for lane in range(LANES):
        pen = Pen(base / str(lane), TORCH, shared=TWINS / "shared", blocks=6, cases="small.jsonl", more=NARROW)
        spare.put(pen)

    def one(name: str) -> Outcome:
        pen = spare.get()
        try:
            return pen.outcome(folder(name))
        finally:
            spare.put(pen)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(LANES) as pool:
        patch.setattr(local_lab, "deploy", lambda cache: deploy.deploy(cache, source=source))
        yield {name: pool.submit(one, name) for name in chosen}


def _twin(item: Any) -> bool:
    return item.path == Path(__file__) and hasattr(item, "callspec")


@needs_torch
@pytest.mark.parametrize("name", sorted(CODES))
def test_the_twin_is_caught(crowd: Crowd, name: str) -> None:
    """Breaks when the GPU path misses what the CPU path sees, or blames something else."""
    assert not faults(name, crowd[name].result(), verdict=EITHER, codes=CODES[name])


@needs_torch
@pytest.mark.parametrize("name", HONEST_TWINS)
def test_the_honest_twin_passes(crowd: Crowd, name: str) -> None:
    """Breaks when work on the fake device is taken for a cheat."""
    assert not flagged(name, crowd[name].result())


def test_a_twin_is_a_twin_of_something() -> None:
    """Breaks when a twin has no candidate beside it, or no folder."""
    names = {c.name for c in CHEATS}
    assert [n for n in (*FEW, *MORE_TWINS) if n not in names] == []
    assert [n for n in (*FEW, *MORE_TWINS, *HONEST_TWINS) if not (folder(n) / "candidate.py").is_file()] == []
