"""``kernelpilot ncu digest`` and ``python -m kernelpilot_helpers.ncu digest``: exit codes, JSON, files."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers.__main__ import main
from tests import ncu_files as files


def test_a_digest_exits_zero_and_prints_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when the exit code or a stable key changes, or the object carries the folder of the file."""
    path = tmp_path / "report.raw.csv"
    path.write_bytes(files.capture("smem_conflict.raw.csv"))
    assert main(["ncu", "digest", str(path), "--json"]) == 0
    printed = capsys.readouterr().out
    found = json.loads(printed)
    assert (found["class"], found["confidence"], found["refused"]) == ("mem.smem_conflict", "high", None)
    assert found["input"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert str(tmp_path) not in printed


def test_out_writes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when the committed record and its page are not both written."""
    path = tmp_path / "report.raw.csv"
    path.write_bytes(files.capture("copy_vec4.raw.csv"))
    least = str(2 * 2**30)
    assert main(["ncu", "digest", str(path), "--out", str(tmp_path / "d"), "--min-bytes", least]) == 0
    capsys.readouterr()
    found = json.loads((tmp_path / "d/digest.json").read_text())
    assert (found["format"], found["version"]) == ("kernelpilot.ncu-digest", 1)
    assert found["next_step"]["family"] == "steady-dram"  # it moves no more than it must, at 83 % of DRAM
    assert (tmp_path / "d/digest.md").read_text().startswith("# Profile evidence digest")


def test_a_refused_file_exits_one_and_says_the_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a binary report is a success, a traceback, or leaves a digest behind."""
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(b"NVR\0" + bytes(100))
    assert main(["ncu", "digest", str(path), "--json", "--out", str(tmp_path / "d")]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["refused"]["code"], found["groups"]) == ("report.binary", [])
    assert found["refused"]["fix"].startswith(f"ncu --import {path} --page raw --csv")
    assert not (tmp_path / "d").exists()
    assert main(["ncu", "digest", str(path)]) == 1
    assert "report.binary" in capsys.readouterr().out
    assert main(["ncu", "digest", str(tmp_path / "absent")]) == 1


def test_the_module_is_the_same_command(tmp_path: Path) -> None:
    """Breaks when ``python -m kernelpilot_helpers.ncu`` is gone or answers otherwise."""
    path = tmp_path / "report.raw.csv"
    path.write_bytes(files.capture("fma_bound.raw.csv"))
    argv = [sys.executable, "-m", "kernelpilot_helpers.ncu", "digest", str(path)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "exec.pipe_bound:fma" in ran.stdout
