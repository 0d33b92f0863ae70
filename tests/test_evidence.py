"""The collector: any folder becomes evidence, what cannot be read is a fault in its place, and nothing is believed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kernelpilot_helpers import evidence, proc
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.evidence import files, git_facts, loop
from kernelpilot_helpers.evidence.model import MISSING, Evidence, TuningFacts, row_key
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee import gating, workspace
from tests.loop_sim import HEADER, Loop, encode
from tests.referee_sim import TASK, VARIANTS, attempt, write_variant


def silent(root: Path) -> Sequence[Fault]:
    return ()


def collect(root: Path) -> Evidence:
    return evidence.collect(root, audit=silent, tuning=lambda *_, **__: TuningFacts())


def _git(repo: Path, *args: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=w", "-c", "user.email=w@w", *args], cwd=repo, check=True, capture_output=True
    )


def test_a_judged_repo_as_facts(repo: Path) -> None:
    """Breaks when a fact that a rule rests on is not what git, the rows or the runs say."""
    attempt(repo, FakeLab(speedup=1.5), max_pairs=6)
    write_variant(repo, "draft", "x = 1\n")
    e = collect(repo)
    tree = proc.tree(repo, "HEAD", f"{VARIANTS}/fused")
    assert (e.faults, e.skeleton, e.git.removed, e.secrets, e.task) == ((), (), (), (), TASK)
    assert e.git.dirty == (f"{VARIANTS}/draft/candidate.py",)
    assert [c.subject.split()[0] for c in e.git.commits] == ["scaffold", "v000", "v001", "v001"]
    assert [c.trees for c in e.git.commits] == [{}, {}, {"fused": tree}, {}]
    assert e.git.head_variants == {"fused": tree} and set(e.git.variants) == {"fused", "draft"}
    assert e.git.variants["fused"] == e.git.current_tree == e.git.row_trees[row_key(e.rows[1])] == tree
    assert e.git.row_trees[row_key(e.rows[0])] == proc.tree(repo, "HEAD", "baseline")
    confirm = e.runs["v001_fused.3"]
    assert (confirm.role, confirm.label, confirm.tree, confirm.seeds) == ("confirm", "v001_fused", tree, 3)
    assert confirm.bench and confirm.bench.verdict == "IMPROVED" and confirm.limits and confirm.arms == ("A", "B")
    assert set(confirm.cases) == {case.case_id for case in e.cases} and confirm.env["boot_id"] == "fake"
    assert e.files[f"src/{TASK}/current"] == "fused\n" and f"{VARIANTS}/draft/candidate.py" in e.sources


def test_a_committed_deletion_and_a_folder_in_its_place_are_removed(repo: Path) -> None:
    """Breaks when a path counts as there because something else stands there."""
    _git(repo, "rm", "-q", "artifacts/research-digest.md")
    _git(repo, "commit", "-qm", "tidy")
    path = repo / "artifacts/attempt-ledger.md"
    path.unlink()
    path.mkdir()
    assert collect(repo).git.removed == ("artifacts/attempt-ledger.md", "artifacts/research-digest.md")


def test_a_merge_is_one_commit_with_the_changes_of_both_sides(repo: Path) -> None:
    """Breaks when a candidate that came in by a merge is not in the history."""
    _git(repo, "checkout", "-qb", "side")
    _git(repo, "add", "-A", VARIANTS)
    _git(repo, "commit", "-qm", "fused")
    _git(repo, "checkout", "-q", "main")
    (repo / "notes.md").write_text("x\n")
    _git(repo, "add", "notes.md")
    _git(repo, "commit", "-qm", "notes")
    _git(repo, "merge", "-q", "--no-ff", "-m", "join", "side")
    e = collect(repo)
    assert [c.subject for c in e.git.commits][-1] == "join" and len({c.commit for c in e.git.commits}) == 5
    assert sum("fused" in c.trees for c in e.git.commits) == 2


def test_odd_names_do_not_confuse_the_history(repo: Path) -> None:
    """Breaks when a newline, a tab or a colon in a name or a subject is read as something else."""
    name = "artifacts/:a b\n\tc.md"
    (repo / name).write_text("x")
    _git(repo, "add", "--", name)
    _git(repo, "commit", "-qm", ":100644 :\x02 odd")
    last = collect(repo).git.commits[-1]
    assert last.paths == (name,) and "odd" in last.subject


@pytest.mark.parametrize("place", ["nested", "outer", "ignored", "hidden"])
def test_what_git_must_not_be_told_is_seen(repo: Path, tmp_path: Path, place: str) -> None:
    """Breaks when a second history, a tracked loop or a hidden file goes unseen."""
    if place == "nested":
        proc.git(repo, "init", "-q", "src/inner")
        assert collect(repo).git.nested == ("src/inner",)
    elif place == "outer":
        outer = tmp_path / "outer"
        outer.mkdir()
        inner = outer / "repo"
        shutil.copytree(repo, inner)
        proc.git(outer, "init", "-q")
        assert collect(inner).git.above == ""
        _git(outer, "add", "repo")
        assert collect(inner).git.above == str(outer)
    elif place == "ignored":
        (repo / ".gitignore").write_text("")
        (repo / ".humanize").mkdir(exist_ok=True)
        (repo / ".humanize/x").write_text("x")
        _git(repo, "add", "-f", ".humanize/x")
        facts = collect(repo).git
        assert not facts.humanize_ignored and facts.humanize_tracked == (".humanize/x",)
    else:
        _git(repo, "update-index", "--skip-worktree", "README.md")
        assert collect(repo).git.hidden == ("README.md",)


def test_an_empty_folder_and_a_file_are_evidence_too(tmp_path: Path) -> None:
    """Breaks when there must be a repo before the gate can say that there is none."""
    e = collect(tmp_path)
    assert isinstance(e.contract, Fault) and e.contract.what == MISSING and "scaffold" in e.contract.fix
    assert e.git.head == "" and e.audit == () and ".git" in [f.where for f in e.faults]


def test_no_git_on_the_machine_is_a_fault(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a machine without git gives a traceback, or a pass."""
    monkeypatch.setenv("PATH", "/nowhere")
    e = collect(repo)
    assert any("git" in f.what for f in e.faults)


