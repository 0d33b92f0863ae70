"""Gate A's rules on what the worker wrote: above all the goal tracker, where every criterion must arrive."""

from __future__ import annotations

import dataclasses

import pytest

from rlcr import gate, step, tracker
from rlcr.forms import criteria_of
from rlcr.gate import Papers
from rlcr.model import Problem, State
from rlcr.repo import Facts
from tests.rlcr import sim
from tests.rlcr.real import ACS, PLAN_TEXT, TABLES, Real

FACTS = Facts(head="f" * 40, branch="main", tree="t", dirty=(), hidden=(), tracked=(), base_is_ancestor=True)
ACTIVE = "#### Active Tasks\n\n| Task | Target AC | Status | Tag | Owner | Notes |\n|---|---|---|---|---|---|\n"
DONE = (
    "### Completed and Verified\n\n| AC | Task | Completed Round | Verified Round | Evidence |\n|---|---|---|---|---|\n"
)
DEFERRED = (
    "### Explicitly Deferred\n\n| Task | Original AC | Deferred Since | Justification | When to Reconsider |\n"
    "|---|---|---|---|---|\n"
)


def state(phase: str = "BUILD") -> State:
    return dataclasses.replace(sim.begun(), phase=phase)  # type: ignore[arg-type]


def held(
    tables: str | None, ids: tuple[str, ...] = ACS, phase: str = "BUILD", big: tuple[str, ...] = ()
) -> list[Problem]:
    """What the rule on the tracker says; the other rules have their own tests."""
    papers = Papers(
        plan_sha256="a" * 64, summary="s", contract="c", final="f", tables=tables, criteria=ids, too_big=big
    )
    return [p for p in gate.problems(state(phase), FACTS, papers) if p.rule == "tracker"]


def rows(*lines: str) -> str:
    return "".join(line + "\n" for line in lines) + "\n"


# --- a round ---------------------------------------------------------------------------------------------------------


def test_of_21_criteria_the_one_without_a_row_is_named_alone() -> None:
    # Breaks when the list is cut, when one row is enough, or when each missing criterion makes a problem of its own.
    lines = [f"| do it | {ac} | pending | coding | me | - |" for ac in ACS if ac != "AC-13"]
    (found,) = held(ACTIVE + rows(*lines))
    assert (found.where, found.what) == ("goal-tracker.md", "no row names AC-13")
    assert "Active Tasks (Target AC)" in found.fix and found.rule in step.PAPERS
    assert held(ACTIVE + rows(*lines) + DEFERRED + rows("| t | AC-13 | 0 | later | never |")) == []
    assert held(ACTIVE + rows(*lines) + DONE + rows("| AC-13 | t | 0 | 0 | |")) == [], "evidence is asked at the end"


def test_a_worker_s_table_may_look_as_markdown_allows() -> None:
    # Breaks when ranges, escaped pipes, missing edge pipes, another order or other words of a heading lose a row.
    ids = (*(f"AC-{n}" for n in range(1, 12)), "AC-12.1")
    tables = (
        "#### **Active tasks** (all)\n\n"
        "Target ACs | Tag | What\n:-- | :-: | --:\nAC-1 to AC-3 | coding | a\nAC-4, AC-5 | `x \\| y` | b\n\n"
        "##### Second wave\n\n| What \\| why | *Target AC* |\n| --- | --- |\n| a \\| b | AC-6..AC-8 |\n\n"
        "| c | AC-12 |\n"
        "### Completed and Verified\n| Evidence | Task | Acceptance Criteria |\n|:--|:--|:--|\n| run 4 | t | ac-9 |\n"
        "### Explicitly Deferred\n| Task | Original AC | Justification |\n|-|-|-|\n| t | AC-10\u201311 | no device |\n"
    )
    assert held(tables, ids) == []
    assert held(tables, ids, "FINALIZE")[0].what == "neither completed nor deferred: AC-1 to AC-8, AC-12.1"


