"""What the monitor shows of a loop, and how it takes damage."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from rlcr import monitor, monitor_text, process, registry, tracker
from rlcr.model import Amend, Done
from rlcr.review import log_dir
from tests.rlcr import sim
from tests.rlcr.loop_bench import LOOP, git, project_in, with_loop

NOW = datetime(2026, 11, 30, 8, 2, 5, tzinfo=timezone.utc)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_in(tmp_path)


def snap(project: Path) -> dict[str, Any]:
    return monitor.snapshot(project, NOW)


def codes(project: Path) -> list[str]:
    return [fault["code"] for fault in snap(project)["faults"]]


# --- what is shown -------------------------------------------------------------------------------------------------


def test_a_snapshot_says_where_the_loop_stands(project: Path) -> None:
    """Breaks when a figure is lost or taken from somewhere other than the journal."""
    with_loop(project)
    found = snap(project)
    assert (found["loop"], found["phase"], found["round"], found["max"]) == (LOOP, "BUILD", 0, 84)
    assert (found["active"], found["unfinished"], found["blocks"], found["reviewer"]) == (True, False, 1, "codex")
    assert found["gate"] == {"at": sim.AT, "pass": False, "done": False, "findings": ["12:v003"]}
    assert found["last_event"] == {
        "kind": "stop", "at": sim.AT, "age_s": 125, "round": 0, "outcome": "block",
        "reason": "Round 0: the gate is red, 1 to mend; the round is not over and no review is spent",
    }  # fmt: skip
    assert found["criteria"] == {"met": 1, "total": 3, "kept": True}
    assert (found["started"], found["plan"], found["verdict"], found["faults"]) == (
        sim.AT,
        ".humanize/plan.md",
        None,
        [],
    )


def test_a_verdict_and_its_findings_are_shown(project: Path) -> None:
    """Breaks when open and queued findings are mixed up, or an undone transition is not seen."""
    _, tape = with_loop(project)
    seen = sim.opinion(findings=(sim.finding("P1"), sim.finding("P3", id="F2"), sim.finding("P2", id="F3")))
    tape.put(sim.stop(tape.state, 2, verdict=seen))
    found = snap(project)
    assert found["verdict"] == {"at": sim.AT, "verdict": "continue", "mainline": "advanced"}
    assert found["findings"] == {"open": 1, "queued": 2}
    assert (found["round"], found["unfinished"]) == (1, True)


def test_git_counts_and_log_are_shown(project: Path) -> None:
    """Breaks when changed, new, gone and untracked paths are miscounted, or the reviewer's log is not found."""
    loop, _ = with_loop(project)
    (project / "kept").write_text("other")
    (project / "gone").unlink()
    (project / "added").write_text("")
    git(project, "add", "added")
    for name in ("u1", "u2"):
        (project / name).write_text("")
    logs = log_dir(project, loop.name)
    logs.mkdir(parents=True)
    (logs / "round-0-codex-run.log").write_text("")
    found = snap(project)
    head = git(project, "rev-parse", "HEAD").strip()
    assert found["git"] == {"head": head, "changed": 1, "added": 1, "deleted": 1, "untracked": 2}
    assert found["log"] == str(logs / "round-0-codex-run.log")


def test_the_newest_loop_is_the_one_shown(project: Path) -> None:
    """Breaks when an older loop, or a folder that is none, is taken."""
    with_loop(project, "2026-11-30_09-00-00")
    with_loop(project)
    (project / ".humanize" / "rlcr" / "zzz").mkdir()
    assert snap(project)["loop"] == "2026-11-30_09-00-00"


def test_the_text_holds_every_figure_and_no_control_character(project: Path) -> None:
    """Breaks when a row is dropped, or a name out of the journal can drive the terminal."""
    with_loop(project)
    found = snap(project)
    found["plan"] = "plan\x1b[2J.md"
    text = monitor_text.render(found)
    for shown in (
        "0 of 84", "BUILD (active: building)", "FAIL, not done, 1 finding: 12:v003", "- (none yet)",
        "Stop of round 0: block (Round 0: the gate is red, 1 to mend; the round is not over ", "spent), 2 min ago",
        "1 of 3 verified", "0 open, 0 queued", "~0 +0 -0 ?0", "plan?[2J.md", "- (no reviewer has run)",
    ):  # fmt: skip
        assert shown in text
    assert "\x1b" not in text and "FAULT" not in text


