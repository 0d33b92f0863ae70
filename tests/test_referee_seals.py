"""Rows against the files they rest on: what a hostile or clumsy hand changes is reported, and never committed by us."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import ledger, proc, records
from kernelpilot_helpers.attempt import sane
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import BadRecord, KernelPilotError, Refused
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.referee import decide, ledgers, locking, recover, runs, selecting, workspace
from tests.referee_sim import TASK, VARIANTS, WithControls, attempt, clock, quiet, write_variant


@pytest.fixture
def judged(repo: Path) -> Path:
    """A repo with one confirmed improvement."""
    assert attempt(repo, FakeLab(speedup=1.5)).row.verdict == "IMPROVED"
    assert ledgers.check(repo) == []
    return repo


@pytest.mark.parametrize("name", ["intent.json", "job.json", "raw.json", "verify.json", "bench.json"])
@pytest.mark.parametrize("how", ["edit", "delete"])
def test_an_edited_or_deleted_run_file_is_reported(judged: Path, name: str, how: str) -> None:
    """Breaks when evidence can be gutted, or a figure laundered into the ledgers by way of bench.json."""
    path = judged / "artifacts/runs/v001_fused.2" / name
    path.unlink() if how == "delete" else path.write_bytes(path.read_bytes() + b" ")
    assert any("v001_fused.2" in f.where for f in ledgers.check(judged))


def test_a_forged_row_is_neither_finished_nor_believed(judged: Path) -> None:
    """Breaks when a row with a right hash chain, but another's runs, is committed by the next command."""
    path = judged / ledger.LINEAGE_PATH
    row = workspace.open_repo(judged).rows[-1]
    shutil.copytree(judged / "artifacts/runs/v001_fused.2", judged / "artifacts/runs/v002_forged.1")
    best = msgspec.structs.replace(row, version="v002_forged", runs=("v002_forged.1",), confirmed_by="v002_forged.1")
    records.append(path, best, ledger.LINEAGE, chained=True)
    head = proc.head(judged)
    with pytest.raises(BadRecord, match="v002_forged"):
        ledgers.render(judged, clock)
    assert proc.head(judged) == head
    assert any("v002_forged" in f.where + f.what for f in ledgers.check(judged))


def test_a_verdict_is_judged_again_from_its_raws(judged: Path) -> None:
    """Breaks when a row may say more than its own runs do."""
    ws = workspace.open_repo(judged)
    assert ws.rows[-1].gain is not None
    gain = msgspec.structs.replace(ws.rows[-1].gain, speedup=9.0)
    lines = (judged / ledger.LINEAGE_PATH).read_bytes().splitlines()
    better = msgspec.structs.replace(ws.rows[-1], gain=gain)
    lines[-1] = records.encode(better)
    (judged / ledger.LINEAGE_PATH).write_bytes(b"\n".join(lines) + b"\n")
    proc.commit(judged, "better", ["artifacts"])
    assert any("its runs say" in f.what for f in ledgers.check(judged))


@pytest.mark.parametrize("reason", ["imported: x", "evidence.fine: x"])
def test_words_in_a_reason_do_not_excuse_a_figure(judged: Path, reason: str) -> None:
    """Breaks when a forged row is believed because it says that its runs cannot be judged."""
    lines = (judged / ledger.LINEAGE_PATH).read_bytes().splitlines()
    row = workspace.open_repo(judged).rows[-1]
    assert row.gain is not None
    wide = msgspec.structs.replace(row.gain, speedup=9.0, ci_high=10.0)
    lines[-1] = records.encode(msgspec.structs.replace(row, gain=wide, vs_baseline=wide, reason=reason))
    (judged / ledger.LINEAGE_PATH).write_bytes(b"\n".join(lines) + b"\n")
    assert any(f.where == row.version and "its runs say" in f.what for f in ledgers.check(judged))


def test_the_lock_cannot_be_edited_together_with_what_it_locks(judged: Path) -> None:
    """Breaks when W is narrowed and its new hash written into the lock by hand."""
    cases = judged / "workloads/cases.jsonl"
    cases.write_text("".join(cases.read_text().splitlines(keepends=True)[:2]))
    lock = judged / workspace.LOCK
    doc = json.loads(lock.read_text())
    doc["files"]["workloads/cases.jsonl"] = records.file_sha256(cases)
    lock.write_text(json.dumps(doc))
    assert any(f.where == workspace.LOCK for f in ledgers.check(judged))
    with pytest.raises(Refused, match=r"contract\.lock\.json"):
        attempt(judged, FakeLab(), "fused", again=True)


def test_a_changed_locked_file_is_a_finding_of_the_check(judged: Path) -> None:
    """Breaks when only measuring commands notice."""
    (judged / "reference.py").write_text("# \r\n" + (judged / "reference.py").read_text())
    assert any(f.where == "reference.py" for f in ledgers.check(judged))


