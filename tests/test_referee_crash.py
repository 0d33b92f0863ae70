"""kill -9 at every crash point of ``attempt`` and ``lock``: the next command finishes or reports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers import ledger, proc
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.referee import ledgers, locking, workspace
from tests.referee_sim import TASK, attempt, clock, locked_repo, quiet

ROOT = Path(__file__).resolve().parents[1]
STEPS = (
    "attempt.locked",
    "attempt.committed",
    "attempt.intent",
    "attempt.measured",
    "attempt.raw",
    "attempt.verify",
    "attempt.bench",
    "append.torn",
    "append.done",
    "attempt.row",
    "attempt.current",
    "attempt.views",
    "attempt.evidence",
    "save.tmp",
)
NOTHING_TO_MEND = ("attempt.locked", "attempt.committed", "attempt.evidence")


def killed(repo: Path, step: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.referee_sim", str(repo), "fused", "1.5"],
        cwd=ROOT, env={**os.environ, "KP_CRASH_AT": step}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -9, (step, done.returncode, done.stderr)
    return done.stdout


@pytest.mark.parametrize("step", STEPS)
def test_the_next_command_finishes_or_reports(repo: Path, step: str) -> None:
    """Breaks when a killed attempt loses a row that was there, leaves half a file, or blocks the next command."""
    out = killed(repo, step)
    before = len(workspace.open_repo(repo).rows)
    recorded = attempt(repo, FakeLab(speedup=1.5))
    ws = workspace.open_repo(repo)
    assert ws.faults == ()
    assert ledgers.check(repo) == []
    assert proc.dirty(repo) == []
    assert len(ws.rows) >= before
    mine = [r for r in ws.rows if r.variant == "fused"]
    assert any(r.verdict == "IMPROVED" for r in mine), [(r.version, r.verdict, r.reason) for r in mine]
    assert out == "" or mine[0].version in out
    interrupted = [r for r in mine if r.verdict == "BROKEN"]
    assert all(r.reason.startswith("interrupted: ") for r in interrupted)
    if step not in NOTHING_TO_MEND:
        assert interrupted or recorded.notes, "a killed attempt left no trace"
    assert (repo / "src" / TASK / "current").read_text() == "fused\n"


def test_every_crash_point_in_the_code_is_tested() -> None:
    """Breaks when a new crash point of the attempt is added without a case above."""
    found: set[str] = set()
    for path in (ROOT / "lib" / "kernelpilot_helpers").rglob("*.py"):
        found |= set(re.findall(r'crash_point\("([a-z.]+)"\)', path.read_text()))
    others = {"lock.saved", "derived.row", "derived.file", "derived.files"}  # test_referee_tuning.py has the last
    others |= {f"profile.{at}" for at in ("captured", "drafted", "aside", "placed")}  # test_profile.py
    assert found - set(STEPS) - others == set()


@pytest.mark.parametrize("step", ["lock.saved", "attempt.intent", "attempt.raw", "append.torn", "attempt.views"])
def test_a_killed_lock_can_be_locked(tmp_path: Path, step: str) -> None:
    """Breaks when a killed lock leaves a repo that neither locks nor attempts."""
    repo = tmp_path / "repo"
    code = (
        "import sys; from pathlib import Path; from tests.referee_sim import locked_repo; "
        "locked_repo(Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(repo)], cwd=ROOT, env={**os.environ, "KP_CRASH_AT": step},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr
    locking.lock(repo, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    ws = workspace.open_repo(repo)
    assert [r.version for r in ws.rows] == [ledger.BASELINE]
    assert proc.dirty(repo) == [] and ledgers.check(repo) == []


def test_a_second_lock_changes_nothing(tmp_path: Path) -> None:
    """Breaks when locking again writes a second baseline row."""
    locked_repo(tmp_path / "repo")
    head = proc.head(tmp_path / "repo")
    again = locking.lock(tmp_path / "repo", amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    assert again.audit is None and proc.head(tmp_path / "repo") == head
