"""A real ``kill -9`` within an index build and within ``mark-read``: all or nothing, and the next call is whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers import knowledge, ledger, proc
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.knowledge import Filters
from kernelpilot_helpers.referee import ledgers
from tests.knowledge_made import ROOT, fact, index
from tests.test_knowledge_mark import WHY, World, commits, listed

BUILD = """
import os, sys
from pathlib import Path
from kernelpilot_helpers import knowledge
from kernelpilot_helpers.knowledge import store

def die(*args):
    os.kill(os.getpid(), 9)

step, fill, seal = sys.argv[1], store.fill, store._write_seal
if step == "filling":
    store.fill = lambda connection, *rest: (connection.set_progress_handler(die, 3000), fill(connection, *rest))
elif step == "filled":
    store.fill = lambda *args: (fill(*args), die())
elif step == "sealed":
    store._write_seal = lambda *args: (seal(*args), die())
elif step == "placed":
    store._write_seal = lambda path, *rest: die() if path.exists() else seal(path, *rest)
with knowledge.opened(knowledge.read(Path(sys.argv[2])), Path(sys.argv[3])):
    pass
"""
MARK = """
import os, sys
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.referee import views

views.render = lambda *args, **more: os.kill(os.getpid(), 9)
main(sys.argv[1:])
"""


def killed(*argv: str, **env: str) -> None:
    path = os.pathsep.join([str(ROOT / "lib"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **env},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -9, (done.returncode, done.stderr)


def ids(folder: Path, cache: Path) -> list[str]:
    with knowledge.opened(knowledge.read(folder), cache) as tables:
        assert tables.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [row[0] for row in tables.execute("SELECT json_extract(record, '$.id') FROM doc ORDER BY 1")]


@pytest.mark.parametrize("step", ["filling", "filled", "sealed", "placed"])
def test_a_killed_build_is_never_served_and_bars_nobody(tmp_path: Path, step: str) -> None:
    """Breaks when half an index is believed, or what a killed build left keeps the next from an answer."""
    folder = index(tmp_path / "i", [fact(n, words=["swizzle"]) for n in range(1, 60)])
    cache = tmp_path / "cache"
    killed("-c", BUILD, step, str(folder), str(cache))
    assert len(list(cache.glob("*.sqlite"))) == (step == "placed")
    assert len(list(cache.glob(".knowledge-*.tmp"))) == (step != "placed")
    fresh = ids(folder, tmp_path / "other")
    assert len(fresh) > 59 and ids(folder, cache) == fresh == ids(folder, cache)
    answer = knowledge.search(knowledge.read(folder), "swizzle", Filters(), 3)
    assert len(answer.hits) == 3


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    monkeypatch.delenv("KERNELPILOT_CLONES", raising=False)
    return World(tmp_path, capsys)


def test_a_killed_mark_read_notes_all_of_a_list_or_nothing(world: World, tmp_path: Path) -> None:
    """Breaks when a kill leaves the first rows of a list, or a repo in which the same list cannot be noted whole."""
    lines = (f"b#7\t{WHY}", "b#7\tlarge header read in pieces, 600 lines\tcsrc/big.cuh\tline_00007")
    places = ("--clone", str(world.clone), "--into", str(world.work), "--index", str(world.index))
    words = ("knowledge", "mark-read", *listed(tmp_path, *lines), *places)
    before = commits(world.work)
    killed("-m", "kernelpilot_helpers", *words, KP_CRASH_AT="save.tmp")
    assert world.ideas() == () and commits(world.work) == before
    killed("-c", MARK, *words)
    noted = world.ideas()
    assert [idea.path for idea in noted] == ["csrc/x.cu", "csrc/big.cuh"] and commits(world.work) == before
    assert main(["ledger", "render", "--repo", str(world.work)]) == 0
    assert (world.ideas(), proc.dirty(world.work), commits(world.work)) == (noted, [], before + 1)
    assert ledgers.check(world.work) == []
    held = proc.git_out(world.work, "ls-files", "artifacts")
    assert ledger.IDEAS_PATH in held and ".tmp" not in held, "what the first kill left is evidence of nothing"