@pytest.mark.parametrize(
    "tables",
    [
        f"{ACTIVE}<!-- | t | AC-1 | pending | | | | -->\n",
        f"{ACTIVE}<!--\n| t | AC-1 | pending | | | |\n",  # a comment that is not closed
        f"{ACTIVE}```\n| t | AC-1 | pending | | | |\n```\n",
        f"{ACTIVE}\nAC-1 is done.\n",
        f"{ACTIVE}| AC-1 | | pending | | | AC-1 |\n",  # named beside its column
        "#### Active Tasks\n\n| t | AC-1 | pending |\n",  # no header: which cell is which?
        "### Queued Side Issues\n\n| Issue | Target AC |\n|---|---|\n| t | AC-1 |\n",
        f"{ACTIVE}### Plan\n\n| t | AC-1 | pending | | | |\n",
        "",
    ],
)
def test_what_is_no_row_of_the_tables_names_nothing(tables: str) -> None:
    # Breaks when the id anywhere in the file is enough: each of these is a form that looks kept and is not.
    assert [p.what for p in held(tables, ("AC-1",))] == ["no row names AC-1"]


def test_many_missing_ids_fit_into_one_line() -> None:
    # Breaks when a plan of a hundred criteria fills the 2 KB that a client shows.
    ids = (*(f"AC-{n}" for n in range(1, 101)), "AC-200", "AC-201.5")
    assert held("", ids)[0].what == "no row names AC-1 to AC-100, AC-200, AC-201.5"
    assert tracker.listed(("AC-1", "AC-2", "AC-3", "AC-5")) == "AC-1, AC-2, AC-3, AC-5"


def test_a_plan_without_ids_and_a_round_without_work_hold_nothing() -> None:
    assert held("", ()) == []
    papers = Papers(plan_sha256="a" * 64, summary=None, contract=None, final=None, tables=None, criteria=ACS)
    waiting = dataclasses.replace(state("CODE_REVIEW"), work_expected=False)
    assert gate.problems(waiting, FACTS, papers) == ()
    assert [p.rule for p in gate.problems(state("CODE_REVIEW"), FACTS, papers)] == ["summary", "contract", "tracker"]


def test_a_tracker_that_is_gone_or_too_large_is_a_problem() -> None:
    assert [p.what for p in held(None)] == ["missing"]
    assert [p.what for p in held("", big=("goal-tracker.md",))] == ["larger than 4194304 bytes"]
    assert [p.what for p in held(None, (), "FINALIZE")] == ["missing"]


def test_digits_without_end_are_no_crash() -> None:
    # Breaks when an id of many digits reaches int(), whose refusal would block and park the loop as our own bug.
    cell = f"AC-{'9' * 9000}-{'9' * 9000}"
    assert [p.what for p in held(ACTIVE + rows(f"| t | {cell} | | | | |"), ("AC-1",))] == ["no row names AC-1"]
    assert tracker.listed((f"AC-{'9' * 9000}",)).startswith("AC-99")


# --- finalize --------------------------------------------------------------------------------------------------------


def test_at_the_end_every_criterion_stands_on_evidence_or_on_a_reason() -> None:
    # Breaks when an active task, or a row that says nothing, is enough to complete.
    ids = ("AC-1", "AC-2", "AC-3", "AC-4")
    active = ACTIVE + rows("| t | AC-1 to AC-4 | done | | | |")
    assert held(active, ids) == []
    done = active + DONE + rows("| AC-1, AC-2 | t | 0 | 0 | lineage.jsonl |", "| AC-3 | t | 0 | 0 | - |")
    (found,) = held(done, ids, "FINALIZE")
    assert found.what == "neither completed nor deferred: AC-4; no evidence or justification: AC-3"
    late = done + DEFERRED + rows("| t | AC-4 | 3 | TBD | x |")
    assert held(late, ids, "FINALIZE")[0].what == "no evidence or justification: AC-3, AC-4"
    good = late + rows("| t | AC-3 | 3 | no such device here | x |", "| t | AC-4 | 3 | the user said so | x |")
    assert held(good, ids, "FINALIZE") == []