def test_a_failed_lock_commits_nothing(repo: Path) -> None:
    """Breaks when a contract that the audit refused becomes HEAD, so that git checkout brings the broken one back."""
    text = (repo / "reference.py").read_text()
    (repo / "reference.py").write_text(text + "\n# changed\n")
    head = proc.head(repo)

    class Deaf(FakeLab):
        """Every mutant passes."""

        def run(self, job, workdir):  # type: ignore[no-untyped-def]
            raw = super().run(job, workdir)
            blind = tuple(msgspec.structs.replace(m, kind="must_pass") for m in raw.mutants)
            raw = msgspec.structs.replace(raw, mutants=blind)
            (workdir / "raw.json").write_bytes(records.encode(raw))
            return raw

    with pytest.raises(Refused):
        locking.lock(repo, amend=True, why="try", lab=WithControls(Deaf()), clock=clock, say=quiet)
    assert proc.head(repo) == head
    locking.lock(repo, amend=True, why="a comment", lab=FakeLab(), clock=clock, say=quiet)
    assert workspace.open_repo(repo).epoch == 2 and ledgers.check(repo) == []


def test_names_are_never_patterns(judged: Path) -> None:
    """Breaks when a folder called * reaches git as a pathspec and takes other variants out of history."""
    write_variant(judged, "*", "def entry(**tensors):\n    return 5\n")
    with pytest.raises(Refused, match="cannot be a variant"):
        attempt(judged, FakeLab(), "*")
    write_variant(judged, "f[u]sed", "def entry(**tensors):\n    return 6\n")
    tree = proc.snapshot(judged, f"{VARIANTS}/f[u]sed")
    proc.commit_tree(judged, f"{VARIANTS}/f[u]sed", tree, "odd")
    names = proc.git_out(judged, "ls-tree", "--name-only", f"HEAD:{VARIANTS}").split()
    assert "fused" in names and "f[u]sed" in names


def test_staged_work_of_the_user_is_not_swept_in(judged: Path) -> None:
    """Breaks when the evidence commit takes whatever lies below artifacts/."""
    (judged / "artifacts/mynote.txt").write_text("mine")
    subprocess.run(["git", "add", "artifacts/mynote.txt"], cwd=judged, check=True)
    selecting.select(judged, "v000_baseline", why="y", clock=clock)
    assert proc.tree(judged, "HEAD", "artifacts/mynote.txt") is None
    assert "A  artifacts/mynote.txt" in proc.git(judged, "status", "--porcelain").out


def test_what_git_cannot_commit_is_refused_before_measuring(repo: Path) -> None:
    """Breaks when a stale index.lock or a merge is noticed only after the row is there."""
    lock = repo / ".git/index.lock"
    lock.write_text("")
    with pytest.raises(KernelPilotError, match=r"index\.lock"):
        attempt(repo, FakeLab())
    lock.unlink()
    assert [r.kind for r in workspace.open_repo(repo).rows] == ["baseline"]


def test_a_failing_evidence_commit_says_that_the_row_is_there(judged: Path) -> None:
    """Breaks when the user is told of git's failure and not of the recorded row, and measures again."""
    row = workspace.open_repo(judged).rows[-1]
    (judged / "src" / TASK / "current").write_text("other\n")
    (judged / ".git/index.lock").write_text("")
    with pytest.raises(KernelPilotError, match="is recorded"):
        recover.finish(workspace.open_repo(judged), row)


def test_too_few_pairs_for_a_look_are_refused(repo: Path) -> None:
    """Breaks when --max-pairs 2 measures six."""
    with pytest.raises(Refused, match="max-pairs"):
        attempt(repo, FakeLab(), max_pairs=2)


def test_numbers_that_no_measurement_gives_decide_nothing(judged: Path) -> None:
    """Breaks when 10**400 nanoseconds or an infinite error reach the arithmetic."""
    raw = runs.load_raw(judged, "v001_fused.2")
    assert raw is not None and sane.problems([raw]) == []
    facts_runs = decide.Runs(main=_with_ns(raw, 10**400))
    from kernelpilot_helpers.referee import measure

    ws = workspace.open_repo(judged)
    intent = runs.load_intent(judged, "v001_fused.2")
    assert intent is not None
    outcome = decide.step(measure.facts_of(ws, intent), facts_runs)
    assert isinstance(outcome, decide.Outcome) and outcome.reason.startswith("evidence.garbled")
    for value in (0, -5):
        assert sane.problems([_with_ns(raw, value)]) != []


def _with_ns(raw: Raw, value: int) -> Raw:
    first, *rest = raw.samples
    bad = msgspec.structs.replace(first, ns=(value, *first.ns[1:]))
    return msgspec.structs.replace(raw, samples=(bad, *rest))
