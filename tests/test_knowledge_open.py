"""What a record changed, shown from a clone within a budget, and which clone is believed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.knowledge import clones, opening
from tests.knowledge_made import fact, index, page

BIG = "".join(f"int line_{n:05d}; // filler of a large kernel\n" for n in range(600))


def git(repo: Path, *args: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", "-C", str(repo), *who, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def made(repo: Path, remote: str = "https://github.com/a/b.git") -> str:
    """A clone of a/b with one change: two kernels, a test, a page and a picture; its commit."""
    (repo / "csrc").mkdir(parents=True)
    git(repo, "init", "-q")
    git(repo, "remote", "add", "origin", remote)
    (repo / "csrc/x.cu").write_text("int a;\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "c")
    (repo / "csrc/x.cu").write_text("int b;\n")
    (repo / "csrc/big.cuh").write_text(BIG)
    (repo / "aaa.md").write_text("words\n" * 9)
    (repo / "dot.png").write_bytes(b"\0\1\2")
    (repo / "t.py").write_text("def test(): ...\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "c")
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """``kernelpilot knowledge open`` of record b#7 in a clone: code, stdout and stderr."""
    sha = made(tmp_path / "b")
    monkeypatch.delenv("KERNELPILOT_CLONES", raising=False)
    rows = [fact(7, sha=sha, test_files=["t.py"]), fact(8), fact(9, repo="c/d")]
    folder = index(tmp_path / "i", rows)
    page(folder, "techniques/zorb", "Zorb", Kind="technique")

    def run(name: str, *words: str, clone: Path | None = tmp_path / "b") -> tuple[int, str, str]:
        at = ["--clone", str(clone)] if clone else []
        code = main(["knowledge", "open", name, *words, *at, "--index", str(folder)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_kernels_come_first_and_the_budget_holds(show: Callable[..., Any]) -> None:
    """Breaks when prose comes before kernels, an answer outgrows its budget, or what is missing is not named."""
    code, out, _ = show("b#7")
    lines = out.splitlines()
    assert code == 0 and lines[0] == "5 files changed"
    assert [line.split()[-1] for line in lines[1:6]] == ["csrc/big.cuh", "csrc/x.cu", "t.py", "aaa.md", "dot.png"]
    assert lines[1].split()[:3] == ["kernel", "+600", "-0"] and lines[2].split()[:3] == ["kernel", "+1", "-1"]
    assert lines[5].split()[1] == "binary"
    assert len(out) < opening.BUDGET + 2000
    assert "+int line_00000;" in out and "+int line_00599;" not in out and "+words" not in out
    assert "left out:" in out and "--diff csrc/x.cu --clone" in out


def test_json_says_the_same(show: Callable[..., Any]) -> None:
    """Breaks when a script cannot tell what is missing."""
    said = json.loads(show("b#7", "--json")[1])
    assert list(said) == ["id", "sha", "link", "clone", "text", "files", "left_out"]
    assert said["files"][0] == {"path": "csrc/big.cuh", "kind": "kernel", "added": 600, "removed": 0}
    assert [item["path"] for item in said["left_out"]] == ["csrc/big.cuh", "csrc/x.cu", "t.py", "aaa.md", "dot.png"]
    shown = said["text"].count("\n+int line_")
    assert said["left_out"][0]["lines"] == 600 - shown > 0
    whole = json.loads(show("b#7", "--all", "--json")[1])
    assert whole["text"].count("\n+int line_") == 600 and "+int b;" in whole["text"]


def test_one_file_by_change_content_or_lines(show: Callable[..., Any]) -> None:
    """Breaks when --diff, --file, --lines or --stat shows another part than was asked for."""
    assert show("b#7", "--stat")[1].splitlines()[0] == "5 files changed"
    assert "int b" not in show("b#7", "--stat")[1]
    out = show("b#7", "--diff", "aaa.md")[1]
    assert out.startswith("diff --git a/aaa.md") and out.count("+words") == 9
    assert show("b#7", "--file", "csrc/big.cuh", "--lines", "3-4")[1] == "".join(BIG.splitlines(keepends=True)[2:4])
    out = show("b#7", "--file", "csrc/big.cuh")[1]
    assert len(out) < opening.BUDGET + 300
    rest = out.splitlines()[-1]
    start = out.count("int line_") + 1
    assert f"{600 - start + 1} lines: " in rest and f"--file csrc/big.cuh --lines {start}-600" in rest
    assert show("b#7", "--file", "csrc/big.cuh", "--all")[1] == BIG
    assert show("b#7", "--diff", "gone.cu")[0] == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--file", "a", "--diff", "b"),
        ("--lines", "1-2"),
        ("--file", "csrc/x.cu", "--lines", "9-2"),
        ("--file", "csrc/x.cu", "--lines", "0-2"),
        ("--file", "csrc/x.cu", "--lines", "x"),
    ],
)
def test_bad_usage_of_open(show: Callable[..., Any], words: tuple[str, ...]) -> None:
    """Breaks when contradicting or wrong options are passed over."""
    assert show("b#7", *words)[0] == 2


