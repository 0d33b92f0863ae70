"""What a repo's git settings, hooks and odd states can hide from the gate: nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import evidence, proc
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.ledger import IDEAS_PATH, Idea
from kernelpilot_helpers.referee import gating, ledgers
from tests.referee_sim import VARIANTS, attempt, clock, write_variant


def collect(root: Path) -> Evidence:
    return evidence.collect(root, audit=lambda _: ())


def _git(repo: Path, *args: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=w", "-c", "user.email=w@w", *args], cwd=repo, check=True, capture_output=True
    )


def test_a_history_that_is_not_whole_is_one_finding(repo: Path, tmp_path: Path) -> None:
    """Breaks when a shallow clone or a graft is told as lost commits, with a remedy that does not mend it."""
    attempt(repo, FakeLab(speedup=1.3))
    shallow = tmp_path / "shallow"
    _git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", str(shallow))
    blocks = [(f.rule, f.fix) for f in gating.gate(shallow, final=False).findings if f.severity == "block"]
    assert blocks == [("2", "git fetch --unshallow")]
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/grafts").write_text(f"{proc.head(repo)}\n")
    blocks = [(f.rule, f.fix) for f in gating.gate(repo, final=False).findings if f.severity == "block"]
    assert blocks == [("2", "rm .git/info/grafts")]


def test_a_replacement_and_a_helper_of_git_are_not_believed(repo: Path, tmp_path: Path) -> None:
    """Breaks when `git replace` shows another history, or a file monitor that sees nothing hides an edit."""
    head = proc.head(repo) or ""
    _git(repo, "replace", "--graft", head)
    assert collect(repo).git.commits[-1].commit == head and len(collect(repo).git.commits) > 1
    helper = tmp_path / "helper"
    helper.write_text('#!/bin/sh\nprintf "token\\0"\n')
    helper.chmod(0o755)
    _git(repo, "config", "core.fsmonitor", str(helper))
    _git(repo, "update-index", "--fsmonitor")
    _git(repo, "status")
    (repo / "artifacts/research-digest.md").write_text("edited")
    assert "artifacts/research-digest.md" in collect(repo).git.dirty


def test_a_filter_that_hides_an_edit_is_named(repo: Path) -> None:
    """Breaks when a clean filter makes an edited candidate look like the committed one."""
    attempt(repo, FakeLab(speedup=1.3))
    assert collect(repo).git.filtered == ()
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/attributes").write_text("candidate.py filter=hide\n")
    _git(repo, "config", "filter.hide.clean", "git show HEAD:%f")
    (repo / VARIANTS / "fused/candidate.py").write_text("evil")
    assert collect(repo).git.filtered == ("baseline/candidate.py", f"{VARIANTS}/fused/candidate.py")
    assert [f.where for f in gating.gate(repo, final=False).findings if f.rule == "2"] == ["baseline/candidate.py"]


def test_byte_code_in_the_history_of_the_dispatcher_is_named(repo: Path) -> None:
    """Breaks when a clone imports committed byte code in place of the generated file."""
    path = "dispatch/__pycache__/dispatch.cpython-311.pyc"
    (repo / path).parent.mkdir()
    (repo / path).write_bytes(b"x")
    assert path not in [f.where for f in collect(repo).faults]
    _git(repo, "add", "-f", path)
    assert path in [f.where for f in collect(repo).faults]


def test_another_worktree_is_not_judged_in_place_of_this_one(repo: Path, tmp_path: Path) -> None:
    """Breaks when core.worktree sends the gate to a clean copy."""
    (tmp_path / "copy").mkdir()
    _git(repo, "config", "core.worktree", str(tmp_path / "copy"))
    with pytest.raises(Refused, match=r"core\.worktree"):
        gating.judged(repo, final=False)


def test_looking_leaves_no_object_behind(repo: Path) -> None:
    """Breaks when the gate writes to the repo, and so fails where it may not."""
    before = sorted((repo / ".git/objects").rglob("*"))
    write_variant(repo, "fresh", "never = 'seen'\n")
    assert "fresh" in collect(repo).git.variants
    assert sorted((repo / ".git/objects").rglob("*")) == before


def test_a_name_that_is_not_text_is_not_taken_for_lost_evidence(repo: Path) -> None:
    """Breaks when a committed Latin-1 name is told as deleted evidence, for ever."""
    Path(os.fsdecode(os.fsencode(repo) + b"/artifacts/caf\xe9.md")).write_text("x")
    _git(repo, "add", "-A")
    _git(repo, "commit", "-qm", "x")
    assert collect(repo).git.removed == ()


def test_the_ideas_that_each_commit_held_are_counted(repo: Path) -> None:
    """Breaks when the header counts as an idea, or a cut, absent or odd log gives a count that it does not hold."""
    note: dict[str, Any] = {"repo": "a/b", "commit": "1" * 40, "hypothesis": "h\nh"}
    for path in ("1.cu", "2.cu"):
        ledgers.add_idea(repo, Idea(path=path, at="2026-11-30T08:00:00Z", **note), clock)
    log = repo / IDEAS_PATH
    first, second = (c.commit for c in collect(repo).git.commits[-2:])
    held = collect(repo).git.ideas_held
    assert (held[first], held[second], sorted(held.values())) == (1, 2, [0, 1, 2])
    log.write_bytes(log.read_bytes().rpartition(b'{"')[0])
    assert collect(repo).git.ideas_held[second] == 1
    log.write_bytes(b"")
    assert set(collect(repo).git.ideas_held.values()) == {0}
    log.unlink()
    assert collect(repo).git.ideas_held == {}
