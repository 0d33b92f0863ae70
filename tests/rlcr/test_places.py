"""Where a loop is reached from: linked worktrees, links, the shell function, the hook under its older name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rlcr.real import CANCEL, GATE, HOOK, PLAN, RLCR, ROOT, SESSION, SETUP, Real

OLD_HOOK = ROOT / "hooks" / "loop-codex-stop-hook.sh"
SHELLS = [
    "bash",
    pytest.param("zsh", marks=pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")),
]


def side_worktree(real: Real, at: Path) -> None:
    """Go on in a linked worktree of the repository, with plan and evidence there."""
    real.git("worktree", "add", "-q", "-b", "side", str(at))
    (at / ".humanize").mkdir()
    for name in ("plan.md", "evidence.json"):
        shutil.copy(real.repo / ".humanize" / name, at / ".humanize" / name)
    real.repo = at


def test_a_loop_in_a_linked_worktree_runs_its_course_and_leaves_the_main_one_alone(real: Real, elsewhere: Path) -> None:
    main = real.repo
    side_worktree(real, elsewhere / "side")
    assert real.setup().returncode == 0
    assert json.loads(real.entry.read_text())["worktree"] == str(elsewhere / "side")
    real.work(0)
    assert real.stop()["decision"] == "block" and real.at == ("BUILD", 1)
    side, real.repo = real.repo, main
    done = real.run(RLCR, "status")
    assert done.returncode == 1 and str(side) in done.stdout, "the main worktree has none, and says where one is"
    done = real.run(SETUP, PLAN, "--session-id", "session-2", "--reviewer", "evidence-only")
    assert done.returncode == 0, done.stderr
    assert real.run(CANCEL).returncode == 0
    real.repo = side
    real.work(1)
    real.answer(met=True)
    real.stop("met")
    (real.loop / "finalize-summary.md").write_text("# Finalize summary\n\nall made\n")
    assert "COMPLETE" in real.stop("final")["systemMessage"]


def test_an_end_that_died_half_way_does_not_touch_the_sessions_next_loop(real: Real, elsewhere: Path) -> None:
    assert real.setup().returncode == 0
    old, main = real.loop, real.repo
    assert real.run(CANCEL, crash="append.cancel.after").returncode == -9
    assert [p.name for p in old.glob("*state.md")] == ["state.md"], "only the journal knows of the end"
    side_worktree(real, elsewhere / "side")
    assert real.setup().returncode == 0
    entry = real.entry.read_text()
    side, real.repo = real.repo, main
    assert real.run(RLCR, "status").returncode == 1
    assert [p.name for p in old.glob("*state.md")] == ["cancel-state.md"]
    assert real.entry.read_text() == entry
    real.repo = side
    real.work(0)
    real.stop()
    assert real.at == ("BUILD", 1)


def test_a_cwd_through_a_link(real: Real, elsewhere: Path) -> None:
    repo, link = real.repo, elsewhere / "link"
    (repo / "sub").mkdir()
    (repo / "sub" / "keep.txt").write_text("x")
    real.commit("b.txt", "1")
    link.symlink_to(repo / "sub")
    script = 'cd "$1" && shift && exec "$@"'  # so that PWD is the link, as in a shell of the user's

    def through(*argv: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return real.run("sh", "-c", script, "sh", link, *argv, stdin=stdin)

    done = through(SETUP, PLAN, "--session-id", SESSION, "--reviewer", "evidence-only")
    assert done.returncode == 0 and f"Worktree: {repo}\n" in done.stdout, done.stderr
    assert json.loads(real.entry.read_text())["worktree"] == str(repo)
    real.work(0)
    payload = json.dumps({**json.loads(real.payload()), "cwd": str(link)})
    done = through(HOOK, stdin=payload)
    assert json.loads(done.stdout)["decision"] == "block" and real.at == ("BUILD", 1)
    assert json.loads(through(RLCR, "status").stdout)["round"] == 1
    real.work(1)
    done = through(GATE, "--session-id", SESSION)
    assert done.returncode == 10 and real.at == ("BUILD", 2)
    # A registry entry that somebody removed is told here as well, although no parent of the link holds a loop.
    real.entry.unlink()
    assert "the registry does not know this session" in through(HOOK, stdin=payload).stdout


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("options", ["", "set -eu; "])
def test_the_shell_function_hands_on_to_the_commands(looped: Real, name: str, options: str) -> None:
    skills = looped.home / ".codex" / "skills"
    skills.mkdir(parents=True)
    (skills / "humanize").symlink_to(ROOT)
    line = 'source "${HUMANIZE_RUNTIME_ROOT:-${CODEX_HOME:-$HOME/.codex}/skills/humanize}/scripts/humanize.sh"; '

    def go(rest: str) -> subprocess.CompletedProcess[str]:
        bare = ["-f"] if name == "zsh" else ["--norc", "--noprofile"]
        return looped.run(shutil.which(name) or name, *bare, "-c", options + line + rest)

    done = go("humanize rlcr status")
    assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["phase"] == "BUILD"
    assert go("humanize rlcr").returncode == 2
    done = go('humanize rlcr stop --why "two  words" && echo went on')
    assert (done.returncode, done.stdout) == (0, f"STOPPED\n{looped.loop}\nwent on\n")
    assert go("humanize rlcr status || echo went on").stdout.endswith("went on\n"), "1 reaches the caller"
    assert 'exit_reason: "user: two words"' in (looped.loop / "stop-state.md").read_text()
    assert "humanize rlcr COMMAND" in go("humanize --help").stdout


def test_the_hook_under_its_older_name(worked: Real, elsewhere: Path) -> None:
    assert os.access(OLD_HOOK, os.X_OK)
    (elsewhere / "with blank").mkdir()
    (elsewhere / "with blank" / "hook").symlink_to(OLD_HOOK)
    (elsewhere / "tree").symlink_to(ROOT)
    for n, path in enumerate((elsewhere / "with blank" / "hook", elsewhere / "tree" / "hooks" / OLD_HOOK.name)):
        done = worked.run(path, stdin=worked.payload(f"m{n}"))
        assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["decision"] == "block"
        worked.work(n + 1)
    assert worked.at == ("BUILD", 2)
    shutil.copy(OLD_HOOK, elsewhere / "alone.sh")
    done = worked.run(elsewhere / "alone.sh", stdin=worked.payload())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
