"""In a repo where all is in order the gate passes; after any edit, deletion or cut it says where, and does not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kernelpilot_helpers import proc
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.gate import Report
from kernelpilot_helpers.referee import gating, measure, selecting, workspace
from tests.loop_sim import Loop
from tests.referee_sim import TASK, VARIANTS, attempt, clock, write_variant

LEDGERS = ("attempt-ledger.md", "optimization-ledger.md", "source-idea-ledger.md")
RUNS = {
    "v000_baseline.1": ("audit.json",),
    "v000_baseline.2": ("floor.json",),
    "v001_bad.1": ("verify.json",),
    "v002_fused.1": ("bench.json", "verify.json"),
    "v002_fused.2": ("bench.json", "verify.json"),
}
RUN_FILES = tuple(
    f"artifacts/runs/{run}/{name}"
    for run, own in RUNS.items()
    for name in ("intent.json", "job.json", "raw.json", *own)
)
ARTIFACTS = (
    *(f"artifacts/{name}" for name in LEDGERS),
    "artifacts/contract.lock.json",
    "artifacts/lineage.jsonl",
    "artifacts/profile-digests/README.md",
    "artifacts/research-digest.md",
    "artifacts/runs/.gitkeep",
    "artifacts/source-ideas.jsonl",
    *RUN_FILES,
)
LOCKED = (
    "baseline/candidate.py", "benchmarks/bench.py", "contract.toml", "reference.py", "tests/test_correctness.py",
    "workloads/cases.jsonl",
)  # fmt: skip
SELECTED = (f"src/{TASK}/current", f"{VARIANTS}/fused/candidate.py")
NOT_EVIDENCE = (
    ".gitignore", "README.md", "bindings/README.md", f"{VARIANTS}/.gitkeep", f"{VARIANTS}/bad/candidate.py",
)  # fmt: skip
"""Committed, and free to be edited: the gate need not name them, and must survive them."""
WATCHED = (*ARTIFACTS, *LOCKED, *SELECTED, "dispatch/.gitkeep")


@pytest.fixture(scope="module")
def recorded(locked_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One repo: locked, in round 1 of a loop, with a WRONG and a confirmed IMPROVED version."""
    repo = tmp_path_factory.mktemp("recorded") / "repo"
    shutil.copytree(locked_template, repo)
    loop = Loop(repo).setup()
    write_variant(repo, "bad", "def entry(**tensors):\n    return 3\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "boot_id", lambda: "fake")  # the fake lab's boot: the lock's A/A control then serves
        assert attempt(repo, FakeLab(wrong="tail"), "bad").row.verdict == "WRONG"
        loop.stop()
        write_variant(repo, "fused", "def entry(**tensors):\n    pass\n")
        assert attempt(repo, FakeLab(speedup=1.5), "fused", max_pairs=6).row.verdict == "IMPROVED"
    return repo


@contextmanager
def damaged(path: Path) -> Iterator[bytes]:
    """The file's bytes, and after the test the file as it was."""
    before = path.read_bytes()
    try:
        yield before
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.write_bytes(before)


def named(report: Report, path: str) -> bool:
    """Whether a finding that stands in the way speaks of a file (or of the run or variant folder it lies in)."""
    folder = str(Path(path).parent)
    places = (path, folder) if folder.startswith(("artifacts/runs/", f"{VARIANTS}/")) else (path,)
    return any(
        place in part
        for f in report.findings
        if f.severity != "trend"
        for part in (f.where, f.what)
        for place in places
    )


def refuses(repo: Path, path: str) -> Report:
    report = gating.gate(repo, final=False)
    assert not report.passed
    assert named(report, path), [(f.rule, f.where, f.what) for f in report.findings]
    assert all(f.fix for f in report.findings)
    return report


def test_a_repo_in_order_passes_and_the_list_is_every_committed_file(recorded: Path) -> None:
    """Breaks when the gate cries without a cause, or when a new kind of file is not tried below."""
    report = gating.gate(recorded, final=False)
    assert (report.passed, report.findings) == (True, ())
    held = proc.git_out(recorded, "ls-files", "-z").split("\0")
    assert sorted(p for p in held if p) == sorted((*WATCHED, *NOT_EVIDENCE))
    assert [row.round for row in workspace.open_repo(recorded).rows] == [None, 0, 1]


@pytest.mark.parametrize("path", WATCHED)
def test_one_edited_byte_is_named(recorded: Path, path: str) -> None:
    """Breaks when a byte of evidence, of the contract or of the selected variant may change unseen."""
    with damaged(recorded / path) as before:
        middle = len(before) // 2
        edited = before[:middle] + bytes([before[middle] ^ 1]) + before[middle + 1 :] if before else b"x"
        (recorded / path).write_bytes(edited)
        refuses(recorded, path)


@pytest.mark.parametrize("path", NOT_EVIDENCE)
def test_other_files_do_no_harm(recorded: Path, path: str) -> None:
    """Breaks when binary garbage in a file that is no evidence ends in a traceback."""
    with damaged(recorded / path):
        (recorded / path).write_bytes(b"\xff\x00\xfe" * 50)
        gating.gate(recorded, final=True)


@pytest.mark.parametrize("path", [p for p in ARTIFACTS if p not in RUN_FILES])
def test_a_deleted_artifact_is_named(recorded: Path, path: str) -> None:
    """Breaks when a file that was committed below artifacts/ may disappear."""
    with damaged(recorded / path):
        (recorded / path).unlink()
        refuses(recorded, path)


@pytest.mark.parametrize("run", RUNS)
def test_every_deleted_file_of_a_run_is_named(recorded: Path, run: str) -> None:
    """Breaks when one file of a run may disappear, or when only the first of several is named."""
    gone = [path for path in RUN_FILES if path.startswith(f"artifacts/runs/{run}/")]
    with ExitStack() as stack:
        for path in gone:
            stack.enter_context(damaged(recorded / path))
            (recorded / path).unlink()
        report = gating.gate(recorded, final=False)
    assert not report.passed
    assert set(gone) <= {f.where for f in report.findings if f.rule == "10"}


ROUGH = (
    ("contract.toml", ("garbage", "empty", "folder", "link", "nested")),
    ("workloads/cases.jsonl", ("garbage", "folder", "nested")),
    ("artifacts/contract.lock.json", ("garbage", "empty", "folder", "nested")),
    ("artifacts/lineage.jsonl", ("garbage", "empty", "append", "folder", "link", "nested")),
    ("artifacts/attempt-ledger.md", ("garbage", "folder")),
    ("artifacts/source-ideas.jsonl", ("append", "folder")),
    ("artifacts/runs/v002_fused.2/raw.json", ("garbage", "folder", "link", "nested")),
    (f"src/{TASK}/current", ("garbage", "folder")),
    ("reference.py", ("garbage", "folder")),
)


@pytest.mark.parametrize(("path", "how"), [(path, how) for path, ways in ROUGH for how in ways])
def test_rough_handling_is_named_without_a_traceback(recorded: Path, path: str, how: str) -> None:
    """Breaks when a folder, a link, non-UTF-8 bytes or endless nesting in place of a file ends the gate."""
    target = recorded / path
    with damaged(target) as before:
        target.unlink()
        if how == "folder":
            target.mkdir()
        elif how == "link":
            target.symlink_to("/etc/hostname")
        else:
            rough = {"garbage": os.urandom(3000), "empty": b"", "append": before + b"\x80\n", "nested": b"[" * 90_000}
            target.write_bytes(rough[how])
        refuses(recorded, path)


def test_a_pipe_is_refused_and_not_read(recorded: Path) -> None:
    """Breaks when the gate waits for ever on a named pipe."""
    path = "artifacts/attempt-ledger.md"
    with damaged(recorded / path):
        (recorded / path).unlink()
        os.mkfifo(recorded / path)
        refuses(recorded, path)


def _git(repo: Path, *args: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=w", "-c", "user.email=w@w", *args], cwd=repo, check=True, capture_output=True
    )


@contextmanager
def history(repo: Path) -> Iterator[None]:
    """Whatever is committed inside is forgotten after."""
    head = proc.head(repo) or ""
    try:
        yield
    finally:
        _git(repo, "reset", "-q", "--hard", head)


@pytest.mark.parametrize(
    "path",
    ["artifacts/contract.lock.json", "artifacts/lineage.jsonl", "artifacts/attempt-ledger.md",
     "artifacts/profile-digests/README.md", "artifacts/runs/v001_bad.1/raw.json"],
)  # fmt: skip
def test_a_committed_deletion_is_named(recorded: Path, path: str) -> None:
    """Breaks when `git rm` and a commit make evidence disappear."""
    with history(recorded):
        _git(recorded, "rm", "-q", path)
        _git(recorded, "commit", "-qm", "tidy")
        refuses(recorded, path)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("with_runs", [False, True])
def test_a_cut_tail_of_the_lineage_is_named(recorded: Path, committed: bool, with_runs: bool) -> None:
    """Breaks when the last row, the losing ones included, can be cut off: what is left is a valid chain."""
    with history(recorded):
        path = recorded / "artifacts/lineage.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        if with_runs:
            _git(recorded, "rm", "-qr", *(f"artifacts/runs/v002_fused.{n}" for n in (1, 2)))
        if committed:
            _git(recorded, "commit", "-qam", "tidy")
        refuses(recorded, "artifacts/lineage.jsonl")


@pytest.mark.parametrize("path", ["reference.py", "workloads/cases.jsonl", SELECTED[1], "artifacts/attempt-ledger.md"])
def test_a_committed_edit_is_named(recorded: Path, path: str) -> None:
    """Breaks when a commit launders an edit."""
    with history(recorded):
        (recorded / path).write_bytes((recorded / path).read_bytes() + b"\n")
        _git(recorded, "commit", "-qam", "edit")
        refuses(recorded, path)


def test_a_slip_that_was_undone_is_forgiven(recorded: Path) -> None:
    """Breaks when one commit of a mangled lineage turns the gate red for ever, though every byte is back."""
    path = recorded / "artifacts/lineage.jsonl"
    with history(recorded):
        before = path.read_bytes()
        path.write_bytes(before.replace(b"\n", b"\r\n"))
        _git(recorded, "commit", "-qam", "line ends")
        refuses(recorded, "artifacts/lineage.jsonl")
        path.write_bytes(before)
        _git(recorded, "commit", "-qam", "back")
        assert gating.gate(recorded, final=False).findings == ()


def test_a_row_that_a_merge_drops_is_named(recorded: Path) -> None:
    """Breaks when `merge -s ours` hides a decision: the simplified history does not visit the other side."""
    with history(recorded):
        start = proc.head(recorded) or ""
        selecting.select(recorded, "v002_fused", why="pivot: this row will vanish", clock=clock)
        told = proc.head(recorded) or ""
        _git(recorded, "reset", "-q", "--hard", start)
        _git(recorded, "merge", "-q", "--no-ff", "-s", "ours", "-m", "m", told)
        refuses(recorded, "artifacts/lineage.jsonl")


def test_hiding_an_edit_from_git_is_named(recorded: Path) -> None:
    """Breaks when assume-unchanged hides what git status would show."""
    path = "artifacts/research-digest.md"
    with damaged(recorded / path) as before:
        _git(recorded, "update-index", "--assume-unchanged", path)
        (recorded / path).write_bytes(before + b"more")
        refuses(recorded, path)
    _git(recorded, "update-index", "--no-assume-unchanged", path)


def test_an_unattempted_variant_is_a_block_only_when_committed(recorded: Path) -> None:
    """Breaks when work in progress blocks, or a committed candidate needs no verdict."""
    with history(recorded):
        write_variant(recorded, "newer", "def entry(**tensors):\n    return 9\n")
        report = gating.gate(recorded, final=False)
        assert report.passed and [(f.rule, f.severity) for f in report.findings] == [("10", "trend")]
        _git(recorded, "add", "-A", VARIANTS)
        _git(recorded, "commit", "-qm", "newer")
        assert "never attempted" in " ".join(f.what for f in refuses(recorded, f"{VARIANTS}/newer").findings)
    with history(recorded):
        write_variant(recorded, "newer", "def entry(**tensors):\n    return 9\n")
        _git(recorded, "add", "-A", VARIANTS)
        _git(recorded, "commit", "-qm", "WIP newer")
        assert gating.gate(recorded, final=False).passed


def test_an_edited_journal_is_named_and_gives_no_round(recorded: Path) -> None:
    """Breaks when a worker can write himself a passing Stop."""
    path = Loop(recorded).journal
    with damaged(path) as before:
        path.write_bytes(before.replace(b'"round":1', b'"round":9', 1))
        report = gating.gate(recorded, final=False)
        assert not report.passed and any("journal.jsonl" in f.where and f.severity == "block" for f in report.findings)
        path.write_bytes(before[:-1])
        assert any("torn" in f.what for f in gating.gate(recorded, final=False).findings)


def test_the_repo_came_through_unharmed(recorded: Path) -> None:
    """Breaks when a test above leaves its damage behind, so that later ones prove nothing."""
    assert gating.gate(recorded, final=False).findings == ()
