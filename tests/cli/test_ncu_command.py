"""``kernelpilot ncu digest|diff|show`` and ``python -m kernelpilot_helpers.ncu``: exit codes, JSON, files."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers.__main__ import main
from tests import ncu_files as files

FILES = ["digest.json", "digest.md", "facts.json"]


def put(tmp_path: Path, kernel: str) -> Path:
    path = tmp_path / f"{kernel}.raw.csv"
    path.write_bytes(files.capture(path.name))
    return path


def test_a_digest_exits_zero_and_prints_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when the exit code or a stable key changes, or the object carries the folder of the file."""
    path = put(tmp_path, "smem_conflict")
    assert main(["ncu", "digest", str(path), "--json"]) == 0
    printed = capsys.readouterr().out
    found = json.loads(printed)
    assert (found["class"], found["confidence"], found["refused"]) == ("mem.smem_conflict", "high", None)
    assert found["input"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert str(tmp_path) not in printed
    promised = {"class", "confidence", "next_step", "groups", "refused", "headline", "input", "flags"}
    assert promised <= found.keys()
    step = {"kind", "family", "what", "why", "command", "expect", "guard", "refute", "target", "bound", "query"}
    assert step <= found["next_step"].keys()


def test_out_writes_three_files_that_are_the_same_on_every_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when the record, its page and its facts are not all written, or a second run writes other bytes."""
    path, out = put(tmp_path, "copy_vec4"), tmp_path / "d"
    argv = ["ncu", "digest", str(path), "--out", str(out), "--min-bytes", str(2 * 2**30), "--json"]
    assert main(argv) == 0
    printed = capsys.readouterr().out
    first = {p.name: p.read_bytes() for p in out.iterdir()}
    assert sorted(first) == FILES
    found = json.loads(first["digest.json"])
    assert first["digest.json"].decode() == printed
    assert (found["format"], found["version"]) == ("kernelpilot.ncu-digest", 2)
    assert found["next_step"]["family"] == "steady-dram"  # it moves no more than it must, at 83 % of DRAM
    assert first["digest.md"].decode().startswith("# Profile evidence digest")
    assert main(argv) == 0
    assert {p.name: p.read_bytes() for p in out.iterdir()} == first


def test_the_facts_file_is_digested_like_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when the committed facts.json cannot stand for the report that is not committed."""
    path, out = put(tmp_path, "low_occupancy"), tmp_path / "d"
    assert main(["ncu", "digest", str(path), "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr().out
    assert main(["ncu", "digest", str(out / "facts.json"), "--json"]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("empty.csv", b""),
        ("foreign.csv", b"kernel,time\nk,1\n"),
        ("cut.ncu-rep", b"NVR\0" + bytes(100)),
        ("huge.csv", b"x" * (5 * 2**20)),
        ("log.txt", b"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"),
    ],
)
def test_a_refused_file_exits_one_and_says_the_fix(
    name: str, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a bad file is a success, a traceback, or leaves a digest behind."""
    path = tmp_path / name
    path.write_bytes(data)
    assert main(["ncu", "digest", str(path), "--json", "--out", str(tmp_path / "d")]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["class"] == "none.refused"
    assert found["groups"] == []
    assert found["refused"]["fix"]
    assert found["input"]["bytes"] == len(data)
    assert not (tmp_path / "d").exists()
    assert main(["ncu", "digest", str(path)]) == 1
    assert found["refused"]["code"] in capsys.readouterr().out


def test_an_absent_file_is_an_error_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a wrong path is a digest or a traceback."""
    assert main(["ncu", "digest", str(tmp_path / "absent")]) == 1
    assert "no such file" in capsys.readouterr().err
    assert main(["ncu", "diff", str(tmp_path / "absent"), str(tmp_path / "absent")]) == 1
    assert main(["ncu", "show", str(tmp_path / "absent")]) == 1


def test_the_module_is_the_same_command(tmp_path: Path) -> None:
    """Breaks when ``python -m kernelpilot_helpers.ncu`` is gone or answers otherwise."""
    argv = [sys.executable, "-m", "kernelpilot_helpers.ncu", "digest", str(put(tmp_path, "fma_bound"))]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "exec.pipe_bound:fma" in ran.stdout


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_kill_while_writing_leaves_each_file_old_or_new(nth: int, tmp_path: Path) -> None:
    """Breaks when a digest is written in place: half a file would pass for evidence."""
    path, out = put(tmp_path, "tiny_launch"), tmp_path / "d"
    out.mkdir()
    for name in FILES:
        (out / name).write_text("old")
    script = (
        "import sys\nfrom kernelpilot_helpers.records import disk\nseen = []\nwas = disk.crash_point\n"
        "import os\ndef crash(step):\n    seen.append(step)\n"
        f"    (len(seen) == {nth}) and os.kill(os.getpid(), 9)\n"
        "disk.crash_point = crash\nfrom kernelpilot_helpers.__main__ import main\nmain(sys.argv[1:])\n"
    )
    argv = [sys.executable, "-c", script, "ncu", "digest", str(path), "--out", str(out)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))
    assert ran.returncode == -9, ran.stderr
    texts = {name: (out / name).read_text() for name in FILES}
    assert sum(text != "old" for text in texts.values()) == nth - 1
    assert texts["digest.json"] == "old"  # written last: beside it stands what it was made from
    assert all(text == "old" or text.endswith("\n") for text in texts.values())


def test_diff_says_who_is_faster_and_writes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a gain exits 1, a comparison across kernels is silent, or a record is not written."""
    before, after = tmp_path / "a.csv", tmp_path / "b.csv"
    metrics = {
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "20"),
        "gpu__time_duration.sum": ("ns", "100,000"),
    }
    before.write_bytes(files.made(metrics))
    after.write_bytes(files.made({**metrics, "gpu__time_duration.sum": ("ns", "90,000")}))
    assert main(["ncu", "diff", str(before), str(after), "--out", str(tmp_path / "d"), "--json"]) == 0
    printed = capsys.readouterr().out
    found = json.loads(printed)
    assert (found["format"], found["verdict"], found["time"]["delta"]) == ("kernelpilot.ncu-diff", "improved", -0.1)
    assert (tmp_path / "d/diff.json").read_text() == printed
    assert (tmp_path / "d/diff.md").read_text().startswith("# Baseline")
    assert main(["ncu", "diff", str(before), str(after), "--noise", "12"]) == 0
    assert "within noise" in capsys.readouterr().out
    after.write_bytes(files.made({**metrics, "gpu__time_duration.sum": ("ns", "90,000")}, cc="10.0"))
    assert main(["ncu", "diff", str(before), str(after)]) == 1
    assert "compute capability: 9.0 against 10.0" in capsys.readouterr().out


def test_a_parent_stands_on_the_first_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when --parent is read and not shown."""
    path = put(tmp_path, "copy_vec4")
    assert main(["ncu", "digest", str(path), "--parent", str(path), "--case", "b8"]) == 0
    out = capsys.readouterr().out
    assert "parent   within noise: time +0.0 %" in out
    assert "case     b8," in out


def test_show_prints_values_as_words_csv_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a filter or a form of show is gone."""
    path = put(tmp_path, "copy_vec4")
    argv = ["ncu", "show", str(path), "--kernel", "copy_vec4", "--metric", "gpu__time_duration.sum"]
    assert main(argv) == 0
    assert "gpu__time_duration.sum" in capsys.readouterr().out
    assert main([*argv, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["values"]
    assert (row["unit"], row["file"]) == ("ns", "copy_vec4.raw.csv")
    assert main([*argv, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("launch,kernel,grid")
