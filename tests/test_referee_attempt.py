"""The attempt transaction: what is recorded, committed and selected, whatever the verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers import ledger, proc
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Died, Event, Raw
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.referee import ledgers, selecting, workspace
from tests.referee_sim import TASK, VARIANTS, attempt, clock, quiet, write_variant


class Recording:
    """A lab that remembers the jobs it was given and answers them with one lab after another."""

    def __init__(self, *labs: FakeLab) -> None:
        self.labs = list(labs)
        self.jobs: list[Job] = []

    def run(self, job: Job, workdir: Path) -> Raw:
        self.jobs.append(job)
        lab = self.labs.pop(0) if len(self.labs) > 1 else self.labs[0]
        return lab.run(job, workdir)


def rows(repo: Path) -> tuple[ledger.Row, ...]:
    log = workspace.open_repo(repo)
    assert log.faults == ()
    return log.rows


def current(repo: Path) -> str:
    return (repo / "src" / TASK / "current").read_text().strip()


def test_a_faster_candidate_is_confirmed_selected_and_committed(repo: Path) -> None:
    """Breaks when a gain is recorded without a second run, or the evidence is left uncommitted."""
    lab = Recording(FakeLab(speedup=1.5))
    row = attempt(repo, lab).row
    assert (row.version, row.verdict, row.status) == ("v001_fused", "IMPROVED", "selected")
    assert [j.phases for j in lab.jobs] == [("verify", "time"), ("verify", "time")]
    assert row.confirmed_by == row.runs[-1]
    assert row.gain is not None and row.gain.ci_low <= 1.5 <= row.gain.ci_high
    assert row.vs_baseline == row.gain
    assert current(repo) == "fused"
    assert proc.dirty(repo) == []
    subjects = proc.git_out(repo, "log", "-2", "--format=%s").splitlines()
    assert subjects == [f"v001 IMPROVED +{(row.gain.speedup - 1) * 100:.1f} %", "v001 try: fewer temporaries"]
    assert proc.tree(repo, row.commit, f"{VARIANTS}/fused") == row.tree
    assert ledgers.check(repo) == []


def test_a_gain_that_does_not_come_back_is_ambiguous(repo: Path) -> None:
    """Breaks when the first run's luck is recorded: the ledger's number must be the confirmation's."""
    row = attempt(repo, Recording(FakeLab(speedup=1.2), FakeLab(speedup=1.0))).row
    assert row.verdict == "AMBIGUOUS" and row.reason.startswith("confirm.failed: ")
    assert row.gain is not None and abs(row.gain.speedup - 1.0) < 0.05
    assert row.status == "rejected" and current(repo) == "baseline"


def test_a_wrong_candidate_is_recorded_without_a_speed(repo: Path) -> None:
    """Breaks when a wrong kernel gets a speed-up, or no row."""
    row = attempt(repo, FakeLab(speedup=3.0, wrong="tail")).row
    assert row.verdict == "WRONG" and row.gain is None and row.vs_baseline is None
    assert current(repo) == "baseline"
    assert "v001_fused" in (repo / "artifacts/attempt-ledger.md").read_text()
    assert "v001_fused" not in (repo / "artifacts/optimization-ledger.md").read_text()


def test_an_identical_program_is_the_same_without_timing(repo: Path) -> None:
    """Breaks when a rebuilt program is timed and wins by luck."""
    lab = Recording(FakeLab(speedup=1.5, binary="same"))
    row = attempt(repo, lab).row
    assert row.verdict == "SAME" and row.reason.startswith("identical.binary: ")
    assert len(lab.jobs) == 1 and lab.jobs[0].stop_if_identical
    assert ledgers.check(repo) == []


def test_events_decide_whatever_the_numbers_say(repo: Path) -> None:
    """Breaks when a cheat that is correct and fast passes."""
    event = Event(arm="B", kind="cheat.thread", detail="one thread ran on after the reply")
    row = attempt(repo, FakeLab(speedup=2.0, events=[event])).row
    assert row.verdict == "WRONG" and row.reason.startswith("cheat.thread: ")


def test_a_dead_candidate_is_broken_and_may_be_attempted_again_only_by_changing_it(repo: Path) -> None:
    """Breaks when a crash raises out of the command, or is measured for ever."""
    died = Died(arm="B", stage="call", signal="SIGSEGV")
    assert attempt(repo, FakeLab(died=died)).row.verdict == "BROKEN"
    again = attempt(repo, FakeLab(speedup=2.0))
    assert again.outcome is None and again.row.verdict == "BROKEN"


