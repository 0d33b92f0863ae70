"""A worker who hides the state of the repository from git, and odd answers of an evidence command."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable

import pytest

from tests.rlcr.real import CANCEL, Real


def assume_unchanged(real: Real) -> None:
    real.git("update-index", "--assume-unchanged", "a.txt")


def skip_worktree(real: Real) -> None:
    real.git("update-index", "--skip-worktree", "a.txt")


def fsmonitor(real: Real) -> None:
    hook = real.base / "monitor"
    hook.write_text("#!/bin/sh\nprintf 'token\\0'\n")
    hook.chmod(0o755)
    real.git("config", "core.fsmonitor", str(hook))
    real.git("config", "core.fsmonitorHookVersion", "2")
    real.git("update-index", "--fsmonitor")
    time.sleep(1.1)  # an entry as young as the index is looked at all the same
    real.git("status")


def clean_filter(real: Real) -> None:
    (real.repo / ".git" / "info" / "attributes").write_text("a.txt filter=hide\n")
    real.git("config", "filter.hide.clean", "git cat-file blob HEAD:%f")


def other_worktree(real: Real) -> None:
    clean = real.base / "clean"
    clean.mkdir()
    (clean / "a.txt").write_text((real.repo / "a.txt").read_text())
    (clean / ".gitignore").write_text((real.repo / ".gitignore").read_text())
    real.git("config", "core.worktree", str(clean))


@pytest.mark.parametrize(
    "hide", [assume_unchanged, skip_worktree, fsmonitor, clean_filter, other_worktree], ids=lambda f: f.__name__
)
def test_an_edit_that_git_was_told_not_to_see_is_not_clean(worked: Real, hide: Callable[[Real], None]) -> None:
    # Breaks when evidence made over hidden edits counts for HEAD: COMPLETE for code that was never committed.
    hide(worked)
    (worked.repo / "a.txt").write_text("ROUND 9")  # of the size that is committed
    worked.answer(met=True)
    said = worked.stop()
    assert "clean a.txt" in said["reason"] or "clean filter.hide.clean" in said["reason"]
    assert worked.at == ("BUILD", 0)
    assert any(p["rule"] == "clean" for p in worked.lines()[-2]["data"]["cause"]["problems"])


def test_setup_refuses_what_it_would_hold_against_every_round(real: Real) -> None:
    skip_worktree(real)
    done = real.setup()
    assert done.returncode == 1 and "hidden from git status" in done.stderr and "a.txt" in done.stderr


def test_edits_in_a_submodule_are_seen_whatever_its_config_says(real: Real) -> None:
    inner = real.base / "inner"
    inner.mkdir()
    real.run("git", "init", "-q", inner)
    real.run(
        "git", "-C", inner, "-c", "user.name=w", "-c", "user.email=w@e", "commit", "-q", "--allow-empty", "-m", "0"
    )
    real.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    real.git("commit", "-q", "-m", "sub")
    assert real.setup().returncode == 0
    real.work(0)
    real.git("config", "submodule.sub.ignore", "all")
    real.git("config", "diff.ignoreSubmodules", "all")
    (real.repo / "sub" / "new.txt").write_text("x")
    real.git("-C", "sub", "add", "-A")
    assert "clean sub" in real.stop()["reason"]


def test_a_graft_does_not_make_another_history_descend_from_the_base(worked: Real) -> None:
    base = worked.git("rev-list", "--max-parents=0", "HEAD")
    worked.git("checkout", "-q", "--orphan", "new")
    worked.commit("a.txt", "elsewhere")
    worked.git("branch", "-M", "new", "main")
    worked.git("replace", "--graft", "HEAD", base)
    (worked.repo / ".git" / "info" / "grafts").write_text(f"{worked.git('rev-parse', 'HEAD')} {base}\n")
    assert "HEAD no longer descends" in worked.stop()["reason"]


def test_a_commit_that_changes_no_file_is_no_commit_of_the_round(worked: Real) -> None:
    # E13 by another door: an empty commit a round went on to the end of --max, unmeasured by the limit on no-ops.
    worked.stop()
    assert worked.at == ("BUILD", 1)
    worked.papers(1)
    worked.git("commit", "-q", "--allow-empty", "-m", "nothing")
    assert "no commit in this round that changes a file" in worked.stop("m")["reason"]
    worked.papers(1, more="\nNo-op: waiting for the device\n")
    worked.stop("m1")
    assert worked.at == ("BUILD", 2) and worked.lines()[-2]["data"]["cause"]["noop"] == "waiting for the device"


def test_a_tag_of_the_branchs_name_is_not_another_branch(worked: Real) -> None:
    worked.git("tag", "main")
    worked.stop()
    assert worked.at == ("BUILD", 1)


@pytest.mark.parametrize(
    "raw",
    [
        '{"pass": false, "pass": true, "done": {"met": true, "why": "", "missing": []}, "findings": [], "not_evaluated": []}',  # noqa: E501
        '{"pass": true, "done": {"met": true, "why": "", "missing": []}, "findings": [], "not_evaluated": []} {}',
        '{"pass": true, "done": {"met": true, "why": "", "missing": []}, "findings": [], "not_evaluated": []}\nbye',
        '{"pass": NaN, "done": {"met": true, "why": "", "missing": []}, "findings": [], "not_evaluated": []}',
        '{"pass": true, "done": {"met": true, "why": NaN, "missing": []}, "findings": [], "not_evaluated": []}',
        '{"pass": true, "done": {"met": true, "why": "", "missing": "abc"}, "findings": [], "not_evaluated": []}',
        "[" * 100_000,
    ],
)
def test_an_answer_that_can_be_read_in_two_ways_is_no_answer(worked: Real, raw: str) -> None:
    worked.says.write_text(json.dumps({"raw": raw, "exit": 0}))
    said = worked.stop()
    assert "evidence-answer" in said["reason"] and worked.at == ("BUILD", 0)


def test_pass_beside_a_blocking_finding_is_no_pass(worked: Real) -> None:
    found = {"rule": "12", "severity": "block", "where": "v1", "what": "no row", "fix": "make it"}
    worked.answer(met=True, findings=[found])
    said = worked.stop()
    assert "12 v1: no row" in said["reason"] and worked.at == ("BUILD", 0)


def test_a_daemon_of_the_evidence_command_holds_no_stop(real: Real) -> None:
    spawn = "import subprocess\nsubprocess.Popen(['sleep', '20'], start_new_session=True)\nsaid = "
    real.script.write_text(real.script.read_text().replace("said = ", spawn, 1))
    assert real.setup().returncode == 0
    real.work(0)
    start = time.monotonic()
    assert real.stop()["decision"] == "block" and real.at == ("BUILD", 1)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("severity", ["BLOCK", "major", "\ud800"])
def test_a_finding_of_another_severity_makes_the_answer_none(worked: Real, severity: str) -> None:
    found = {"rule": "12", "severity": severity, "where": "v1", "what": "no row", "fix": "make it"}
    worked.answer(met=True, findings=[found])
    assert "evidence-answer" in worked.stop()["reason"] and worked.at == ("BUILD", 0)


def test_comments_left_open_are_no_report_and_take_no_time(worked: Real) -> None:
    (worked.loop / "round-0-summary.md").write_text("# Round 0 summary\n" + "<!--" * 16_000)
    start = time.monotonic()
    assert "still the empty form" in worked.stop()["reason"]
    assert time.monotonic() - start < 5, "64 KB once took 12 s"


def test_a_branch_left_while_the_round_is_judged_is_no_pass(worked: Real) -> None:
    detach = "import subprocess; subprocess.run(['git', 'checkout', '-q', '--detach'], check=True)\n"
    assert worked.run(CANCEL).returncode == 0
    worked.script.write_text(detach + worked.script.read_text())
    assert worked.setup().returncode == 0
    shutil.rmtree(min((worked.repo / ".humanize" / "rlcr").glob("*-*")))
    worked.work(9)
    worked.papers(0)
    assert "moved" in worked.stop()["reason"] and worked.at == ("BUILD", 0)
