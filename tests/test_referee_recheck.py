"""``attempt --again`` of the selected version, and the locks and selections that are refused up front."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelpilot_helpers import scaffold
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.referee import attempt as attempts
from kernelpilot_helpers.referee import importing, ledgers, locking, portable, seals, selecting, workspace
from tests.referee_sim import attempt, clock, quiet, write_variant


class Watching(FakeLab):
    """A lab that must not be asked."""

    def run(self, job: Job, workdir: Path) -> Raw:
        """Fails."""
        raise AssertionError(f"a job was run: {job.phases}")


def test_the_selected_tree_is_timed_against_the_baseline_again(repo: Path) -> None:
    """Breaks when measuring the winner once more times it against itself: SAME, and nothing was measured."""
    first = attempt(repo, FakeLab(speedup=1.5)).row
    lab = FakeLab(speedup=1.4)
    row = attempt(repo, lab, again=True).row
    assert (row.kind, row.verdict, row.status) == ("recheck", "IMPROVED", "rejected")
    assert (row.incumbent, row.parent, row.tree) == ("v000_baseline", first.version, first.tree)
    assert row.gain is not None and abs(row.gain.speedup - 1.4) < 0.05 and row.vs_baseline == row.gain
    assert row.confirmed_by == row.runs[-1]
    assert [[arm.name for arm in job.arms] for job in lab.jobs] == [["A", "B"]] * 2
    assert all(job.arms[0].is_baseline for job in lab.jobs)
    ws = workspace.open_repo(repo)
    assert ws.best().version == first.version, "a recheck selects nothing"
    assert seals.rejudged(ws, row) == [] and ledgers.check(repo) == []


def test_a_recheck_that_fails_is_recorded_beside_the_first_verdict(repo: Path) -> None:
    """Breaks when a later, worse look at the winner is lost or turned into SAME."""
    attempt(repo, FakeLab(speedup=1.5))
    assert attempt(repo, FakeLab(speedup=0.5), again=True).row.verdict == "REGRESSED"
    assert attempt(repo, FakeLab(wrong="tail"), again=True).row.verdict == "WRONG"
    assert ledgers.check(repo) == []


def test_another_tree_is_timed_against_the_incumbent_still(repo: Path) -> None:
    """Breaks when any --again goes back to the baseline: a rejected tree would then look like a gain."""
    attempt(repo, FakeLab(speedup=1.5))
    write_variant(repo, "wide", "def entry(**tensors):\n    return None\n")
    attempt(repo, FakeLab(speedup=0.9), "wide")
    row = attempt(repo, FakeLab(speedup=0.9), "wide", again=True).row
    assert (row.kind, row.incumbent, row.verdict) == ("recheck", "v001_fused", "REGRESSED")


def test_a_bundle_of_the_selected_tree_is_a_recheck_against_the_baseline_too(repo: Path, tmp_path: Path) -> None:
    """Breaks when the machine that measured decides what a recheck is compared with."""
    motivation = attempt(repo, FakeLab(speedup=1.5)).row.motivation
    request = attempts.Request(variant="fused", motivation=motivation, again=True)
    out = portable.export(repo, request, tmp_path / "out", clock=clock).path
    seeds = iter(range(9))

    class Elsewhere:
        def run(self, job: Job, workdir: Path) -> Raw:
            return FakeLab(speedup=1.5, seed=next(seeds)).run(job, workdir)

    portable.run_bundle(out, Elsewhere(), quiet)
    row = importing.import_bundle(repo, out, clock=clock).row
    assert (row.kind, row.incumbent, row.verdict) == ("recheck", "v000_baseline", "IMPROVED")
    assert ledgers.check(repo) == []


def test_select_names_a_version_that_can_be_selected(repo: Path) -> None:
    """Breaks when the remedy of a refused selection is a command that has nothing to do with it."""
    attempt(repo, FakeLab(wrong="all"))
    with pytest.raises(Refused) as caught:
        selecting.select(repo, "v001_fused", why="", clock=clock)
    assert caught.value.fix == "kernelpilot select v000_baseline"
    write_variant(repo, "fused", "def entry(**tensors):\n    return 2\n")
    attempt(repo, FakeLab(speedup=1.5))
    with pytest.raises(Refused) as caught:
        selecting.select(repo, "v001_fused", why="", clock=clock)
    assert caught.value.fix == "kernelpilot select v002_fused"
    assert selecting.select(repo, "v002_fused", why="", clock=clock).version == "v002_fused"


def test_a_run_without_a_row_is_mended_by_the_command_that_is_named(repo: Path) -> None:
    """Breaks when the remedy of an interrupted attempt does not run as it is printed."""
    orphan = repo / "artifacts/runs/v001_fused.1"
    orphan.mkdir()
    found = [f for f in ledgers.check(repo) if f.where.endswith("v001_fused.1")]
    assert [f.fix.partition("  #")[0] for f in found] == ["kernelpilot ledger render"]
    _, notes = ledgers.render(repo, clock)
    assert len(notes) == 1 and not orphan.exists() and ledgers.check(repo) == []


def test_a_stub_is_named_before_any_job(tmp_path: Path) -> None:
    """Breaks when an unwritten reference is told as a traceback and three lacks of the audit."""
    request = scaffold.parse_request(
        b'task = {name = "q", op = "other"}\ntarget = {gpu = "cpu"}\naxes = {N = {var = [1, 64]}}\n'
        b'tensors.x = {role = "in", dtype = "float32", shape = ["N"]}\n'
        b'tensors.out = {role = "out", dtype = "float32", shape = ["N"]}\n'
        b'[policy]\nlanguage = "cuda"\n[[cases]]\ncase_id = "n64"\naxes = {N = 64}\n',
        at=str(tmp_path / "req.toml"),
    )
    repo = scaffold.make(request, tmp_path / "r", kernelpilot=Path(sys.executable)).path
    for path, fix in (
        ("reference.py", "write reference.py and baseline/candidate.py"),
        ("baseline/candidate.py", "write baseline/candidate.py"),
    ):
        with pytest.raises(Refused) as caught:
            locking.lock(repo, amend=False, why="", lab=Watching(), clock=clock, say=quiet)
        assert caught.value.what.startswith(f"{path} is still a stub: ") and caught.value.fix == fix
        text = (repo / path).read_text()
        (repo / path).write_text(text.replace("raise NotImplementedError", "pass  # NotImplementedError"))
    done = locking.lock(repo, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    assert [note.partition(":")[0] for note in done.advice] == ['policy.language = "cuda" with target.gpu = "cpu"']
