"""The demo: the whole job through the ordinary commands, every verdict the one that a sound referee gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.taskpy import NUMPY, needs_numpy


@needs_numpy
@pytest.mark.slow
def test_the_demo_ends_with_every_verdict_as_expected(tmp_path: Path) -> None:
    """Breaks when any step of the main job does: plan, lock, loop, six attempts, dispatcher, the end of the loop.

    It is played below another git repository, as `./install.sh --demo` is in a fresh clone.
    """
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "kernelpilot_helpers", "demo", "--dir", str(tmp_path / "a demo"), "--json"],
        env={**os.environ, "KERNELPILOT_PYTHON": NUMPY}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    said = json.loads(done.stdout)
    assert {"dir", "state", "attempts", "report", "next"} <= set(said)
    assert [a["verdict"] for a in said["attempts"]] == ["REGRESSED", "WRONG", "IMPROVED", "WRONG", "SAME", "IMPROVED"]
    assert all(a["as_expected"] for a in said["attempts"])
    assert said["state"] == "COMPLETE" and done.returncode == 0
    rounds = [(r["round"], r["gate"], r["decision"], r["phase"]) for r in said["rounds"]]
    assert rounds == [
        (0, True, "block", "BUILD"),
        (1, False, "block", "BUILD"),  # a boast in a ledger, which the gate refuses and the writer mends
        (1, True, "block", "BUILD"),
        (2, True, "block", "FINALIZE"),
        (2, True, "allow", "COMPLETE"),
    ]
    assert said["rounds"][1]["findings"] == ["11:artifacts/optimization-ledger.md"]
    page = Path(said["report"]).read_text()
    assert "CPU figures show the mechanism, not the kernel." in page and "<svg" in page
    assert "evidence-only" in page and "11:artifacts/optimization-ledger.md" in page
    assert "v006_fused_wide" in Path(said["final"]).read_text()
    assert (Path(said["dir"]) / "dispatch" / "dispatch.py").exists()
    assert said["gate"] is True and said["seconds"] < 300


def test_a_demo_is_never_played_over_somebodys_files(tmp_path: Path) -> None:
    """Breaks when a folder with files in it is used."""
    (tmp_path / "mine").write_text("")
    argv = [sys.executable, "-m", "kernelpilot_helpers", "demo", "--dir", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "not empty" in done.stderr