@pytest.mark.parametrize("cell", ["", "-", "\u2014", "...", "**TBD**", "`todo`", "none", "N/A", "?", "_pending_"])
def test_a_cell_that_says_nothing_is_no_evidence(cell: str) -> None:
    tables = DONE + rows(f"| AC-1 | t | 0 | 0 | {cell} |")
    assert [p.what for p in held(tables, ("AC-1",), "FINALIZE")] == ["no evidence or justification: AC-1"]


def test_evidence_is_known_by_its_heading() -> None:
    # Breaks when the last cell of a row, whatever it is, counts as evidence.
    other = "### Completed and Verified\n\n| AC | Task |\n|---|---|\n| AC-1 | t |\n"
    assert held(other, ("AC-1",), "FINALIZE")[0].what == "no evidence or justification: AC-1"
    moved = "### Completed and Verified\n\n| Evidence | AC |\n|---|---|\n| run 4 | AC-1 |\n"
    assert held(moved, ("AC-1",), "FINALIZE") == []


# --- the fixed part --------------------------------------------------------------------------------------------------

TASKS = (
    "## Goal\n\nfast\n\n## Acceptance Criteria\n\n- AC-1: a\n- AC-2: b\n\n## Task Breakdown\n\n"
    "| Task ID | Description | Target AC | Tag (coding\\|analyze) | Depends On |\n|---|---|---|---|---|\n"
    "| T1 | lock a \\| b | AC-1 | coding | - |\n| T2 | improve | AC-1, AC-2 | analyze | T1 |\n\n"
    "| Case | AC |\n|---|---|\n| small | AC-2 |\n"
)


def test_the_plan_s_tasks_stand_in_the_tracker_as_pending() -> None:
    # Breaks when the worker must copy them, when a pipe moves a cell, or when something is completed from the start.
    assert tracker.lifted(TASKS) == (
        ("T1: lock a | b", "AC-1", "pending", "coding", "", ""),
        ("T2: improve", "AC-1, AC-2", "pending", "analyze", "", "after T1"),
    )
    tables = tracker.below(tracker.page(TASKS), TASKS)
    assert "| T1: lock a \\| b | AC-1 | pending | coding |  |  |\n" in tables
    assert held(tables, ("AC-1", "AC-2")) == []
    assert held(tables, ("AC-1", "AC-2"), "FINALIZE")[0].what == "neither completed nor deferred: AC-1, AC-2"
    assert not tracker.completed(tables) and tracker.lifted(PLAN_TEXT) == ()


def test_a_plan_without_known_headings_is_quoted_whole() -> None:
    # Breaks when a placeholder stands where nobody may write, so that no criterion of the plan arrives.
    plan = "# Make it fast\n\nAC-1: correct\n\n## MUTABLE SECTION\n\n* **AC-2**: faster\n\n| AC-9 |\n|---|\n| no |\n"
    text = tracker.page(plan)
    assert "> # Make it fast\n>\n> AC-1: correct\n" in text and "[To be" not in text
    assert criteria_of(plan) == ("AC-1", "AC-2", "AC-9")
    assert tracker.below(text, plan).startswith("\n\n### Plan Version: 1\n")
    only_goal = "## Objective\n\nfast\n\n## What must hold\n\n- AC-3: x\n"
    assert "### Ultimate Goal\n\nfast\n" in tracker.page(only_goal) and "> - AC-3: x\n" in tracker.page(only_goal)
    assert criteria_of("## Goal\n\nAC-7: no\n\n## Acceptance Criteria\n\n- AC-1: a\n") == ("AC-1",)


