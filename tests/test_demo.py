"""The demo: the whole job through the ordinary commands, every verdict the one that a sound referee gives."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import proc
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.demo import commands
from kernelpilot_helpers.demo.commands import ask
from tests.taskpy import NUMPY, needs_numpy

KEPT = ("m64_n2048", "m256_n512", "held_m72_n1920", "held_m192_n768")
"""A case a regime of the example's six, and what is held out: the demo is measured in half the time."""


def _fewer_cases(argv: Sequence[str], **how: Any) -> dict[str, Any]:
    """An ordinary command; after the scaffold there are fewer cases."""
    said = ask(argv, **how)
    if argv[0] == "scaffold":
        cases = Path(argv[1]) / "workloads" / "cases.jsonl"
        head, *rest = cases.read_text().splitlines()
        rest = [line for line in rest if json.loads(line)["case_id"] in KEPT]
        assert len(rest) == len(KEPT)
        cases.write_text("\n".join([head, *rest, ""]))
        proc.commit(Path(argv[1]), "fewer cases", ["workloads/cases.jsonl"])
    return said


@needs_numpy
@pytest.mark.slow
def test_the_demo_ends_with_every_verdict_as_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when any step of the main job does: plan, lock, loop, six attempts, dispatcher, the end of the loop.

    It is played below another git repository, as `./install.sh --demo` is in a fresh clone.
    """
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setenv("KERNELPILOT_PYTHON", NUMPY)
    monkeypatch.setattr(commands, "ask", _fewer_cases)
    code = main(["demo", "--dir", str(tmp_path / "a demo"), "--json"])
    shown = capsys.readouterr()
    assert shown.out, shown.err
    said = json.loads(shown.out)
    assert {"dir", "state", "attempts", "report", "next"} <= set(said)
    assert [a["verdict"] for a in said["attempts"]] == ["REGRESSED", "WRONG", "IMPROVED", "WRONG", "SAME", "IMPROVED"]
    assert all(a["as_expected"] for a in said["attempts"])
    assert said["state"] == "COMPLETE" and code == 0
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
    winner = said["attempts"][-1]["version"]  # v006, or a later one where a busy machine asked for an attempt again
    assert winner.endswith("_fused_wide") and winner in Path(said["final"]).read_text()
    assert (Path(said["dir"]) / "dispatch" / "dispatch.py").exists()
    assert said["gate"] is True and said["seconds"] < 300


def test_a_demo_is_never_played_over_somebodys_files(tmp_path: Path) -> None:
    """Breaks when a folder with files in it is used."""
    (tmp_path / "mine").write_text("")
    argv = [sys.executable, "-m", "kernelpilot_helpers", "demo", "--dir", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "not empty" in done.stderr