def test_a_page_takes_no_file(show: Callable[..., Any]) -> None:
    """Breaks when an option that says nothing about a page is passed over."""
    assert show("techniques/zorb", clone=None)[0] == 0
    assert show("techniques/zorb", "--file", "x", clone=None)[0] == 2


@pytest.mark.parametrize("path", ["../..", "a/../../b", "/etc/passwd", "a//b", "a\\b", "a\nb"])
def test_a_path_that_leaves_the_repository_becomes_no_link(show: Callable[..., Any], path: str) -> None:
    """Breaks when a link is printed that leads out of the commit."""
    code, out, err = show("b#8", "--file", path, clone=None)
    assert (code, out) == (1, "") and "no path inside a/b" in err


def test_without_a_clone_the_named_files_and_the_link(show: Callable[..., Any]) -> None:
    """Breaks when the reader without a clone gets nothing to go on with, or a link that is not quoted."""
    out = show("b#7", clone=None)[1]
    assert "https://github.com/a/b/pull/7.diff" in out and "  kernel csrc/x.cu" in out
    assert "/csrc/x%20y%23.cu" in show("b#7", "--file", "csrc/x y#.cu", clone=None)[1]
    assert json.loads(show("b#7", "--json", clone=None)[1])["clone"] is False


def test_the_wrong_folder_is_named(show: Callable[..., Any], tmp_path: Path) -> None:
    """Breaks when a folder that is no clone, or one of another project, is told to fetch a commit."""
    plain = tmp_path / "plain"
    plain.mkdir()
    _, _, err = show("b#7", clone=plain)
    assert "is no git repository; want a clone of a/b" in err and "git clone https://github.com/a/b" in err
    _, _, err = show("d#9", clone=tmp_path / "b")
    assert "is a clone of https://github.com/a/b and does not hold" in err and "want a clone of c/d" in err
    _, _, err = show("b#8", clone=tmp_path / "b")
    assert "does not hold commit" in err and "fetch https://github.com/a/b" in err and "want a clone" not in err


@pytest.mark.parametrize("form", ["a+b/repo", "a+b", "a/b", "b", "b.git"])
def test_clones_below_a_folder(tmp_path: Path, form: str) -> None:
    """Breaks when one of the documented names of a clone is not looked for."""
    sha = made(tmp_path / "all" / form)
    (record,) = (
        r for r in knowledge.load(knowledge.read(index(tmp_path / "i", [fact(7, sha=sha)]))).records if r.repo == "a/b"
    )
    environ = {"KERNELPILOT_CLONES": f"/nowhere:{tmp_path / 'all'}"}
    assert clones.clone_of(record, None, environ) == tmp_path / "all" / form
    assert clones.clone_of(record, None, {}) is None