def test_a_fenced_heading_in_the_plan_does_not_end_the_fixed_part() -> None:
    # Breaks when the rest of the plan is taken for the worker's tables, and with it every row that the plan quotes.
    plan = (
        "## Acceptance Criteria\n\n- AC-1: as below\n\n```\n## MUTABLE SECTION\n"
        f"{DONE}| AC-1 | t | 0 | 0 | quoted |\n```\n"
    )
    text = tracker.page(plan)
    assert not tracker.completed(tracker.below(text, plan))
    edited = text.replace("as below", "as I like") + "| mine |\n"
    assert tracker.renewed(edited, [plan]) == (text + "| mine |\n", True)
    assert tracker.renewed(text + "| mine |\n", [plan]) == (text + "| mine |\n", False)
    assert tracker.renewed("", [plan]) == (text, True)


# --- through the real hook -------------------------------------------------------------------------------------------


def test_a_lost_criterion_costs_no_round_and_no_review(looped: Real) -> None:
    looped.work(0)
    path = looped.loop / "goal-tracker.md"
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "task AC-13" not in line))
    said = looped.stop()
    assert "tracker goal-tracker.md: no row names AC-13 -> a row in Active Tasks" in said["reason"]
    assert "papers and order only" in said["reason"] and looped.at == ("BUILD", 0)
    path.write_text(path.read_text() + "| late | AC-13 | 0 | the user said so | - |\n")
    looped.stop("again")
    assert looped.at == ("BUILD", 1)


def test_finalize_waits_for_the_evidence_cells(looped: Real) -> None:
    looped.track(tables={**TABLES, "### Completed and Verified": "| {ac} | task {ac} | 0 | 0 | |"})
    looped.work(0)
    looped.answer(met=True)
    looped.stop()
    assert looped.at == ("FINALIZE", 0)
    prompt = (looped.loop / "finalize-prompt.md").read_text()
    assert "Completed and Verified whose Evidence is filled in" in prompt
    (looped.loop / "finalize-summary.md").write_text("# Finalize summary\n\nall made\n")
    said = looped.stop("final")
    assert "no evidence or justification: AC-1 to AC-21" in said["reason"] and looped.at == ("FINALIZE", 0)
    path = looped.loop / "goal-tracker.md"
    path.write_text(path.read_text().replace("| 0 | 0 | |", "| 0 | 0 | gate |"))
    assert "COMPLETE" in looped.stop("again")["systemMessage"]


def test_a_removed_tracker_comes_back_as_a_form_and_a_vast_one_is_left_alone(worked: Real) -> None:
    path = worked.loop / "goal-tracker.md"
    path.unlink()
    said = worked.stop()
    assert "goal-tracker.md was removed" in said["reason"] and "no row names AC-1 to AC-21" in said["reason"]
    worked.track()
    path.write_text(path.read_text() + "x" * (1 << 22))
    said = worked.stop("vast")
    assert "tracker goal-tracker.md: larger than 4194304 bytes" in said["reason"]
    assert "edited" not in said["reason"] and path.stat().st_size > 1 << 22, "what it holds is not thrown away"
    assert not list(worked.loop.glob("*.by-hand*")), "neither an absent file nor one that is left alone needs a copy"


def test_a_summary_of_a_megabyte_is_one_problem_among_others(worked: Real) -> None:
    # Breaks when it is read whole, or when it hides what else is wrong.
    (worked.loop / "round-0-summary.md").write_text("x" * (1 << 20))
    junk = b"\xff\xfe\0| AC-1 |\n" * 1000
    (worked.loop / "goal-tracker.md").write_bytes(junk)
    said = worked.stop()
    assert "round-0-summary.md: larger than 65536 bytes" in said["reason"]
    assert "goal-tracker.md was edited above its mutable section" in said["reason"] and worked.at == ("BUILD", 0)
    assert len(said["reason"].encode()) <= 2048
    assert (worked.loop / "goal-tracker.md.by-hand").read_bytes() == junk