def test_an_end_by_the_evidence_alone_is_told_as_that(project: Path) -> None:
    """Breaks when a loop that has no reviewer seems to wait for one, or "files are in place" is its last event."""
    loop = project / ".humanize" / "rlcr" / LOOP
    loop.mkdir(parents=True)
    tape = sim.Tape(loop)
    tape.put(sim.setup())
    tape.put(Done(id="setup"))
    assert snap(project)["last_event"] == {
        "kind": "setup", "at": sim.AT, "age_s": 125, "round": 0, "outcome": None, "reason": None,
    }  # fmt: skip
    for n in (1, 2):
        state = tape.put(sim.stop(tape.state, n, checks=(sim.check(met=True),)))
        tape.put(Done(id=state.pending))
    text = monitor_text.render(snap(project))
    assert "COMPLETE (ended: accepted by the evidence)" in text and "none yet" not in text
    assert "- (no reviewer: the evidence alone decides)" in text
    assert "Stop of round 0: COMPLETE (complete: the gate passed at this HEAD in FINALIZE), 2 min ago" in text


def test_a_tracker_that_nobody_kept_counts_nothing_as_unverified(project: Path) -> None:
    """Breaks when an untouched form reads as "0 of 2 verified", or one row is not enough to count as kept."""
    loop, _ = with_loop(project)
    plan = (
        "## Goal\n\nfast\n\n## Acceptance Criteria\n\n- AC-1: a\n- AC-2: b\n\n## Tasks\n\n"
        "| Task ID | Description | Target AC |\n|---|---|---|\n| T1 | go | AC-1 |\n"
    )
    form = tracker.page(plan)
    assert "| T1: go | AC-1 | pending |" in form, "taken over from the plan, which is no keeping of the tracker"
    (loop / "plan.md").write_text(plan)
    path = loop / "goal-tracker.md"
    path.write_text(form)
    assert "Criteria      2 (tracker not kept)" in monitor_text.render(snap(project))
    path.write_text(form + "|  |  |\n")
    assert snap(project)["criteria"] == {"met": 0, "total": 2, "kept": False}
    path.write_text(form + "| later | AC-2 | 1 | no time | never |\n")
    assert "Criteria      0 of 2 verified" in monitor_text.render(snap(project))


def test_what_a_stop_does_now_is_shown_while_its_process_lives(project: Path) -> None:
    """Breaks when a Stop that takes an hour looks like a loop that stands still, or a killed one like one at work."""
    loop, _ = with_loop(project)
    facts = {"pid": os.getpid(), "mark": process.mark(os.getpid()), "doing": "review", "left_s": 600}
    (loop / "lease.json").write_text(json.dumps({**facts, "since": "2026-11-30T08:00:05Z"}))
    found = snap(project)
    assert found["lease"] == {"doing": "review", "since": "2026-11-30T08:00:05Z", "left_s": 480, "pid": os.getpid()}
    shown = f"At work       review since 2026-11-30T08:00:05Z, at most 480 s more (process {os.getpid()})"
    assert shown in monitor_text.render(found)
    for over in ({"mark": "1"}, {"pid": 1}, {"pid": "x"}, {"since": "now"}, {"left_s": None}):
        (loop / "lease.json").write_text(json.dumps({**facts, "since": "2026-11-30T08:00:05Z", **over}))
        assert snap(project)["lease"] is None, over
    (loop / "lease.json").write_text("[]")
    assert snap(project)["lease"] is None


