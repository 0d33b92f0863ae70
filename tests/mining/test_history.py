"""Mining of small histories made on the spot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("git", reason="GitPython is not installed")
pytest.importorskip("requests", reason="requests is not installed")

import refresh_pr_knowledge
from mining import emit, mine, title
from mining.cursor import Cursor
from mining.git_history import Clone
from mining.repos import Source
from tests.mining.tiny_repo import SECRET_MAIL, SECRET_NAME, START, Tiny

HEAD = "__global__ void copy_kernel(float* out) {\n"
KERNEL = HEAD + "  out[0] = 1;\n}\n"
FASTER = HEAD + "  tma_load(out);\n  ldmatrix(out);\n  out[0] = 1;\n}\n"


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    made = Tiny(tmp_path / "r.git")
    made.commit("first", {"csrc/a.cu": KERNEL, "README.md": "x\n"})
    return made


def facts(made: Tiny, out: Path, *options: str, repo: str = "o/r", code: int = 0) -> dict[str, dict[str, Any]]:
    """Run the command on a tiny repository; the records by id."""
    if made.stream:
        made.write()
        made.stream.clear()
    arguments = ["--repo", repo, "--clone", str(made.folder), "--since", "2025-01-01", "--out", str(out), "--quiet"]
    assert refresh_pr_knowledge.main([*arguments, *options]) == code
    rows = [json.loads(row) for row in emit.unpack(emit.file_of(out, repo).read_bytes())]
    return {row["id"]: row for row in rows}


def test_squash_gives_facts_and_nothing_of_anybody(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when a fact is lost, a date keeps its zone, or a sentence, name or address is stored."""
    body = "\n\nA sentence nobodyshouldkeep. It is 1.5x faster.\n\nCo-authored-by: Zyx <zyx@private.example>\n"
    tiny.commit("Speed up the copy by TMA (#12)" + body, {
        "csrc/a.cu": FASTER, "tests/test_a.py": "assert 1\n", "benchmarks/bench_a.py": "1\n", "README.md": "y\n",
    }, zone="+0800")  # fmt: skip
    found = facts(tiny, tmp_path)
    row = found["o/r#12"]
    assert list(found) == ["o/r#12"]
    assert row["merged_at"] == "2025-01-03T00:00:00Z"
    assert (row["tier"], row["how"], row["pr"]) == ("A", "squash", 12)
    assert row["diff_terms"] == {"ldmatrix": 1, "tma": 1}
    assert (row["kadd"], row["kdel"], row["knet"], row["kernel_lines"]) == (2, 0, 2, 2)
    assert row["symbols"] == ["copy_kernel"] and row["kinds"] == ["cuda"] and row["archs"] == []
    assert row["kernel_files"] == ["csrc/a.cu"] and row["files"][0] == {"path": "csrc/a.cu", "add": 2, "del": 0}
    assert row["test_files"] == ["tests/test_a.py"] and row["bench_files"] == ["benchmarks/bench_a.py"]
    assert row["n_files"] == 4 and row["claims"] == ["1.5x"] and row["words"] == ["copy", "speed", "tma"]
    stored = (tmp_path / ".cursor.sqlite").read_bytes() + json.dumps(found).encode()
    for secret in (SECRET_NAME, SECRET_MAIL, "nobodyshouldkeep", "Speed up", "tma_load(out)"):
        assert secret.encode() not in stored


