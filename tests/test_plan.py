"""The plan: rendered from a contract, read back whole, and every tampering named."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpilot_helpers import contract, plan, scaffold
from kernelpilot_helpers.errors import BadRecord

GOOD = Path(__file__).parent / "golden" / "contract" / "good"
REQUEST = scaffold.example(task="addnorm", speedup=1.25)
TEXT = plan.render(REQUEST.contract, REQUEST.cases)


def found(text: str) -> list[str]:
    return [f"{f.where.removeprefix('p.md: ')}: {f.what}" for f in plan.check(plan.parse(text, "p.md"))]


def mm(*regimes: str) -> tuple[contract.Contract, tuple[contract.Case, ...]]:
    made = contract.parse((GOOD / "int8_scaled_mm.toml").read_bytes(), at="c")
    axes = {"M": 64, "N": 4096, "K": 4096}
    cases = tuple(
        contract.Case(case_id=f"c{ix}", axes=axes, flags={"out_dtype": "bf16"}, regime=regime)
        for ix, regime in enumerate(regimes)
    )
    return made, cases


def test_a_rendered_plan_holds_together() -> None:
    """Breaks if what ``kernelpilot plan`` writes is refused by its own parser."""
    assert found(TEXT) == []
    assert found(plan.render(*mm("decode", "prefill"), baseline_profile="v000_baseline/m64: memory-bound")) == []


def test_every_criterion_and_task_comes_back() -> None:
    """Breaks if criteria are cut on the way: an earlier system lost 16 of 21."""
    read = plan.parse(TEXT, "p.md")
    assert [c.id for c in read.criteria] == [f"AC-{n}" for n in range(1, 22)]
    assert tuple(c.topic for c in read.criteria) == plan.TOPICS
    assert all(len(c.positive) == 1 and len(c.negative) == 1 for c in read.criteria)
    assert len(read.tasks) == 12
    assert read.tasks[6] == plan.Task(
        id="T7",
        description="Bring up a minimal correct candidate under time limits",
        targets=("AC-20", "AC-7"),
        tag="coding",
        depends=("T5", "T6"),
    )
    assert (read.title, read.convergence, read.decisions) == ("Plan: addnorm", "converged", ("DEC-1",))
    assert tuple(read.sections) == plan.SECTIONS


def test_the_numbers_are_the_contracts_and_the_policys() -> None:
    """Breaks if a promised number is typed by hand or taken from another device."""
    by = {c.topic: c.text for c in plan.parse(TEXT, "p.md").criteria}
    assert "addnorm on cpu, at least 1.25x the baseline" in by["krw"]
    assert "all 8 cases of W" in by["correctness"]
    assert "all 6 timed cases" in by["benchmark"]
    assert "After 2 rounds in a row with less than 1 % gain over the best, at least 50 new sources" in by["stall"]
    assert "more than 85 % of the measured roof" in by["stop"]
    assert "after 84 rounds" in by["stop"]
    slower = {c.topic: c.negative[0] for c in plan.parse(TEXT, "p.md").criteria}["benchmark"]
    assert "slower by more than 10 %" in slower


def test_generated_edges_do_not_swell_the_workload() -> None:
    """Breaks if a plan made from W and its edges promises another number of cases than one made from W."""
    assert plan.render(REQUEST.contract, (*REQUEST.cases, *contract.edges(REQUEST.contract, REQUEST.cases))) == TEXT


def test_the_contract_shapes_the_plan() -> None:
    """Breaks if source policy, language, margin or regimes are the same words for every task."""
    one = {c.topic: c for c in plan.parse(TEXT, "p.md").criteria}
    two_text = plan.render(*mm("decode", "prefill"), baseline_profile="waiver: no permission for counters")
    two = {c.topic: c for c in plan.parse(two_text, "p.md").criteria}
    single = {c.topic: c for c in plan.parse(plan.render(*mm("decode")), "p.md").criteria}
    assert "the dispatcher is trivial" in single["dispatch"].text
    assert "regimes (tall, wide)" in one["dispatch"].text
    assert "regimes (decode, prefill)" in two["dispatch"].text
    assert one["from_scratch"].text.startswith("This contract allows derived work")
    assert two["from_scratch"].text.startswith("The contract asks for a kernel from scratch")
    assert "Candidates are written in: cuda." in two["language"].text
    assert "slower by more than 1.5 %" in two["benchmark"].negative[0]
    assert "Baseline profile: waiver: no permission for counters" in two_text
    assert plan.parse(two_text, "p.md").decisions == ()


def test_the_baseline_s_profile_is_asked_for_by_its_command_where_there_is_a_gpu() -> None:
    """Breaks when a GPU task's plan leaves open how to profile, or a CPU task's names a command that is refused."""
    on_gpu, on_cpu = plan.render(*mm("decode")), TEXT
    command = "`kernelpilot profile --version baseline`"
    assert on_gpu.count(command) == 2 and command not in on_cpu
    (task,) = (t for t in plan.parse(on_gpu, "p.md").tasks if t.id == "T5")
    assert task.description.startswith(f"Profile the baseline on one representative case: {command};")


COLUMNS = "Task ID | Description | Target AC | Tag (coding|analyze) | Depends On"
ROW_T9 = next(line for line in TEXT.splitlines(keepends=True) if line.startswith("| T9 |"))


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        ("## Goal Description", "## Goal", ["Goal Description: section missing"]),
        ("### Upper Boundary", "### Upper", ["Path Boundaries: 'Upper Boundary' missing"]),
        ("- Cannot use: ", "- ", ["Path Boundaries: 'Cannot use' missing"]),
        ("Milestone", "Stage", ["Dependencies and Sequence: 'Milestone' missing"]),
        ("- AC-7 (correctness):", "- AC-8 (correctness):", [
            "Acceptance Criteria: AC-8 comes twice",
            "Task Breakdown: T3 targets AC-7, which does not exist",
            "Task Breakdown: T7 targets AC-7, which does not exist",
        ]),
        ("(stall)", "(slack)", [
            "Acceptance Criteria: no criterion for 'stall': write it as AC-n (stall): ...",
            "Acceptance Criteria: AC-18: unknown topic 'slack'",
        ]),
        ("    - Its HEAD and status are the same at the end as at the start.\n", "", [
            "Acceptance Criteria: AC-2 has no Positive Tests",
        ]),
        ("| AC-2 | analyze | T1 |", "| AC-2 | think | T1 |", [
            "Task Breakdown: T2: tag 'think', want coding or analyze",
        ]),
        ("| AC-2 | analyze | T1 |", "| AC-2 | analyze | T99 |", [
            "Task Breakdown: T2 depends on T99, which does not exist",
        ]),
        ("| AC-2 | analyze | T1 |", "| AC-22 | analyze | T1 |", [
            "Task Breakdown: T2 targets AC-22, which does not exist",
            "Task Breakdown: no task targets AC-2",
        ]),
        ("| AC-2 | analyze | T1 |", "| - | analyze | T1 |", [
            "Task Breakdown: T2 targets no criterion", "Task Breakdown: no task targets AC-2",
        ]),
        ("| AC-7, AC-8 | coding | T1 |", "| AC-7, AC-8 | coding | T5 |", [
            "Task Breakdown: tasks wait for each other: T3, T5, T7, T8, T9, T10, T11, T12",
        ]),
        (ROW_T9, "", [
            "Task Breakdown: T12 depends on T9, which does not exist", "Task Breakdown: no task targets AC-11",
        ]),
        ("| T9 |", "| T8 |", [
            "Task Breakdown: T8 comes twice", "Task Breakdown: T12 depends on T9, which does not exist",
        ]),
        ("| Target AC |", "| Target |", [
            f"Task Breakdown: want a table with the columns {COLUMNS}",
        ]),
        ("Convergence Status: converged", "Convergence Status: open", [
            "Deliberation: Convergence Status 'open', want converged or partially_converged",
        ]),
        ("- DEC-1:", "- Question:", ["Pending User Decisions: want DEC-n entries, or the word None"]),
        ("- DEC-1:", "- DEC-1: a\n- DEC-1:", ["Pending User Decisions: DEC-1 comes twice"]),
        ("## Feasibility Hints", "## Goal Description\n\nagain\n\n## Feasibility Hints", [
            "Goal Description: section comes twice",
        ]),
    ],
)  # fmt: skip
def test_tampering_is_named(old: str, new: str, want: list[str]) -> None:
    """Breaks if a plan with this part missing, renamed or crossed out would start a loop."""
    assert old in TEXT
    assert found(TEXT.replace(old, new)) == want


def test_an_empty_section_and_a_wrong_order_are_named() -> None:
    """Breaks if a heading alone, or headings in another order, pass."""
    head, hints = TEXT.split("## Feasibility Hints\n\n")
    body, rest = hints.split("## Dependencies and Sequence\n\n")
    assert found(f"{head}## Feasibility Hints\n\n## Dependencies and Sequence\n\n{rest}") == [
        "Feasibility Hints: section empty"
    ]
    sequence, rest = rest.split("## Task Breakdown\n\n")
    swapped = (
        f"{head}## Dependencies and Sequence\n\n{sequence}## Feasibility Hints\n\n{body}## Task Breakdown\n\n{rest}"
    )
    assert [f.partition(" > ")[0] for f in found(swapped)] == [
        "Dependencies and Sequence: sections out of order: want Goal Description"
    ]


def test_parts_of_a_criterion_are_read() -> None:
    """Breaks if AC-n.m is lost, or needs tests and a task of its own."""
    text = TEXT.replace("- AC-9 (research):", "- AC-8.1: p10 and p90 too\n- AC-9 (research):")
    assert found(text) == []
    assert ("AC-8.1", "p10 and p90 too") in [(c.id, c.text) for c in plan.parse(text, "p.md").criteria]
    assert found(TEXT.replace("- AC-9 (research):", "- AC-77.1: lost\n- AC-9 (research):")) == [
        "Acceptance Criteria: AC-77.1 is a part of a criterion that does not exist",
        "Task Breakdown: no task targets AC-77.1",
    ]


def test_a_text_that_is_no_plan() -> None:
    """Breaks if a lost table or an empty file ends in a traceback."""
    with pytest.raises(BadRecord, match="no section heading"):
        plan.parse("hello\n", "p.md")
    start, rest = TEXT.split("| Task ID")
    text = start + "no table\n\n## Deliberation" + rest.split("## Deliberation")[1]
    assert "Task Breakdown: want a table with the columns" in found(text)[0]


def test_code_blocks_do_not_make_sections() -> None:
    """Breaks if a quoted plan inside a fence counts as the plan's own headings."""
    fence = "```\n## Goal Description\n- AC-1 (repo): quoted\n```\n\n## Feasibility Hints"
    assert found(TEXT.replace("## Feasibility Hints", fence)) == []