def test_amendments_and_why_it_is_parked_are_shown(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a reader cannot tell that the measure was changed, or what a parked loop waits for."""
    loop, tape = with_loop(project)
    assert snap(project)["amendments"] == [] and snap(project)["reason"] is None
    tape.put(Amend(what="plan", why="the goal moved", sha256="1" * 64, text="# new"))
    found = snap(project)
    assert found["amendments"] == ["plan: the goal moved"]
    assert "Amended       plan: the goal moved" in monitor_text.render(found)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "state"))
    registry.save("b" * 64, registry.Entry(loop_dir=str(loop), parked="the lock is held (3 failures in a row)"))
    assert "Reason        the lock is held (3 failures in a row)" in monitor_text.render(snap(project))
    for _ in range(3):
        tape.put(sim.stop(tape.state, 5, checks=(sim.red(),)))
    text = monitor_text.render({**snap(project), "reason": tape.state.exit_reason})
    assert tape.state.phase == "PARKED" and "Reason        the same red gate 3 times over an unchanged tree" in text


def test_the_monitor_counts_the_newest_plan_s_criteria(project: Path) -> None:
    """Breaks when the first plan is counted, or when the version that we moved counts as the worker's writing."""
    loop, _ = with_loop(project)
    plan = "## Goal\n\nfast\n\n## Acceptance Criteria\n\n+ AC-1: a\n+ AC-2: b\n"
    newest = plan + "+ AC-3a: c\n"
    for name, text in {"plan.md": plan, "plan-9.md": plan, "plan-10.md": newest}.items():
        (loop / name).write_text(text)
    path = loop / "goal-tracker.md"
    text = tracker.renewed(tracker.page(plan), [plan, newest])[0]
    path.write_text(text)
    assert snap(project)["criteria"] == {"met": 0, "total": 3, "kept": False}
    row = "| AC | Task | Completed Round | Verified Round | Evidence |\n|---|---|---|---|---|\n"
    path.write_bytes(text.replace(row, row + "| AC-02 to 3 | t | 0 | 0 | |\n").replace("\n", "\r\n").encode())
    assert snap(project)["criteria"] == {"met": 2, "total": 3, "kept": True}


# --- damage --------------------------------------------------------------------------------------------------------


def rewrite(loop: Path, edit: Any) -> None:
    path = loop / "journal.jsonl"
    path.write_bytes(edit(path.read_bytes()))


DAMAGE = {
    "torn": (lambda data: data[:-20], ["torn"]),
    "no newline at all": (lambda data: data[:30], ["torn"]),
    "garbled": (lambda data: data.replace(b'"event":"intent"', b'"event"=intent'), ["journal"]),
    "hand edit": (lambda data: data.replace(b'"max":84', b'"max":90'), ["journal"]),
    "line gone": (lambda data: b"\n".join(data.split(b"\n")[:2] + data.split(b"\n")[3:]), ["journal"]),
    "other version": (lambda data: data.replace(b'"version":1', b'"version":2'), ["journal"]),
    "binary": (lambda data: b"\xff\xfe\x00\n" * 9, ["journal"]),
    "empty": (lambda data: b"", ["journal"]),
    "too deep": (lambda data: data.splitlines(keepends=True)[0] + b"[" * 200_000 + b"\n", ["journal"]),
    "list for a line": (lambda data: data.splitlines(keepends=True)[0] + b"[]\n", ["journal"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_journal_is_a_named_fault_and_never_a_traceback(project: Path, name: str) -> None:
    """Breaks when damage stops the monitor, or is shown as if it were sound."""
    loop, _ = with_loop(project)
    edit, expected = DAMAGE[name]
    rewrite(loop, edit)
    found = snap(project)
    assert [fault["code"] for fault in found["faults"]] == expected
    assert "FAULT" in monitor_text.render(found)


def test_a_well_chained_lie_is_a_fault_too(project: Path) -> None:
    """Breaks when a line whose hashes were computed anew, but whose outcome does not follow, is believed."""
    loop, _ = with_loop(project)

    def lie(data: bytes) -> bytes:
        lines = data.splitlines()
        line = json.loads(lines[3])
        assert line["data"]["outcome"] == "block"
        line["data"]["outcome"], line["phase"] = "COMPLETE", "COMPLETE"
        return b"\n".join([*lines[:3], json.dumps(line, sort_keys=True, separators=(",", ":")).encode()]) + b"\n"

    rewrite(loop, lie)
    assert codes(project) == ["journal"]
    assert snap(project)["phase"] == "BUILD"


def test_no_journal_and_a_disagreeing_view_are_faults(project: Path) -> None:
    """Breaks when the state file's name is believed against the journal."""
    loop, _ = with_loop(project)
    (loop / "state.md").rename(loop / "complete-state.md")
    assert codes(project) == ["view"]
    assert snap(project)["phase"] == "BUILD"
    (loop / "journal.jsonl").unlink()
    assert codes(project) == ["journal"]