@pytest.mark.parametrize("path", ["contract.toml", "workloads/cases.jsonl", "artifacts/contract.lock.json",
                                  "artifacts/lineage.jsonl", "artifacts/source-ideas.jsonl"])  # fmt: skip
@pytest.mark.parametrize("how", ["folder", "garbage", "huge", "dangling"])
def test_what_cannot_be_read_is_a_fault_in_its_place(repo: Path, path: str, how: str) -> None:
    """Breaks when a garbled file raises, or is taken for an absent or empty one."""
    target = repo / path
    target.unlink()
    if how == "folder":
        target.mkdir()
    elif how == "dangling":
        target.symlink_to("nowhere")
    else:
        target.write_bytes(b"\xff\xfe\x00" if how == "garbage" else b"{" * (9 * 2**20))
    e = collect(repo)
    held = (*e.faults, *(x for x in (e.contract, e.lock) if isinstance(x, Fault)))
    assert any(f.where.startswith(path) and f.what != MISSING for f in held)


def test_the_audit_may_fail_in_any_way(repo: Path) -> None:
    """Breaks when the audit's own wall or bug ends the gate, or its paths are those of one machine."""

    def wall(root: Path) -> Sequence[Fault]:
        raise BadRecord("no such file", where=f"{root}/artifacts/lineage.jsonl", fix="f")

    def bug(root: Path) -> Sequence[Fault]:
        raise KeyError("x")

    def folder(root: Path) -> Sequence[Fault]:
        raise IsADirectoryError(21, "Is a directory", f"{root}/artifacts/x")

    for audit, where in ((wall, "artifacts/lineage.jsonl"), (bug, "artifacts"), (folder, "artifacts/x")):
        assert [f.where for f in evidence.collect(repo, audit=audit).audit] == [where]

    def broken(*_: object, **__: object) -> TuningFacts:
        raise KeyError("y")

    assert "dispatch" in [f.where for f in evidence.collect(repo, audit=silent, tuning=broken).faults]