def test_the_fault_of_another_arm_says_nothing_about_the_candidate(repo: Path) -> None:
    """Breaks when the oracle's crash is remembered as the candidate's verdict: the tree must be attemptable."""
    first = attempt(repo, FakeLab(died=Died(arm="", stage="oracle", log="reference.py raised"))).row
    assert first.verdict == "BROKEN"
    assert attempt(repo, FakeLab(speedup=1.5)).row.verdict == "IMPROVED"


def test_the_same_tree_is_not_measured_twice(repo: Path) -> None:
    """Breaks when repeating a command buys a second draw from the noise."""
    attempt(repo, FakeLab(speedup=1.0))
    lab = Recording(FakeLab(speedup=1.5))
    again = attempt(repo, lab)
    assert again.outcome is None and lab.jobs == [] and len(rows(repo)) == 2
    recheck = attempt(repo, lab, again=True).row
    assert recheck.kind == "recheck" and recheck.status == "rejected" and len(rows(repo)) == 3
    assert current(repo) == "baseline"


def test_the_second_gain_is_measured_against_the_baseline_directly(repo: Path) -> None:
    """Breaks when the gain over the baseline is chained from two comparisons."""
    attempt(repo, FakeLab(speedup=1.5))
    write_variant(repo, "wide", "def entry(**tensors):\n    return None\n")
    lab = Recording(FakeLab(speedup=1.2), FakeLab(speedup=1.2), FakeLab(speedup=1.7))
    row = attempt(repo, lab, "wide").row
    assert row.incumbent == "v001_fused" and row.parent == "v001_fused"
    assert row.gain is not None and abs(row.gain.speedup - 1.2) < 0.05
    assert row.vs_baseline is not None and abs(row.vs_baseline.speedup - 1.7) < 0.05
    assert [a.is_baseline for a in lab.jobs[2].arms] == [True, False]
    assert [a.name for a in lab.jobs[0].arms] == ["A", "B", "Z"]
    assert ledgers.check(repo) == []


def test_what_is_judged_is_what_stood_there_when_the_command_was_given(repo: Path) -> None:
    """Breaks when an edit made while measuring slips into the commit or into the build."""
    path = repo / VARIANTS / "fused" / "candidate.py"
    before = path.read_text()
    seen: list[str] = []

    class Editing(FakeLab):
        def run(self, job: Job, workdir: Path) -> Raw:
            path.write_text("def entry(**tensors):\n    raise SystemExit\n")
            seen.append((workdir / "arms/B/candidate.py").read_text())
            return super().run(job, workdir)

    row = attempt(repo, Editing(speedup=1.5)).row
    assert set(seen) == {before}
    assert proc.git_out(repo, "show", f"{row.commit}:{VARIANTS}/fused/candidate.py") == before.strip()
    assert proc.dirty(repo) == [f"{VARIANTS}/fused/candidate.py"]


def test_a_changed_locked_file_refuses_the_attempt(repo: Path) -> None:
    """Breaks when the ruler can be edited between lock and attempt."""
    for name in ("reference.py", "contract.toml", "workloads/cases.jsonl", "baseline/candidate.py"):
        text = (repo / name).read_text()
        (repo / name).write_text(text + "\n")
        with pytest.raises(Refused, match=name):
            attempt(repo, FakeLab())
        (repo / name).write_text(text)
    assert attempt(repo, FakeLab()).row.verdict is not None


def test_a_hand_edited_ledger_is_neither_kept_nor_dropped(repo: Path) -> None:
    """Breaks when an attempt renders over somebody's edit without a word."""
    path = repo / "artifacts/attempt-ledger.md"
    path.write_text(path.read_text() + "| mine |\n")
    with pytest.raises(Refused, match=r"attempt-ledger\.md"):
        attempt(repo, FakeLab())
    changed, _ = ledgers.render(repo, clock)
    assert changed == ["artifacts/attempt-ledger.md"]
    assert (repo / ".kernelpilot/edited/attempt-ledger.md.1").read_text().endswith("| mine |\n")
    assert attempt(repo, FakeLab()).row.version == "v001_fused"


