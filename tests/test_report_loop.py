"""The page's loop, gate and map: told from facts, honest about what is absent, safe with foreign text."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers.evidence import CommitFacts, Evidence, GitFacts, LoopFacts, StopFacts
from kernelpilot_helpers.gate import Done, Report
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.report import ReportData, render
from kernelpilot_helpers.report.loop_part import placed
from kernelpilot_helpers.report.map_part import heat
from tests.report_sim import EVIL, red, row, seven, tuned
from tests.test_report import _Page

HEADS = ("a" * 40, "b" * 40, "d" * 40, "e" * 40)


def stops() -> tuple[StopFacts, ...]:
    return (
        StopFacts(round=0, head=HEADS[0], outcome="setup"),
        StopFacts(round=1, head=HEADS[1], passed=False, findings=("10:runs", EVIL), outcome="block", reason=EVIL),
        StopFacts(round=1, head=HEADS[2], passed=True, outcome="COMPLETE"),
    )


def loop_facts(**more: Any) -> LoopFacts:
    fields: dict[str, Any] = {
        "directory": ".humanize/rlcr/2026-11-30_08-00-00",
        "phase": "COMPLETE",
        "round": 1,
        "max_rounds": 84,
        "reviewer": "evidence-only",
        "base_commit": HEADS[0],
        "plan_sha256": "",
        "stops": stops(),
    }
    return LoopFacts(**{**fields, **more})


def evidence(**more: Any) -> Evidence:
    rows = (
        row(1, "IMPROVED", 1.2, 1.2, commit=HEADS[1]),
        row(2, "WRONG", commit=HEADS[2]),
        row(3, "SAME", 1.0, commit=HEADS[3]),
    )
    fault = Fault(where="contract.toml", what="not read here", fix="-")
    fields: dict[str, Any] = {
        "root": "",
        "contract": fault,
        "lock": fault,
        "rows": rows,
        "git": GitFacts(head=HEADS[3], commits=tuple(CommitFacts(commit=head, paths=()) for head in HEADS)),
        "loop": loop_facts(),
    }
    return Evidence(**{**fields, **more})


def page(facts: Evidence | None, gate: Report | None = None) -> str:
    return render(msgspec.structs.replace(seven(), evidence=facts, gate=gate))


def cells(html: str, heading: str) -> list[list[str]]:
    """Text of the table cells below a heading, by line."""
    part = html.partition(f"<h2>{heading}</h2>")[2].partition("<h2>")[0]
    lines = re.findall(r"<tr>\n(.*?)</tr>", part, re.S)
    return [[" ".join(_Page(cell).text.split()) for cell in re.findall(r"<td.*?</td>", one, re.S)] for one in lines]


def test_each_stop_is_a_line_with_its_gate_and_the_attempts_that_led_to_it() -> None:
    """Breaks if an attempt is shown in another round than the one whose commits hold it, or a red gate is not told."""
    lines = cells(page(evidence()), "Rounds of the loop")
    assert lines == [
        ["0", "aaaaaaaaaa", "-", "-", "set-up", "-"],
        ["1", "bbbbbbbbbb", "red", f"10:runs{EVIL}", f"block{EVIL}", "v001_try1 IMPROVED"],
        ["1", "dddddddddd", "pass", "-", "COMPLETE", "v002_try2 WRONG"],
        ["1", "-", "-", "-", "no Stop since", "v003_try3 SAME"],
    ]


def test_without_git_the_round_in_the_row_places_it() -> None:
    """Breaks if a row whose commit git does not know is lost, or is put before a Stop of its own round."""
    facts = evidence(git=GitFacts(head=""))
    assert placed(facts, stops(), row(9, "SAME", round=1)) == 2
    assert placed(facts, stops(), row(9, "SAME", round=5)) == 3
    assert placed(facts, stops(), row(9, "SAME")) == 3


def test_the_end_and_the_reviewer_are_told() -> None:
    """Breaks if a reviewer that read no code is passed off as a review, or the phase is left out."""
    text = _Page(page(evidence())).text
    assert "COMPLETE in round 1 of at most 84: the loop was accepted" in text
    assert "When this page was written: COMPLETE" in text
    assert "The reviewer was evidence-only: it read no code, it completed what the gate had passed." in text
    early = _Page(page(evidence(loop=loop_facts(phase="FINALIZE")))).text
    assert "Reviewer: evidence-only; it reads no code." in early and "it completed what" not in early
    other = _Page(page(evidence(loop=loop_facts(reviewer="codex", phase="MAXITER")))).text
    assert "Reviewer: codex." in other and "read no code" not in other
    assert "the rounds were used up without acceptance" in other


def test_what_the_loop_was_judged_by_is_told_with_every_amendment() -> None:
    """Breaks if a plan that was changed on the way looks like the one that the loop began with."""
    amended = _Page(page(evidence(loop=loop_facts(amends=("plan: AC-3 is 1.2x", f"evidence: {EVIL}"))))).text
    assert f"Amended while the loop ran: plan: AC-3 is 1.2x; evidence: {EVIL}" in amended
    assert "Amended while the loop ran: none, neither plan nor evidence" in _Page(page(evidence())).text


def test_a_damaged_journal_is_told_on_the_page() -> None:
    """Breaks if a loop is shown as sound while its journal is not."""
    fault = Fault(where="journal.jsonl:4", what="the chain does not hold", fix="see journal.jsonl.torn")
    text = _Page(page(evidence(loop=loop_facts(faults=(fault,), tampered=("state.md: edited",))))).text
    assert "edited by hand: state.md: edited" in text
    assert "journal.jsonl:4: the chain does not hold" in text


def test_the_gates_findings_are_all_there_worst_first() -> None:
    """Breaks if a finding, its fix, what is missing, or a rule that judged nothing is left out."""
    trend = msgspec.structs.replace(red().findings[0], severity="trend", rule="3")
    gate = msgspec.structs.replace(red(), findings=(trend, *red().findings))
    html = page(evidence(), gate)
    assert cells(html, "What the gate said when this page was written") == [
        ["10", "block", EVIL, "no row cites this run", "kernelpilot attempt"],
        ["3", "trend", EVIL, "no row cites this run", "kernelpilot attempt"],
    ]
    text = _Page(html).text
    assert "Not done: no target met" in text
    assert "a confirmed version" in text
    assert "rule 24: no performance map" in text
    assert "<script" not in html.lower()


def test_a_passing_gate_says_so() -> None:
    """Breaks if pass and done are mixed up."""
    text = " ".join(
        _Page(page(evidence(), Report(passed=True, done=Done(met=False, why="target not met")))).text.split()
    )
    assert "pass Not done: target not met" in text
    assert "No findings." in text


@pytest.mark.parametrize("facts", [None, "no loop"])
def test_a_page_without_loop_gate_or_map_says_what_is_absent(facts: str | None) -> None:
    """Breaks if the page needs a loop, or is silent where it has none."""
    text = _Page(page(evidence(loop=None) if facts else None)).text
    assert ("No loop is on record" if facts else "journal was not read") in text
    assert "The gate was not asked for this page." in text
    assert ("Not tuned" if facts else "map was not read") in text


def test_the_map_frames_the_fastest_and_colours_by_speed() -> None:
    """Breaks if the best version of a case is another one, or a slow-down looks like a gain."""
    html = page(evidence(tuning=tuned()))
    found = re.findall(r'<td class="n heat(\d)( top)?">([\d.]+x)', html)
    assert found == [("3", " top", "1.50x"), ("0", "", "0.90x"), ("2", "", "1.10x"), ("5", " top", "3.00x")]
    assert ["decode", "1 <= M <= 8", "v001_fused", "1.50x on m1"] in [
        [" ".join(_Page(c).text.split()) for c in re.findall(r"<td.*?</td>", line)] for line in html.split("\n")
    ]
    assert heat(float("nan")) == 1


def test_a_case_that_nobody_beats_has_no_frame_and_a_missing_cell_says_so() -> None:
    """Breaks if the least slow version is praised, or an unmeasured one looks equal."""
    facts = tuned()
    assert facts.map is not None
    slow = msgspec.structs.replace(facts.map, cells=(facts.map.cells[1],))
    html = page(evidence(tuning=dataclasses.replace(facts, map=slow)))
    assert " top" not in html.partition("Performance map and dispatcher")[2]
    assert html.count("not measured") == 3


@pytest.mark.parametrize("n", [0, 1, 84])
def test_the_timeline_stays_in_its_picture(n: int) -> None:
    """Breaks if many rounds leave the drawing, or none divides by zero."""
    many = tuple(StopFacts(round=ix, head="", passed=ix % 3 > 0) for ix in range(n))
    html = page(evidence(loop=loop_facts(stops=many)))
    drawing = re.search(r'<svg viewBox="0 0 760 72".*?</svg>', html, re.S)
    assert drawing is not None
    xs = [float(x) for x in re.findall(r' (?:cx|x|x1|x2)="([\d.-]+)"', drawing[0])]
    assert all(0 <= x <= 760 for x in xs)
    assert drawing[0].count('class="dot selected gate"') == sum(ix % 3 > 0 for ix in range(n))
    assert drawing[0].count('class="wrong"') == sum(ix % 3 == 0 for ix in range(n))


def test_the_smallest_page_still_renders() -> None:
    """Breaks if the new sections need more than a task's name."""
    text = _Page(render(ReportData(task="t"))).text
    assert "Rounds of the loop" in text and "What the gate said when this page was written" in text
