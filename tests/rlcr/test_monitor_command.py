"""The monitor as people start it: the shell line, the script, a terminal and a pipe."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlcr import monitor
from tests.rlcr import sim
from tests.rlcr.loop_bench import LOOP, project_in, with_loop

HUMANIZE = Path(monitor.__file__).resolve().parents[1]
SCRIPT = HUMANIZE / "scripts" / "humanize.sh"
ZSH = shutil.which("zsh")
SHELLS = [
    "bash",
    pytest.param("zsh", marks=pytest.mark.skipif(ZSH is None, reason="zsh is not installed")),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_in(tmp_path)


def shell(command: str, *, cwd: Path, name: str = "bash", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [name, *(["-f"] if name == "zsh" else ["--norc", "--noprofile"]), "-c", command],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", SHELLS)
def test_the_line_people_know_works_through_the_link_from_any_folder(project: Path, tmp_path: Path, name: str) -> None:
    """Breaks when the documented line fails: sourced through the skills link, from below the repository's top."""
    with_loop(project)
    skills = tmp_path / "codex home" / "skills"
    skills.mkdir(parents=True)
    (skills / "humanize").symlink_to(HUMANIZE)
    below = project / "x" / "y"
    below.mkdir(parents=True)
    line = (
        'source "${HUMANIZE_RUNTIME_ROOT:-${CODEX_HOME:-$HOME/.codex}/skills/humanize}/scripts/humanize.sh"; '
        "humanize monitor rlcr --once"
    )
    done = shell(line, cwd=below, name=name, CODEX_HOME=str(skills.parent))
    assert (done.returncode, done.stderr) == (0, "")
    assert LOOP in done.stdout and "0 of 84" in done.stdout
    done = shell(line, cwd=below, name=name, HUMANIZE_RUNTIME_ROOT=str(HUMANIZE))
    assert done.returncode == 0 and LOOP in done.stdout


@pytest.mark.parametrize("name", SHELLS)
def test_sourcing_leaves_no_variable_no_option_and_no_folder_behind(project: Path, name: str) -> None:
    """Breaks when a user's shell is changed: also under errexit, nounset and noclobber, and from a relative path."""
    with_loop(project)
    link = project / ".humanize" / "linked.sh"
    link.symlink_to(SCRIPT)
    facts = "{ set | cut -d= -f1 | grep -v '[^A-Za-z0-9_]'; set -o; pwd; }"
    quiet = (
        "BASH_ARGC|BASH_ARGV|BASH_LINENO|BASH_SOURCE|FUNCNAME|PIPESTATUS|LINENO|_|_humanize_.*|humanize|RANDOM|SECONDS"
    )
    command = (
        "set -euC; CDPATH=/tmp:/\n"
        f"a=$({facts} | grep -vxE '{quiet}' | sort)\n"
        "source .humanize/linked.sh\n"
        f"b=$({facts} | grep -vxE '{quiet}|a' | sort)\n"
        '[ "$a" = "$b" ] || { printf "%s\\n--\\n%s\\n" "$a" "$b"; exit 9; }\n'
        "[ -z \"$(set | grep '^_humanize_place=')\" ]\n"
        "cd x\nhumanize monitor rlcr --once\n"
    )
    (project / "x").mkdir()
    done = shell(command, cwd=project, name=name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert LOOP in done.stdout


def test_it_runs_directly_too_and_anything_else_is_usage(project: Path) -> None:
    """Breaks when a typo is taken for a command, or a usage error looks like success."""
    with_loop(project)
    done = subprocess.run(
        [SCRIPT, "monitor", "rlcr", "--once"], cwd=project, capture_output=True, text=True, check=True
    )
    assert LOOP in done.stdout
    for words in (
        [],
        ["monitor"],
        ["monitor", "web"],
        ["monitor", "rlcr", "--bad"],
        ["monitor", "rlcr", "x"],
    ):
        done = subprocess.run([SCRIPT, *words], cwd=project, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert "usage: humanize monitor rlcr" in done.stderr


def test_the_recorded_interpreter_is_used_and_an_unusable_one_is_not(project: Path, tmp_path: Path) -> None:
    """Breaks when the monitor runs on whatever python a client's PATH has, or dies with the one that was recorded."""
    with_loop(project)
    state = tmp_path / "state" / "humanize"
    state.mkdir(parents=True)
    marked = tmp_path / "python-marked"
    marked.write_text(f'#!/bin/sh\n: >"{tmp_path}/used"\nexec "{sys.executable}" "$@"\n')
    marked.chmod(0o755)
    for recorded, used in ((marked, True), (tmp_path / "no such python", False)):
        (tmp_path / "used").unlink(missing_ok=True)
        (state / "python").write_text(f"{recorded}\n")
        done = subprocess.run(
            [SCRIPT, "monitor", "rlcr", "--once"],
            cwd=project,
            env={**os.environ, "XDG_STATE_HOME": str(state.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 and LOOP in done.stdout
        assert (tmp_path / "used").exists() is used


def command(*argv: str) -> list[str]:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from rlcr.monitor import main; sys.exit(main(sys.argv[2:]))"
    return [sys.executable, "-I", "-c", code, str(HUMANIZE), *argv]


def test_without_a_loop_it_names_the_command_that_starts_one(project: Path, tmp_path: Path) -> None:
    """Breaks when the newcomer is left without a next step, or --json changes its keys."""
    done = subprocess.run(command("--once"), cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "scripts/setup-rlcr-loop.sh" in done.stderr
    empty = subprocess.run(command("--json"), cwd=project, capture_output=True, text=True, check=False)
    with_loop(project)
    full = subprocess.run(command("--json"), cwd=project, capture_output=True, text=True, check=False)
    assert (empty.returncode, full.returncode) == (1, 0)
    assert set(json.loads(empty.stdout)) == set(json.loads(full.stdout)) == set(monitor._KEYS)
    outside = subprocess.run(command("--once"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (outside.returncode, outside.stderr.count("\n")) == (1, 1)


def test_watching_without_a_terminal_prints_changes_only_and_ctrl_c_is_quiet(project: Path) -> None:
    """Breaks when a pipe fills with copies, a change is missed, or Ctrl-C ends in a traceback or a failure."""
    _, tape = with_loop(project)
    child = subprocess.Popen(command(), cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline().split() == ["Session", LOOP]
    time.sleep(monitor.EVERY_S + 1)
    tape.put(sim.stop(tape.state, 2, verdict=sim.opinion()))
    for line in child.stdout:
        if line.startswith("Round") and "1 of 84" in line:
            break
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, "")
    assert out.count("Session") == 0


def test_watching_a_terminal_redraws(project: Path) -> None:
    """Breaks when frames pile up on a terminal instead of replacing each other."""
    with_loop(project)
    ours, theirs = pty.openpty()
    child = subprocess.Popen(command(), cwd=project, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while seen.count(b"\x1b[2J") < 2:
        seen += os.read(ours, 65536)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 0
    os.close(ours)
    assert seen.startswith(b"\x1b[H\x1b[2JSession")


def test_it_reads_only(project: Path) -> None:
    """Breaks when looking at a loop changes a byte of it."""
    loop, _ = with_loop(project)
    journal = loop / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-5])

    def prints() -> dict[str, str]:
        files = [p for p in project.rglob("*") if p.is_file()]
        return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() + str(p.stat().st_mtime_ns) for p in files}

    before = prints()
    subprocess.run(command("--once"), cwd=project, capture_output=True, check=True)
    assert prints() == before