@pytest.mark.parametrize("row", [1, -1])
def test_an_edited_lineage_refuses_every_writing_command(repo: Path, row: int) -> None:
    """Breaks when a row can be improved by hand, the last one (which no later hash covers) included."""
    attempt(repo, FakeLab(speedup=1.0))
    path = repo / ledger.LINEAGE_PATH
    lines = path.read_text().splitlines()
    lines[row] = lines[row].replace('"rejected"', '"selected"').replace('"baseline"', '"basement"')
    path.write_text("\n".join(lines) + "\n")
    assert ledgers.check(repo) != []
    write_variant(repo, "other", "def entry(**tensors):\n    return 1\n")
    with pytest.raises(BadRecord):
        attempt(repo, FakeLab(), "other")


def test_a_cut_tail_is_noticed_even_when_committed(repo: Path) -> None:
    """Breaks when the last rows can be deleted: what is left is a valid hash chain."""
    attempt(repo, FakeLab(speedup=1.0))
    path = repo / ledger.LINEAGE_PATH
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    assert any("cut" in f.what for f in ledgers.check(repo))
    proc.commit(repo, "tidy", ["artifacts"])
    assert any("cut" in f.what for f in ledgers.check(repo))


def test_no_commit_refuses_a_dirty_variant(repo: Path) -> None:
    """Breaks when --no-commit commits."""
    with pytest.raises(Refused, match="uncommitted"):
        attempt(repo, FakeLab(), no_commit=True)
    proc.commit(repo, "mine", [VARIANTS])
    assert attempt(repo, FakeLab(speedup=1.5), no_commit=True).row.verdict == "IMPROVED"


def test_the_screen_tier_never_improves(repo: Path) -> None:
    """Breaks when two pairs are enough for a win."""
    row = attempt(repo, FakeLab(speedup=1.5), tier="screen").row
    assert row.verdict == "AMBIGUOUS" and row.status == "rejected"


def test_select_brings_a_version_back(repo: Path) -> None:
    """Breaks when a rejected edit cannot be undone, or the undo leaves no trace."""
    attempt(repo, FakeLab(speedup=1.5))
    path = write_variant(repo, "fused", "def entry(**tensors):\n    return 2\n")
    attempt(repo, FakeLab(speedup=0.5))
    decision = selecting.select(repo, "v001_fused", why="the edit was slower", clock=clock)
    assert (decision.kind == "decision" and rows(repo)[-1] == decision) or rows(repo)[-1].kind == "decision"
    assert "pass" in path.read_text() and proc.dirty(repo) == []
    assert workspace.open_repo(repo).best().version == "v001_fused"
    selecting.select(repo, "v000_baseline", why="start over", clock=clock)
    assert workspace.open_repo(repo).best().version == "v000_baseline" and current(repo) == "baseline"
    assert ledgers.check(repo) == []


def test_select_refuses_a_wrong_version_and_unsaved_work(repo: Path) -> None:
    """Breaks when a wrong kernel becomes current, or an edit is lost."""
    attempt(repo, FakeLab(wrong="all"))
    with pytest.raises(Refused, match="WRONG"):
        selecting.select(repo, "v001_fused", why="", clock=clock)
    write_variant(repo, "fused", "def entry(**tensors):\n    return 2\n")
    attempt(repo, FakeLab(speedup=1.5))
    write_variant(repo, "fused", "def entry(**tensors):\n    return 3\n")
    with pytest.raises(Refused, match="uncommitted"):
        selecting.select(repo, "v002_fused", why="", clock=clock)


def test_two_attempts_at_once_leave_two_rows(repo: Path) -> None:
    """Breaks when two commands take one version, or one loses its row."""
    write_variant(repo, "wide", "def entry(**tensors):\n    return None\n")
    argv = [sys.executable, "-m", "tests.referee_sim", str(repo)]
    root = Path(__file__).resolve().parents[1]
    running = [
        subprocess.Popen([*argv, name, "1.5"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in ("fused", "wide")
    ]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    found = [r for r in rows(repo) if r.kind == "attempt"]
    assert sorted(r.variant for r in found) == ["fused", "wide"]
    assert sorted(r.version.split("_")[0] for r in found) == ["v001", "v002"]
    assert proc.dirty(repo) == [] and ledgers.check(repo) == []
    quiet("")