def test_a_special_file_is_not_read(repo: Path) -> None:
    """Breaks when a pipe makes the gate wait for ever."""
    for path in ("artifacts/pipe", "contract.toml", ".gitattributes", ".humanize/rlcr/x/journal.jsonl"):
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).unlink(missing_ok=True)
        os.mkfifo(repo / path)
        with pytest.raises(Refused) as refused:
            evidence.collect(repo, audit=lambda root: pytest.fail("audited"))
        assert refused.value.where == path
        report = gating.gate(repo, final=True)
        assert [(f.rule, f.where, report.passed) for f in report.findings] == [("0", path, False)]
        (repo / path).unlink()


SECRET = {
    "key": b"-----BEGIN RSA PRIVATE " + b"KEY-----\n",
    "cloud": b"id = AK" + b"IAABCDEFGHIJKLMNOP\n",
    "token": b"x=gh" + b"p_" + b"a" * 36 + b"\n",
    "api": b"k: sk" + b"-" + b"A1b2" * 10 + b"\n",
    "password": b"pass" + b'word = "hunter2hunter2"\n',
}


@pytest.mark.parametrize("kind", SECRET)
def test_a_credential_in_what_git_would_take_is_found(repo: Path, kind: str) -> None:
    """Breaks when a key reaches the history, or when words and hashes are taken for one."""
    (repo / "artifacts/notes.md").write_bytes(SECRET[kind])
    assert [s.partition(":")[0] for s in collect(repo).secrets] == ["artifacts/notes.md"]
    harmless = b"the password is asked for; task-sk-learn; " + b"ab" * 32 + b"; PRIVATE KEY-----; ghp_short"
    (repo / "artifacts/notes.md").write_bytes(harmless)
    assert collect(repo).secrets == ()


def test_a_journal_is_folded_into_rounds(repo: Path) -> None:
    """Breaks when a Stop, its findings or the phase are read wrongly."""
    base = proc.head(repo) or ""
    made = Loop(repo).setup().stop(passed=False, findings=["21:x"]).stop(phase="FINALIZE", outcome="allow")
    (made.folder / "round-0-summary.md").write_text("done\n")
    (made.folder / "round-1-contract.md").write_text("Type: reset\n")
    (made.folder / "state.md").write_text("current_round: 80\n")
    facts = collect(repo).loop
    assert facts is not None and facts.faults == ()
    assert (facts.phase, facts.round, facts.max_rounds, facts.start, facts.active) == ("FINALIZE", 1, 84, base, True)
    assert [(s.round, s.passed, s.findings) for s in facts.stops] == [
        (0, None, ()), (0, False, ("21:x",)), (1, True, ()),
    ]  # fmt: skip
    assert facts.summaries == {0: "done\n"} and facts.contracts == {1: "Type: reset\n"}
    for text, finalized in (
        (None, False), ("# Finalize summary\n\n## Evidence\n\n<!-- fill in -->\n", False), ("## Evidence\n\nx\n", True),
    ):  # fmt: skip
        (made.folder / "finalize-summary.md").write_text(text or "")
        told = collect(repo).loop
        assert told is not None and told.finalized is finalized


def test_an_amendment_is_told_and_what_is_not_known_is_skipped(repo: Path) -> None:
    """Breaks when a changed plan goes unseen or is a fault, or a line of a later runtime ends the reading."""
    made = Loop(repo).setup()
    made.add("amend", {"what": "plan", "sha256": "7" * 64, "why": "AC-3 was\n1.2x", "text": "# plan", "evidence": None})
    made.add("gathered", {"key": "k", "checks": [{"name": "gate"}]})
    made.add("amend", {"what": "evidence", "sha256": "8" * 64, "why": "a new path", "evidence": {"commands": []}})
    made.add("of-a-later-runtime", {"what": [1, None]})
    facts = collect(repo).loop
    assert facts is not None and facts.faults == () and facts.active and facts.round == 0
    assert facts.amends == ("plan: AC-3 was\n1.2x", "evidence: a new path")
    assert facts.plan_sha256 == "7" * 64 and len(facts.stops) == 1
    made.phase = "STOP"
    made.add("halt", {"why": "enough"})
    ended = collect(repo).loop
    assert ended is not None and (ended.phase, ended.active, ended.faults) == ("STOP", False, ())
    assert evidence.active_round(repo) is None
    bad = Loop(repo).setup()
    bad.add("amend", {"what": "plan"})
    assert [f.where.rpartition(":")[2] for f in loop.parse(bad.journal.read_bytes(), "x").faults] == ["3"]