def test_a_merge_counts_once_and_takes_its_title_from_the_body(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when a merge is printed once for each parent: the other side's file would count."""
    side = tiny.commit("wip", {"csrc/a.cu": FASTER}, branch="refs/heads/side", parents=(1,))
    main = tiny.commit("Another (#1)", {"csrc/b.cu": KERNEL}, parents=(1,))
    tiny.commit(
        "Merge pull request #7 from someone/speedy\n\nFaster copy\n", {"csrc/a.cu": FASTER}, parents=(main, side)
    )
    row = facts(tiny, tmp_path)["o/r#7"]
    assert row["kernel_files"] == ["csrc/a.cu"]
    assert (row["how"], row["kadd"], row["knet"], row["words"]) == ("merge", 2, 2, ["copy", "faster"])


def test_moved_code_adds_no_mechanism(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when a file's move looks like a new kernel."""
    tiny.commit("Speed up (#2)", {"csrc/a.cu": FASTER})
    tiny.commit("Speed up by another folder (#3)", {"csrc/a.cu": None, "csrc/sub/b.cu": FASTER.replace("  ", "    ")})
    row = facts(tiny, tmp_path)["o/r#3"]
    assert (row["kadd"], row["knet"], row["diff_terms"], row["why"]) == (5, 0, {}, "no-kernel-change")


def test_bare_clone_without_configuration(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when a clone without a config file is taken for a work tree."""
    tiny.commit("Faster (#2)", {"csrc/a.cu": FASTER})
    tiny.write()
    tiny.stream.clear()
    (tiny.folder / "config").unlink()
    assert list(facts(tiny, tmp_path)) == ["o/r#2"]


def test_blobs_absent_from_a_partial_snapshot(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when one absent blob ends the run, or hides the other files of its commit or the commits behind it."""
    tiny.commit("Faster (#2)", {"csrc/a.cu": FASTER})
    tiny.commit("Faster still (#3)", {"csrc/a.cu": FASTER + "// 3\n" + HEAD + "}\n", "csrc/big.cu": "int big;\n"})
    tiny.commit("Faster again (#4)", {"csrc/a.cu": FASTER + HEAD + "  wgmma();\n}\n"})
    tiny.write()
    tiny.stream.clear()
    blob = tiny.git("rev-parse", "main~1:csrc/big.cu")
    (tiny.folder / "objects" / blob[:2] / blob[2:]).unlink()
    found = facts(tiny, tmp_path)
    assert sorted(found) == ["o/r#2", "o/r#3", "o/r#4"]
    assert found["o/r#3"]["n_files"] == 2
    assert found["o/r#3"]["files"][-1] == {"path": "csrc/big.cu", "add": None, "del": None}
    assert found["o/r#3"]["kernel_files"] == ["csrc/a.cu"]


def test_settings_of_the_user_change_no_diff(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when diff.noprefix, an external diff or a quoted path of somebody's settings reaches the parser."""
    tiny.commit("Faster (#2)", {"csrc/a.cu": FASTER, "csrc/b\u00fc.cu": KERNEL})
    settings = tmp_path / "gitconfig"
    settings.write_text(
        "[diff]\n noprefix = true\n external = /bin/false\n renames = copies\n[core]\n quotepath = true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    row = facts(tiny, tmp_path)["o/r#2"]
    assert row["kernel_files"] == ["csrc/b\u00fc.cu", "csrc/a.cu"] and row["kadd"] == 5


def test_a_forks_own_numbers_are_left_out(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when the fork's pull request 5 is filed under the upstream's number 5."""
    tiny.commit("Faster (#9000)", {"csrc/a.cu": FASTER})
    tiny.commit("Faster for us (#5)", {"csrc/a.cu": FASTER + HEAD + "}\n"})
    assert list(facts(tiny, tmp_path, "--numbers", "3600-9999")) == ["o/r#9000"]
    assert list(json.loads((tmp_path / "repos.json").read_text())["o/r"]["heads"]) == ["HEAD #3600-9999"]
    with pytest.raises(SystemExit) as usage:
        refresh_pr_knowledge.main(["--numbers", "all"])
    assert usage.value.code == 2
    wish = mine.Wish(source=Source(repo="o/r", least=100, forked="2025-06-01"), since="2025-01-01")
    assert mine.is_own(title.read("x (#5)"), "2025-05-31T00:00:00Z", wish)
    assert not mine.is_own(title.read("x (#5)"), "2025-06-01T00:00:00Z", wish)


def test_direct_commits_only_when_asked(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when a push is lost for later: the cursor must not call it done before it was wanted."""
    tiny.commit("Faster copy", {"csrc/a.cu": FASTER})
    assert facts(tiny, tmp_path) == {}
    sha = tiny.git("rev-parse", "main")
    found = facts(tiny, tmp_path, "--direct")
    assert found[f"o/r@{sha[:12]}"]["how"] == "direct" and found[f"o/r@{sha[:12]}"]["pr"] is None


def test_the_main_branch_stands_before_a_backport(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when a cherry-pick with the same number replaces the merge, or the other branch is not read."""
    main = tiny.commit("Faster (#2)", {"csrc/a.cu": FASTER}, at=START + 9 * 86_400)
    tiny.commit("Faster (#2)", {"csrc/a.cu": FASTER}, branch="refs/heads/nv_dev", parents=(1,), at=START + 86_400)
    tiny.commit("Faster there (#3)", {"csrc/a.cu": FASTER + HEAD + "}\n"}, branch="refs/heads/nv_dev")
    found = facts(tiny, tmp_path, repo="deepseek-ai/DeepGEMM")
    assert sorted(found) == ["deepseek-ai/DeepGEMM#2", "deepseek-ai/DeepGEMM#3"]
    assert main == 2 and found["deepseek-ai/DeepGEMM#2"]["merged_at"].startswith("2025-01-10")


def test_open_candidates_come_and_go(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when a merged one stays open, or the subject of a merge (with a user's name) is taken for a title."""
    head = tiny.commit(
        "Merge pull request #3 from someone/main\n\nTheirs", {"csrc/a.cu": FASTER}, branch="refs/heads/x", parents=(1,)
    )
    merge = tiny.commit("Merge abc into def", {"csrc/a.cu": FASTER}, branch="refs/heads/y", parents=(1, head))
    tiny.ref("refs/pull/9/head", head)
    tiny.ref("refs/pull/9/merge", merge)
    row = facts(tiny, tmp_path, "--open")["o/r#9"]
    assert (row["how"], row["words"], row["diff_terms"]) == ("open", [], {"ldmatrix": 1, "tma": 1})
    assert row["sha"] == tiny.git("rev-parse", "refs/pull/9/head")
    tiny.commit("Faster copy (#9)", {"csrc/a.cu": FASTER}, parents=(1,))
    found = facts(tiny, tmp_path, "--open")
    assert [(key, row["how"]) for key, row in found.items()] == [("o/r#9", "squash")]


def test_a_head_that_changes_nothing(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when an empty commit on top of a candidate (a retriggered build) ends the run."""
    work = tiny.commit("Faster", {"csrc/a.cu": FASTER}, branch="refs/heads/x", parents=(1,))
    head = tiny.commit("Empty words", {}, branch="refs/heads/x", parents=(work,))
    merge = tiny.commit("Merge abc into def", {"csrc/a.cu": FASTER}, branch="refs/heads/y", parents=(1, head))
    tiny.ref("refs/pull/9/merge", merge)
    assert facts(tiny, tmp_path, "--open")["o/r#9"]["words"] == ["empty", "words"]


def test_an_interrupted_run_ends_with_the_same_bytes(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a killed run loses or repeats commits, or order and time leak into the output."""
    for number in range(2, 9):
        tiny.commit(f"Faster {number} (#{number})", {f"csrc/k{number}.cu": FASTER})
    facts(tiny, tmp_path / "whole")
    monkeypatch.setattr(mine, "BATCH", 2)
    settle, calls = Cursor.settle, []

    def stop(self: Cursor, *arguments: Any, **named: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        settle(self, *arguments, **named)

    monkeypatch.setattr(Cursor, "settle", stop)
    arguments = ["--repo", "o/r", "--clone", str(tiny.folder), "--since", "2025-01-01", "--quiet"]
    assert refresh_pr_knowledge.main([*arguments, "--out", str(tmp_path / "parts")]) == 130
    monkeypatch.setattr(Cursor, "settle", settle)
    with Cursor(tmp_path / "parts" / ".cursor.sqlite") as cursor:
        assert len(cursor.done("o/r")) == 4
    assert len(facts(tiny, tmp_path / "parts")) == 7
    for name in ("o+r.jsonl.gz", "repos.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_records_and_cursor_move_together(tmp_path: Path) -> None:
    """Breaks when a batch that fails half-way leaves commits called done without their records."""
    with Cursor(tmp_path / "c.sqlite") as cursor:
        with pytest.raises(TypeError):
            cursor.settle("o/r", (), ["a" * 40], [("heads", {1, 2})])
        assert cursor.done("o/r") == set()
        cursor.settle("o/r", (), ["b" * 40])
        assert cursor.done("o/r") == {"b" * 40}


def test_no_time_in_the_bytes() -> None:
    """Breaks when the same records packed tomorrow differ."""
    assert emit.pack([b"{}"])[4:8] == bytes(4)


def test_dry_run_writes_nothing(tiny: Tiny, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a dry run leaves a file or does not say how much there is."""
    tiny.commit("Faster (#2)", {"csrc/a.cu": FASTER})
    tiny.write()
    out = tmp_path / "out"
    arguments = ["--repo", "o/r", "--clone", str(tiny.folder), "--out", str(out), "--dry-run"]
    assert refresh_pr_knowledge.main(arguments) == 0
    assert "2 commits to read" in capsys.readouterr().err
    assert not out.exists()


def test_summary_names_heads_and_calls_small_ones_sources(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when a repository with too few selected pull requests is not marked, or its commit is not named."""
    tiny.commit("Faster (#2)", {"csrc/a.cu": FASTER})
    facts(tiny, tmp_path)
    told = json.loads((tmp_path / "repos.json").read_text())["o/r"]
    assert told["selected_prs"] == 1 and told["source_only"] is True
    assert told["heads"] == {"HEAD": tiny.git("rev-parse", "main")}


def test_a_folder_that_is_no_clone_is_a_named_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when GitPython's traceback reaches the user."""
    (tmp_path / "empty").mkdir()
    arguments = ["--repo", "o/r", "--clone", str(tmp_path / "empty"), "--out", str(tmp_path / "out")]
    assert refresh_pr_knowledge.main(arguments) == 1
    assert "git clone --bare" in capsys.readouterr().err


def test_fetch_brings_heads_and_pulls(tiny: Tiny, tmp_path: Path) -> None:
    """Breaks when --fetch leaves listed branches or the refs of pull requests behind."""
    mark = tiny.commit("Faster (#2)", {"csrc/a.cu": FASTER}, branch="refs/heads/nv_dev", parents=(1,))
    tiny.ref("refs/pull/2/merge", mark)
    source = tiny.write()
    other = Tiny(tmp_path / "copy.git")
    other.git("remote", "add", "origin", str(source))
    clone = Clone(other.folder)
    clone.fetch(("nv_dev",), pulls=True)
    clone.close()
    assert (
        other.git("rev-parse", "refs/pull/2/merge")
        == tiny.git("rev-parse", "nv_dev")
        == other.git("rev-parse", "nv_dev")
    )
