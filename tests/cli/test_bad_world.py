"""Files and machines that are not as a command needs them: exit 1 with a word, never a traceback or 'our bug'."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.cli import common
from kernelpilot_helpers.executors.fake import FakeLab
from tests import referee_sim


def run(*argv: str, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **extra}
    return subprocess.run(
        [sys.executable, "-m", "kernelpilot_helpers", *argv],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("path", "argv"),
    [
        ("contract.toml", ("ledger", "check")),
        ("artifacts/lineage.jsonl", ("ledger", "check")),
        ("artifacts/source-ideas.jsonl", ("ledger", "check")),
        ("artifacts/attempt-ledger.md", ("ledger", "render")),
        (".kernelpilot/repo.lock", ("ledger", "render")),
    ],
)
def test_a_folder_where_a_file_should_be(repo: Path, path: str, argv: tuple[str, ...]) -> None:
    """Breaks when a directory in a file's place is called a bug of ours."""
    target = repo / path
    target.unlink(missing_ok=True)
    target.mkdir(parents=True)
    done = run(*argv, cwd=repo)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr and "bug of ours" not in done.stderr and done.stderr + done.stdout


@pytest.mark.parametrize(
    ("speedup", "words"),
    [
        (0.5, "REGRESSED -50.0 % is recorded in artifacts/lineage.jsonl, but its evidence commit failed"),
        (2.0, "src/add_rmsnorm/current: cannot be written: Is a directory"),
    ],
)
def test_a_folder_where_the_link_to_the_best_version_should_be(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], speedup: float, words: str
) -> None:
    """The same for an attempt: its row is on record when the link cannot be moved, or its evidence not committed."""
    (repo / "src/add_rmsnorm/current").unlink(missing_ok=True)
    (repo / "src/add_rmsnorm/current").mkdir(parents=True)
    monkeypatch.chdir(repo)
    monkeypatch.setattr(common, "measuring_lab", lambda _: referee_sim.WithControls(FakeLab(speedup=speedup)))
    assert main(["attempt", "-m", "x"]) == 1
    said = capsys.readouterr()
    assert "Traceback" not in said.err and "bug of ours" not in said.err
    assert words in said.err
    rows = [json.loads(line) for line in (repo / "artifacts/lineage.jsonl").read_text().splitlines()]
    assert "v001_fused" in [row.get("version") for row in rows]


@pytest.mark.parametrize(
    "text", ["python = 3\n", "python = []\n", "[python]\nargv = 3\n", "[python\n", "a = " + "[" * 5000]
)
def test_a_bad_local_file(repo: Path, text: str) -> None:
    """Breaks when .kernelpilot/local.toml of another shape ends in an exception."""
    (repo / ".kernelpilot").mkdir(exist_ok=True)
    (repo / ".kernelpilot/local.toml").write_text(text)
    done = run("try", "fused", cwd=repo)
    assert done.returncode == 1 and "bug of ours" not in done.stderr, done.stderr


def test_an_unwritable_home(repo: Path) -> None:
    """Breaks when the cache cannot be made and the user is told of a bug."""
    done = run("try", "fused", cwd=repo, HOME="/proc/nonexistent", XDG_CACHE_HOME="/dev/null")
    assert done.returncode == 1 and "bug of ours" not in done.stderr, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_that_cannot_be_written(repo: Path) -> None:
    """Breaks when a full disk or a closed stdout ends in a traceback."""
    argv = [sys.executable, "-m", "kernelpilot_helpers", "ledger", "check"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, cwd=repo, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    shell = shutil.which("sh")
    assert shell is not None
    closed = subprocess.run(
        [shell, "-c", '"$@" >&-', "sh", *argv], cwd=repo, stderr=subprocess.PIPE, text=True, check=False
    )
    assert closed.returncode in (0, 1) and "Traceback" not in closed.stderr


def test_a_demo_into_a_file(tmp_path: Path) -> None:
    """Breaks when --dir names a file."""
    (tmp_path / "file").write_text("")
    done = run("demo", "--dir", str(tmp_path / "file"), cwd=tmp_path)
    assert done.returncode == 1 and "bug of ours" not in done.stderr
