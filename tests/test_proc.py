"""Programs, git and locks: a failure is always named, and only committed content is ever judged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers import proc
from kernelpilot_helpers.errors import Busy, KernelPilotError, Refused, ToolMissing


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository under an empty HOME, as on a fresh machine."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = tmp_path / "repo"
    root.mkdir()
    proc.git(root, "init", "-q", "-b", "main")
    return root


def put(repo: Path, name: str, text: str) -> None:
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def test_run_names_what_is_missing(tmp_path: Path) -> None:
    """Breaks if a wrong directory is reported as a missing program, or either is a traceback."""
    with pytest.raises(ToolMissing, match="kp-no-such-tool was not found"):
        proc.run(["kp-no-such-tool"])
    with pytest.raises(KernelPilotError, match="no such directory") as caught:
        proc.run(["git", "--version"], cwd=tmp_path / "gone")
    assert not isinstance(caught.value, ToolMissing)
    plain = tmp_path / "plain"
    plain.write_text("x")
    with pytest.raises(ToolMissing, match="cannot be started"):
        proc.run([str(plain)])


def test_run_keeps_code_and_output_and_ends_in_time() -> None:
    """Breaks if a failing program raises, bytes that are not UTF-8 do, or a hang is waited out."""
    code = "import sys; sys.stdout.buffer.write(b'\\xff'); print(sys.stdin.read(), file=sys.stderr); sys.exit(3)"
    done = proc.run([sys.executable, "-c", code], data=b"hi")
    assert (done.code, done.out, done.err.strip()) == (3, "\ufffd", "hi")
    with pytest.raises(KernelPilotError, match="did not finish within 0 s"):
        proc.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)


def test_git_speaks_of_the_repository_here(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if a hook's GIT_DIR makes every command look at another repository."""
    put(repo, "a", "1")
    first = proc.commit(repo, "one", ["a"])
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent")
    assert proc.head(repo) == first
    with pytest.raises(KernelPilotError, match="git rev-parse failed"):
        proc.git(repo, "rev-parse", "--verify", "no-such")


def test_commit_takes_the_named_paths_only_and_needs_no_identity(repo: Path) -> None:
    """Breaks if an empty HOME cannot commit, or somebody's staged work is swept in."""
    assert proc.head(repo) is None
    put(repo, "mine", "1")
    put(repo, "theirs", "1")
    proc.git(repo, "add", "theirs")
    commit = proc.commit(repo, "mine only", ["mine"])
    assert commit == proc.head(repo)
    assert proc.git_out(repo, "show", "--name-only", "--format=%an", "HEAD").split() == ["KernelPilot", "mine"]
    assert proc.dirty(repo) == ["theirs"]
    assert proc.commit(repo, "again", ["mine"]) is None
    assert proc.head(repo) == commit


def test_a_users_identity_is_kept(repo: Path) -> None:
    """Breaks if the tool's name replaces the user's."""
    proc.git(repo, "config", "user.name", "Ada")
    proc.git(repo, "config", "user.email", "ada@example.org")
    put(repo, "a", "1")
    proc.commit(repo, "m", ["a"])
    assert proc.git_out(repo, "show", "-s", "--format=%an <%ae>") == "Ada <ada@example.org>"


def test_dirty_gives_whole_names_even_for_a_staged_rename(repo: Path) -> None:
    """Breaks if a rename's old name comes out cut by three letters, or quoted names stay quoted."""
    put(repo, "oldname.c", "content that is long enough to be seen as renamed\n" * 5)
    proc.commit(repo, "m", ["oldname.c"])
    proc.git(repo, "mv", "oldname.c", "newname.c")
    put(repo, "with space é", "1")
    assert sorted(proc.dirty(repo)) == ["newname.c", "oldname.c", "with space é"]


