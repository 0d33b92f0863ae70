"""Every known way to look faster without being it, through the real runtime and the attempt's own decisions.

Here are those that do not play with time: what they do is the same on a busy machine.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.hostile.pen import ZOO, Pen
from tests.hostile.table import ABSENT, ALONE, CHEATS, HONEST, TORCH_CHEATS, Cheat, caught
from tests.taskpy import needs_numpy, needs_torch


def _source(cheat: Cheat, folder: Path) -> Path:
    if cheat.name != "committed_binary":
        return ZOO / cheat.name
    source = Path(shutil.copytree(ZOO / cheat.name, folder / cheat.name))
    (source / "kernel.bin").write_bytes(b"\x7fELF as its first bytes say")
    return source


@needs_numpy
@pytest.mark.parametrize("cheat", [c for c in CHEATS if c.row not in ALONE], ids=lambda c: c.name)
def test_the_cheat_is_caught(pen: Pen, tmp_path: Path, cheat: Cheat) -> None:
    caught(cheat, pen.outcome(_source(cheat, tmp_path), kind=cheat.kind, call_s=2.0 if cheat.hangs else 20.0))


@needs_torch
@pytest.mark.parametrize("name", TORCH_CHEATS)
def test_the_cheat_is_caught_under_torch(torch_pen: Pen, name: str) -> None:
    cheat = next(c for c in CHEATS if c.name == name)
    assert cheat.row not in ALONE
    caught(cheat, torch_pen.outcome(ZOO / name, kind=cheat.kind))


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
