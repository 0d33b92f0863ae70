"""Every known way to look faster without being it, through the real runtime and the attempt's own decisions."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest

from kernelpilot_helpers.referee.decide import Outcome
from tests.hostile.pen import ZOO, Pen
from tests.hostile.table import ABSENT, ALONE, CHEATS, HONEST, TORCH, TORCH_CHEATS, Cheat

NUMPY = os.environ.get("KERNELPILOT_TEST_NUMPY_PYTHON") or (sys.executable if importlib.util.find_spec("numpy") else "")
TORCH_PYTHON = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON", "")
Crowd = dict[str, "Future[Outcome]"]
needs_numpy = pytest.mark.skipif(not NUMPY, reason="no numpy here: set KERNELPILOT_TEST_NUMPY_PYTHON")
needs_torch = pytest.mark.skipif(not TORCH_PYTHON, reason="set KERNELPILOT_TEST_TORCH_PYTHON to a Python with torch")


@pytest.fixture(scope="module")
def pen(tmp_path_factory: pytest.TempPathFactory) -> Pen:
    return Pen(tmp_path_factory.mktemp("pen"), NUMPY)


@pytest.fixture(scope="module")
def torch_pen(tmp_path_factory: pytest.TempPathFactory) -> Pen:
    return Pen(tmp_path_factory.mktemp("torch"), TORCH_PYTHON)


@pytest.fixture(scope="module")
def crowd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    """The chosen cheats that do not play with time, two at once: what they do is the same on a busy machine."""
    chosen = {item.callspec.params.get("cheat") for item in request.session.items if hasattr(item, "callspec")}
    lanes = [Pen(tmp_path_factory.mktemp(f"lane{n}"), NUMPY) for n in range(2)]
    spare: Queue[Pen] = Queue()
    for lane in lanes:
        spare.put(lane)

    def one(cheat: Cheat) -> Outcome:
        lane = spare.get()
        try:
            return lane.outcome(_source(cheat, lane.folder), kind=cheat.kind, call_s=2.0 if cheat.hangs else 20.0)
        finally:
            spare.put(lane)

    with ThreadPoolExecutor(len(lanes)) as pool:
        yield {c.name: pool.submit(one, c) for c in CHEATS if c in chosen and c.row not in ALONE}


def _source(cheat: Cheat, folder: Path) -> Path:
    if cheat.name != "committed_binary":
        return ZOO / cheat.name
    source = Path(shutil.copytree(ZOO / cheat.name, folder / cheat.name))
    (source / "kernel.bin").write_bytes(b"\x7fELF as its first bytes say")
    return source


def caught(cheat: Cheat, outcome: Outcome) -> None:
    """Breaks when the cheat passes, or is blamed for something else."""
    said = f"{cheat.name}: {outcome.verdict} {outcome.reason}"
    assert outcome.verdict in cheat.verdict.split("|"), said
    assert outcome.reason.startswith(cheat.codes), said


@needs_numpy
@pytest.mark.parametrize("cheat", [c for c in CHEATS if c.row not in ALONE], ids=lambda c: c.name)
def test_the_cheat_is_caught(crowd: Crowd, cheat: Cheat) -> None:
    caught(cheat, crowd[cheat.name].result())


@needs_numpy
@pytest.mark.parametrize("cheat", [c for c in CHEATS if c.row in ALONE], ids=lambda c: c.name)
def test_the_cheat_with_time_is_caught(pen: Pen, cheat: Cheat) -> None:
    caught(cheat, pen.outcome(ZOO / cheat.name, kind=cheat.kind))


@needs_numpy
@pytest.mark.parametrize("name", sorted(HONEST))
def test_the_honest_pass(pen: Pen, name: str) -> None:
    """Breaks when rounding in another order, a scratch buffer or a joined thread is taken for a cheat."""
    outcome = pen.outcome(ZOO / name, kind=HONEST[name])
    assert outcome.verdict not in ("WRONG", "BROKEN"), f"{name}: {outcome.reason}"
    assert not outcome.reason.startswith(("cheat.", "suspect.")), outcome.reason


@needs_torch
@pytest.mark.parametrize("name", TORCH_CHEATS)
def test_the_cheat_is_caught_under_torch(torch_pen: Pen, name: str) -> None:
    cheat = next(c for c in CHEATS if c.name == name)
    caught(cheat, torch_pen.outcome(ZOO / name, kind=cheat.kind))


@needs_torch
@pytest.mark.parametrize("name", TORCH)
def test_the_honest_pass_under_torch(torch_pen: Pen, name: str) -> None:
    outcome = torch_pen.outcome(ZOO / name, kind=HONEST[name])
    assert outcome.verdict not in ("WRONG", "BROKEN"), f"{name}: {outcome.reason}"


def test_the_table_and_the_folder_agree() -> None:
    """Breaks when a candidate is added without a verdict, or a catalogue row is forgotten."""
    assert {c.name for c in CHEATS} | set(HONEST) == {p.name for p in ZOO.iterdir() if p.is_dir()}
    assert {c.row for c in CHEATS} - {0} | set(ABSENT) == set(range(1, 35))


def test_every_inhabitant_says_what_it_does() -> None:
    """Breaks when a one-line docstring is missing, or an honest one does not call itself so."""
    for folder in sorted(p for p in ZOO.iterdir() if p.is_dir()):
        line = (folder / "candidate.py").read_text().splitlines()[0]
        assert line.startswith('"""') and line.endswith('."""'), folder.name
        assert ("Honest" in line) == (folder.name in HONEST), folder.name