def test_tree_ids_follow_content_alone(repo: Path) -> None:
    """Breaks if the same content has two identities, or an absent path has one."""
    put(repo, "v/a/k.c", "1")
    first = proc.commit(repo, "m", ["v"])
    put(repo, "v/b/k.c", "1")
    second = proc.commit(repo, "n", ["v"])
    assert first is not None
    assert second is not None
    assert proc.tree(repo, first, "v/a") == proc.tree(repo, second, "v/b")
    assert proc.tree(repo, first, "v/b") is None


def test_archive_gives_the_committed_bytes_whatever_attributes_say(repo: Path, tmp_path: Path) -> None:
    """Breaks if a tree can hide a file from the judge, or attributes and settings rewrite one on the way."""
    put(repo, "v/.gitattributes", "hidden.c export-ignore\n*.h text eol=crlf\nsub.c export-subst\n")
    put(repo, "v/hidden.c", "secret\n")
    put(repo, "v/a.h", "one\ntwo\n")
    put(repo, "v/sub.c", "$Format:%H$\n")
    put(repo, "v/deep/run.sh", "#!/bin/sh\n")
    put(repo, "v/empty", "")
    (repo / "v/deep/run.sh").chmod(0o755)
    proc.git(repo, "config", "core.autocrlf", "true")
    commit = proc.commit(repo, "m", ["v"])
    put(repo, "v/hidden.c", "edited after the commit\n")
    into = tmp_path / "out"
    proc.archive(repo, f"{commit}:v", into)
    assert {str(p.relative_to(into)): p.read_bytes() for p in into.rglob("*") if p.is_file()} == {
        ".gitattributes": b"hidden.c export-ignore\n*.h text eol=crlf\nsub.c export-subst\n",
        "hidden.c": b"secret\n",
        "a.h": b"one\ntwo\n",
        "sub.c": b"$Format:%H$\n",
        "deep/run.sh": b"#!/bin/sh\n",
        "empty": b"",
    }
    assert os.access(into / "deep/run.sh", os.X_OK)
    assert not os.access(into / "a.h", os.X_OK)
    with pytest.raises(KernelPilotError, match="git ls-tree failed"):
        proc.archive(repo, f"{commit}:gone", tmp_path / "other")


def test_archive_refuses_what_points_outside(repo: Path, tmp_path: Path) -> None:
    """Breaks if a link lets a candidate's content change after it was judged."""
    (repo / "v").mkdir()
    (repo / "v/candidate.py").symlink_to("/etc/hostname")
    commit = proc.commit(repo, "m", ["v"])
    with pytest.raises(Refused, match=r"candidate\.py.* is a symbolic link"):
        proc.archive(repo, f"{commit}:v", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_toplevel_or_what_to_do(repo: Path, tmp_path: Path) -> None:
    """Breaks if a folder inside is taken for the root, or outside is a traceback."""
    put(repo, "a/b/c", "1")
    assert proc.toplevel(repo / "a" / "b").resolve() == repo.resolve()
    with pytest.raises(Refused, match="kernelpilot scaffold"):
        proc.toplevel(tmp_path)


def test_a_lock_names_its_holder_and_is_let_go(tmp_path: Path) -> None:
    """Breaks if two commands run at once, or the message names no process to wait for."""
    path = tmp_path / "x" / "repo.lock"
    code = (
        "import pathlib, sys; from kernelpilot_helpers import proc\n"
        f"with proc.file_lock(pathlib.Path({str(path)!r}), timeout_s=5, what='it'):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"held\n"
        with (
            pytest.raises(Busy, match=f"this repo is held by process {other.pid}"),
            proc.file_lock(path, timeout_s=0.1, what="this repo"),
        ):
            pass
        other.stdin.close()
        other.wait(timeout=10)
    with proc.file_lock(path, timeout_s=5, what="this repo"):
        assert (tmp_path / "x" / "repo.lock.owner").read_text() == f"{os.getpid()}\n"
    assert not (tmp_path / "x" / "repo.lock.owner").exists()