def test_the_newest_loop_counts_and_a_copy_serves_where_there_is_none(repo: Path) -> None:
    """Breaks when a loop of last week answers for today's, a copy may differ, or an example has no rounds."""
    old = Loop(repo, "2026-11-29_08-00-00").setup()
    old.stop(outcome="CANCEL", phase="CANCEL")
    new = Loop(repo).setup()
    e = collect(repo)
    assert e.loop and e.loop.directory.endswith(new.folder.name) and [x.phase for x in e.earlier] == ["CANCEL"]
    copy = repo / "artifacts/loop/journal.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(new.journal.read_bytes())
    new.stop()
    assert collect(repo).faults == ()
    copy.write_bytes(copy.read_bytes().replace(b"main", b"mine"))
    assert [f.where for f in collect(repo).faults] == ["artifacts/loop/journal.jsonl"]
    copy.write_bytes(new.journal.read_bytes())
    shutil.rmtree(repo / ".humanize/rlcr")
    e = collect(repo)
    assert e.loop and (e.loop.directory, e.loop.phase) == ("artifacts/loop", "BUILD")
    assert evidence.active_round(repo) is None


@pytest.mark.parametrize(
    "hurt",
    [
        lambda lines: [lines[0], lines[2]],
        lambda lines: [*lines[:-2], lines[-2].replace(b'"pass":true', b'"pass":null'), lines[-1]],
        lambda lines: [b"{}", *lines[1:]],
        lambda lines: [*lines, b"[" * 50_000],
        lambda lines: [*lines, encode({"event": "done"})],
        lambda lines: [*lines, b"\xff\xfe"],
        lambda lines: [],
    ],
)
def test_a_journal_that_is_not_sound_is_a_fault_and_gives_no_round(
    repo: Path, hurt: Callable[[list[bytes]], list[bytes]]
) -> None:
    """Breaks when a cut, edited or garbled journal raises or is believed."""
    made = Loop(repo).setup().stop()
    assert loop.parse(b"\n".join(made.lines) + b"\n", "x").faults == ()
    data = b"".join(line + b"\n" for line in hurt(made.lines))
    assert loop.parse(data, "x").faults
    made.journal.write_bytes(data)
    assert evidence.active_round(repo) is None


def test_a_row_knows_the_round_it_was_written_in(repo: Path) -> None:
    """Breaks when rows cannot be told apart by round, or a loop that has ended still counts."""
    assert evidence.active_round(repo) is None
    made = Loop(repo).setup()
    made.stop()
    assert evidence.active_round(repo) == 1
    attempt(repo, FakeLab(speedup=1.5), max_pairs=6)
    assert workspace.open_repo(repo).rows[-1].round == 1
    made.stop(outcome="COMPLETE", phase="COMPLETE")
    assert evidence.active_round(repo) is None
    assert made.lines[0] == HEADER and json.loads(made.lines[1])["event"] == "setup"


def test_any_folder_can_be_gated(tmp_path: Path, repo: Path) -> None:
    """Breaks when a malformed repo ends in a traceback or in a pass."""
    bare = tmp_path / "bare"
    bare.mkdir()
    assert not gating.gate(bare, final=False).passed
    proc.git(bare, "init", "-q")
    (bare / "contract.toml").mkdir()
    report = gating.gate(bare, final=True)
    assert not report.passed and any("contract.toml" in f.where for f in report.findings)
    for path in sorted(p for p in repo.rglob("*") if p.is_file() and ".git" not in p.parts):
        path.write_bytes(b"\xff\x00\xfe\n")
    report = gating.gate(repo, final=True)
    assert not report.passed and report.findings


def test_a_listing_and_a_text_of_nothing_are_empty(repo: Path, tmp_path: Path) -> None:
    """Breaks when an unknown commit or an absent file raises."""
    assert git_facts.listing(repo, "f" * 40) == () and files.text(tmp_path / "no") is None
    assert "contract.toml" in git_facts.listing(repo, "HEAD")
