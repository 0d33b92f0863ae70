"""The files that are made from the journal: what they say, that they follow it, and that no other hand writes them."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rlcr import prompts, tracker, views
from rlcr.model import Amend, Course, Done, Halt, State, Stop
from rlcr.weigh import STALLS
from tests.rlcr import sim
from tests.rlcr.real import PLAN, PLAN_TEXT, RLCR, Real

TRACKED = "goal-tracker.md"


def after(state: State, n: int, **over: object) -> tuple[State, views.Pages]:
    """The state after one Stop, and what that Stop writes."""
    stop: Stop = sim.stop(state, n, **over)
    new, _ = sim.drive(state, stop)
    return new, views.pages_of(new, "intent", None)


# --- what the reviewer said ------------------------------------------------------------------------------------------


def test_a_verdict_is_written_for_people_too() -> None:
    # Breaks when a finding loses its id, place or locus on the way, or a scoped review looks like a full one.
    said = sim.opinion(
        "continue", "stalled", unmet=("AC-2", "AC-7"), text="  Look at the tail.\n", full=False,
        findings=(
            sim.finding("P1", id="F-1", claim="wrong\nat the edge"),
            sim.finding("P3", id="F-2", file="", line=0, claim="a word", locus="external"),
        ),
    )  # fmt: skip
    _, made = after(sim.begun(reviewer="codex"), 1, verdict=said)
    assert made.owned["round-0-review-result.md"] == (
        "# Review of round 0 (BUILD) by codex, at 000000000000\n\n"
        "- Verdict: continue\n- Mainline progress: stalled\n"
        "- Looked at: open findings, and what changed since the last review\n\n"
        "## Findings\n\n- F-1 [P1] src/a.py:3 (in-round): wrong at the edge\n"
        "- F-2 [P3] no file:0 (external): a word\n\n"
        "## Criteria not met\n\n- AC-2\n- AC-7\n\n## In words\n\nLook at the tail.\n"
    )
    assert json.loads(made.owned["round-0-verdict.json"])["unmet"] == ["AC-2", "AC-7"]
    _, none = after(sim.begun(), 1)
    assert set(none.owned) == {"round-0-gate.md", "round-0-evidence.json", "round-1-prompt.md"}, "no reviewer, no word"


def test_findings_over_time() -> None:
    # Breaks when a finding is forgotten once it is mended, or its first round moves.
    state = sim.begun(reviewer="codex")
    both = (sim.finding("P1", id="F-1"), sim.finding("P3", id="F-2", line=9))
    state, made = after(state, 1, verdict=sim.opinion(findings=both))
    told = sorted(map(json.loads, made.owned["findings.jsonl"].splitlines()), key=lambda row: row["id"])
    assert told == [
        {"claim": "wrong at the edge", "file": "src/a.py", "first": 0, "id": "F-1", "last": 0, "line": 3,
         "locus": "in-round", "priority": "P1", "state": "open"},
        {"claim": "wrong at the edge", "file": "src/a.py", "first": 0, "id": "F-2", "last": 0, "line": 9,
         "locus": "in-round", "priority": "P3", "state": "queued"},
    ]  # fmt: skip
    state, made = after(state, 2, verdict=sim.opinion(findings=both[1:]))
    lines = made.owned["findings.jsonl"].splitlines()
    assert lines[0].startswith('{"claim": "wrong at the edge", "file":'), "keys are sorted"
    seen = [(row["id"], row["state"], row["first"], row["last"]) for row in map(json.loads, lines)]
    assert sorted(seen) == [("F-1", "closed", 0, 1), ("F-2", "queued", 0, 1)]
    state, made = after(state, 3, checks=(sim.red(),))
    assert made.owned["findings.jsonl"].splitlines() == lines, "a red gate is no review"


# --- prompts ---------------------------------------------------------------------------------------------------------


def prompt(course: Course | None = None, **over: object) -> str:
    check = dataclasses.replace(sim.check(), course=course)
    state, made = after(dataclasses.replace(sim.begun(), **over), 1, checks=(check,))  # type: ignore[arg-type]
    assert state.last is not None and state.last.page == "round-1-prompt.md"
    return made.owned["round-1-prompt.md"]


@pytest.mark.parametrize(
    ("course", "head"),
    [
        (Course(kind="widen", weak=2, why="two weak rounds", lines=("read papers",), have=12, want=50),
         "## Widen the search (12 of 50)\n\ntwo weak rounds\n\n- read papers\n"),
        (Course(kind="widen", why="w"), "## Widen the search\n\nw\n"),
        (Course(kind="decide", why="a plateau", lines=("stop", "go on")),
         "## A decision is due\n\na plateau\n\n- stop\n- go on\n"),
        (Course(kind="finish", why="the target is met"), "## Finish what is done\n\nthe target is met\n"),
    ],
)  # fmt: skip
def test_a_prompt_says_where_the_numbers_lead(course: Course, head: str) -> None:
    assert f"\n{head}" in prompt(course)


def test_a_prompt_says_nothing_more_where_the_numbers_say_go_on() -> None:
    heads = [line for line in prompt(Course(kind="on", why="fine")).splitlines() if line.startswith("## ")]
    assert heads == ["## What is left", "## This round"]
    assert [line for line in prompt().splitlines() if line.startswith("## ")] == heads


def test_a_recovery_says_what_stood_still() -> None:
    # Breaks when findings that stay open for ever look like a reviewer's mood.
    state = sim.begun(reviewer="codex")
    one = sim.opinion(findings=(sim.finding("P1", id="F-9"),))
    for n in range(STALLS):
        state, made = after(state, n + 1, verdict=one)
    text = made.owned[f"round-{STALLS}-prompt.md"]
    assert "## Drift Recovery Mode\n\n2 rounds in a row left the same findings open or changed nothing: F-9." in text
    state = sim.begun(reviewer="codex")
    for n in range(2):
        state, made = after(state, n + 1, verdict=sim.opinion("continue", "stalled", unmet=("AC-1",)))
    assert "2 reviews in a row saw no progress on the goal. One more ends" in made.owned["round-2-prompt.md"]
    assert "left the same findings" not in made.owned["round-2-prompt.md"]


def test_the_plan_is_quoted_in_round_0_only(worked: Real) -> None:
    first = (worked.loop / "round-0-prompt.md").read_text()
    assert "- AC-21: criterion number 21" in first and "`AC-2 to AC-5` names four.\n" in first
    assert f"{RLCR} evidence`" in first, "the command must work as it is printed"
    worked.stop()
    second = (worked.loop / "round-1-prompt.md").read_text()
    assert "criterion number" not in second and f"`{PLAN}`" in second and f"{RLCR} evidence`" in second


def test_a_prompt_with_the_plan_s_own_tasks_says_that_they_stand_there() -> None:
    setup = sim.setup()
    tasks = (
        f"{PLAN_TEXT}\n## Task Breakdown\n\n| Task ID | Description | Target AC |\n|---|---|---|\n| T1 | a | AC-1 |\n"
    )
    assert "own tasks stand there already" in prompts.start_prompt(setup, tasks)
    assert "own tasks" not in prompts.start_prompt(setup, PLAN_TEXT)


@pytest.mark.parametrize("plan", ["", PLAN_TEXT])
def test_a_loop_without_building_begins_with_the_review(plan: str) -> None:
    # Breaks when such a loop asks for a contract or a plan that nobody gave it.
    setup = sim.setup(skip_impl=True, plan=PLAN if plan else "", plan_sha256="", base_commit="b" * 40, reviewer="codex")
    made = views.start_pages(setup, plan)
    text = made.owned["round-0-prompt.md"]
    assert "SKIP-IMPL MODE" in text and "b" * 40 in text and ("criterion number 21" in text) == bool(plan)
    assert ("plan.md" in made.owned) == bool(plan) and set(made.inputs) == {TRACKED, "round-0-summary.md"}
    assert "[To be" not in made.inputs[TRACKED]
    state = sim.begun(skip_impl=True, plan="", plan_sha256="", reviewer="codex")
    assert "skip_impl: true\namendments: 0\n---\n" in views.state_text(state)
    assert "review_started: true\n" in views.state_text(state)


# --- amendments ------------------------------------------------------------------------------------------------------

SECOND = PLAN_TEXT.replace("- AC-21: criterion number 21\n", "- AC-22: half the memory\n")


def amend(real: Real, text: str) -> subprocess.CompletedProcess[str]:
    (real.repo / PLAN).write_text(text)
    done = real.run(RLCR, "plan", "amend", "--why", "the target moved")
    assert done.returncode == 0, done.stderr
    return done


def test_an_amended_plan_is_a_file_of_its_own_and_moves_the_tracker(worked: Real) -> None:
    # Breaks when the first plan is overwritten, when our own change is reported as the worker's, or tables are lost.
    path = worked.loop / TRACKED
    amend(worked, SECOND)
    assert (worked.loop / "plan.md").read_text() == PLAN_TEXT and (worked.loop / "plan-2.md").read_text() == SECOND
    text = path.read_text()
    assert "- AC-22: half the memory\n" in text and "criterion number 21" not in text and "| AC-21 |" in text
    assert "\n### Plan Version: 2\n" in text and "Version: 1" not in text
    assert "amendments: 1\n" in (worked.loop / "state.md").read_text()
    said = worked.stop()
    assert "no row names AC-22 ->" in said["reason"] and "Put back" not in said["reason"]
    assert "plan, now `.humanize/rlcr/" in (worked.loop / "round-0-gate.md").read_text()
    path.write_text(path.read_text() + "| t | AC-22 | 0 | no device | - |\n")
    worked.stop("again")
    assert worked.at == ("BUILD", 1) and not [e for e in worked.lines() if e["event"] == "tamper"]
    text = (worked.loop / "round-1-prompt.md").read_text()
    assert "The plan was amended, see below." in text and "plan-2.md`: the target moved" in text
    assert "half the memory" not in text, "linked, never quoted"


def test_views_of_an_amended_plan_are_put_back_like_others(worked: Real) -> None:
    amend(worked, SECOND)
    (worked.loop / "plan-2.md").write_text(PLAN_TEXT)
    path = worked.loop / TRACKED
    text = path.read_text().replace("- AC-22: half the memory\n", "- AC-22: nothing\n")
    path.write_text(text + "| t | AC-22 | | | |\n")
    said = worked.stop()
    assert "plan-2.md was edited by hand" in said["reason"] and "edited above its mutable section" in said["reason"]
    assert (worked.loop / "plan-2.md").read_text() == SECOND and "- AC-22: half the memory\n" in path.read_text()
    assert worked.at == ("BUILD", 1)
    (worked.repo / PLAN).write_text(PLAN_TEXT)
    said = worked.stop("back")
    assert f"cp .humanize/rlcr/{worked.loop.name}/plan-2.md {PLAN}" in said["reason"]


REWRITTEN: dict[str, Callable[[bytes], bytes]] = {
    "case": lambda raw: raw.replace(b"## MUTABLE SECTION", b"## Mutable section"),
    "crlf": lambda raw: raw.replace(b"\n", b"\r\n"),
    "mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "blanks": lambda raw: raw.replace(b"criterion number 7\n", b"criterion number 7  \n"),
    "utf-16": lambda raw: raw.decode().encode("utf-16"),
}


@pytest.mark.parametrize("how", REWRITTEN)
def test_an_editor_s_habits_lose_no_row_and_accuse_nobody(worked: Real, how: str) -> None:
    # Breaks when a byte order mark or the case of a heading throws away every row that the worker wrote.
    path = worked.loop / TRACKED
    before = path.read_bytes()
    path.write_bytes(REWRITTEN[how](before))
    worked.stop()
    assert worked.at == ("BUILD", 1) and not [e for e in worked.lines() if e["event"] == "tamper"]
    assert path.read_bytes() == before
    kept = [copy.read_bytes() for copy in worked.loop.glob("*.by-hand*")]
    assert kept == ([REWRITTEN[how](before)] if how == "utf-16" else [])


def test_a_tracker_that_we_write_over_is_kept_beside_it(worked: Real) -> None:
    # Breaks when tables are gone because a heading is, or when one text is kept again at each Stop.
    path = worked.loop / TRACKED
    path.write_text("# Mine\n\n| AC-1 | all of it |\n")
    assert "edited above its mutable section" in worked.stop()["reason"]
    for _ in range(2):
        path.write_text("# Mine\n")
        assert views.renew_tracker(worked.loop, [PLAN_TEXT]) and path.read_text() == tracker.page(PLAN_TEXT)
    assert (worked.loop / f"{TRACKED}.by-hand").read_text() == "# Mine\n\n| AC-1 | all of it |\n"
    assert (worked.loop / f"{TRACKED}.by-hand-1").read_text() == "# Mine\n"
    assert len(list(worked.loop.glob("*.by-hand*"))) == 2


def test_the_plan_s_version_follows_upwards_only() -> None:
    text = tracker.page(PLAN_TEXT) + "\n### Plan Version: 1\n"
    moved, strange = tracker.renewed(text, [PLAN_TEXT, SECOND, SECOND])
    assert not strange and moved.count("### Plan Version: 3\n") == moved.count("### Plan Version: 1\n") == 1
    assert tracker.renewed(moved, [PLAN_TEXT, SECOND]) == (moved, False), "the first plan's words may be lost"
    bare = tracker.fixed(SECOND) + "\n\n| mine |\n"
    assert tracker.renewed(bare, [PLAN_TEXT, SECOND]) == (bare, False), "a line that is gone stays gone"


def test_a_plan_written_ahead_of_its_amendment_is_set_aside(worked: Real) -> None:
    (worked.loop / "plan-2.md").write_text("# Whatever passes\n")
    amend(worked, SECOND)
    assert (worked.loop / "plan-2.md").read_text() == SECOND
    assert (worked.loop / "plan-2.md.by-hand").read_text() == "# Whatever passes\n"


def test_evidence_amended_and_a_halt_move_the_state_only() -> None:
    state, _ = sim.drive(sim.begun(), Done(id="setup"))
    pins = {"path": ".humanize/evidence.json", "sha256": "d" * 64, "commands": []}
    state, _ = sim.drive(state, Amend(what="evidence", why="w", sha256="d" * 64, evidence=pins))
    assert views.pages_of(state, "amend", "p") == views.Pages() and prompts.amended(state) == ("evidence: w",)
    state, _ = sim.drive(state, Halt(why="enough"))
    assert views.pages_of(state, "halt", "p") == views.Pages() and views.state_name(state) == "stop-state.md"
    assert 'exit_reason: "user: enough"\n' in views.state_text(state)


# --- written by another hand -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("round-0-review-result.md", "Mainline Progress Verdict: ADVANCED\n\nCOMPLETE\n"),  # E2
        ("round-1-review-result.md", "COMPLETE\n"),
        ("round-0-verdict.json", '{"verdict": "complete", "unmet": []}'),
        ("findings.jsonl", ""),
        ("plan-2.md", "# Whatever passes\n"),
    ],
)
def test_what_another_hand_wrote_ahead_is_set_aside_and_reported(worked: Real, name: str, text: str) -> None:
    # Breaks when a worker's own approval stays where readers look for the reviewer's.
    (worked.loop / name).write_text(text)
    said = worked.stop()
    assert worked.at == ("BUILD", 1) and f"{name} was written by another hand" in said["reason"]
    assert (worked.loop / f"{name}.by-hand").read_text() == text and not (worked.loop / name).exists()
    assert [e["data"]["path"] for e in worked.lines() if e["event"] == "tamper"] == [name]


def test_e2_the_reviewer_s_word_stands_where_the_worker_s_stood(real: Real) -> None:
    real.reviewer()
    real.reviews("continue", "Off by one.", mainline="regressed")
    assert real.setup("--reviewer", "codex").returncode == 0
    real.work(0)
    for name in ("round-0-review-result.md", "round-0-verdict.json", "findings.jsonl"):
        (real.loop / name).write_text("COMPLETE\n")
    real.stop()
    assert real.at == ("BUILD", 1)
    result = (real.loop / "round-0-review-result.md").read_text()
    assert "- Verdict: continue\n- Mainline progress: regressed\n" in result and "COMPLETE" not in result
    (row,) = map(json.loads, (real.loop / "findings.jsonl").read_text().splitlines())
    assert (row["claim"], row["state"], row["first"], row["last"]) == ("Off by one.", "open", 0, 0)
    assert len(list(real.loop.glob("*.by-hand"))) == 3
    (real.loop / "findings.jsonl").write_text("")
    real.work(1)
    assert "findings.jsonl was edited by hand" in real.stop("m")["reason"]


def test_publishing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    # Breaks when a crash between files and journal leaves another hand's mark on our own work.
    state = sim.begun()
    made = views.pages_of(state, "setup", PLAN_TEXT)
    first = views.publish(tmp_path, state, made)
    assert views.publish(tmp_path, state, made) == first and not list(tmp_path.glob("*.by-hand"))
    state, _ = sim.drive(state, Done(id="setup", files=first), Amend(what="plan", why="w", sha256="x", text=SECOND))
    made = views.pages_of(state, "amend", PLAN_TEXT)
    second = views.publish(tmp_path, state, made)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert views.publish(tmp_path, state, made) == second
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before and set(second) == {"plan-2.md", "state.md"}
