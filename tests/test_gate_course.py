"""Where the ledger's numbers lead, on ledgers written by hand: on, widen, decide, finish; and what that does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpilot_helpers import gate
from kernelpilot_helpers.autotune import PerformanceMap
from kernelpilot_helpers.cli import gate_command
from kernelpilot_helpers.evidence.model import MISSING, CommitFacts, Evidence, StopFacts, TuningFacts
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.gate import Course
from kernelpilot_helpers.gate.course import course
from kernelpilot_helpers.gate.research import MARK
from kernelpilot_helpers.gate.weak import streak
from kernelpilot_helpers.knowledge.clones import opened_note
from kernelpilot_helpers.ledger import IDEAS_PATH, Idea, Row
from kernelpilot_helpers.policy import POLICY, Policy
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee import gating, ledgers, selecting
from tests.contract.test_docs import parses
from tests.evidence_sim import BASE, BASELINE, GIT, LOOP, ROWED, SAID, TASK, TRY, decision, evidence, gain, row, source
from tests.loop_sim import Loop
from tests.referee_sim import attempt, clock, write_variant
from tests.tuning_sim import built, tuned

LATE, LATER = "d" * 40, "e" * 40
SHORT = row(round=0, gain=gain(1.05), vs_baseline=gain(1.05))
"""An improvement of 5 % over the incumbent that is short of the target of 10 %."""
COMMITS = (*GIT.commits, CommitFacts(commit=LATE, paths=()), CommitFacts(commit=LATER, paths=()))


def weak(number: int, by: float = 1.002, **changes: Any) -> Row:
    """One attempt of a round that gained 0.2 %."""
    fields: dict[str, Any] = {
        "version": f"v{number + 1:03d}_try", "round": number,
        "gain": gain(by), "vs_baseline": None, "verdict": "AMBIGUOUS", "runs": (),
        "confirmed_by": None, "status": "rejected", "reason": "flat: x", "at_head": ROWED,
    }  # fmt: skip
    return row(**{**fields, **changes})


def at(*rows: Row, ideas: tuple[Idea, ...] = (), held: dict[str, int] | None = None, **changes: Any) -> Evidence:
    """Rows after the baseline's, and the ideas that each commit's log held."""
    git = replace(GIT, commits=COMMITS, ideas_held=held or {})
    return evidence(rows=(BASELINE, *rows), ideas=ideas, git=git, **changes)


idea = source
NEXT = f"kernelpilot knowledge next --want {{}} --seen {IDEAS_PATH}"


def can_be_typed(line: str) -> bool:
    """Whether the real parser takes a command in a repo, where the log of sources lies."""
    return parses(line.partition("  # ")[0].replace(IDEAS_PATH, __file__)) == ""


def leads(e: Evidence) -> tuple[str, int]:
    found = course(e, POLICY)
    return found.kind, found.weak


def red(e: Evidence) -> list[tuple[str, str, str]]:
    """(rule, severity, what) of what rule 30 finds half way."""
    return [(f.rule, f.severity, f.what) for f in gate.decide(e, POLICY, final=False).findings if f.rule == "30"]


def test_the_numbers_of_the_policy_that_these_ledgers_are_written_for() -> None:
    """Breaks when a promise moves and the counts below would be read against another one."""
    assert (POLICY.weak_gain, POLICY.weak_rounds, POLICY.plateau_rounds, POLICY.research_sources) == (0.01, 2, 4, 50)


def test_one_weak_round_is_nothing_two_widen_and_four_want_a_decision() -> None:
    """Breaks when weak rounds are miscounted by one at any of the four steps."""
    rows = [SHORT]
    seen = [leads(at(*rows))]
    for number in range(1, 6):
        rows.append(weak(number))
        seen.append(leads(at(*rows)))
    assert seen == [("on", 0), ("on", 1), ("widen", 2), ("widen", 3), ("decide", 4), ("decide", 5)]


def test_widen_counts_new_sources_once_by_key_from_the_last_strong_round_on() -> None:
    """Breaks when an idea noted twice, reread, or from before the weak rounds counts as a new source."""
    old, new, other = idea("old.cu"), idea("new.cu"), idea("other.cu")
    again, reread = idea("new.cu", reread_reason="x"), idea("old.cu", reread_reason="x")
    log = (old, new, again, other, reread)
    e = at(SHORT, weak(1), weak(2), ideas=log, held={BASE: 1, LATE: 3, LATER: 5})
    found = course(e, POLICY)
    assert (found.kind, found.weak, found.have, found.want) == ("widen", 2, 2, 50)
    left_out = "not counted: 2 of a source or of bytes noted before"
    assert found.why == f"2 weak rounds in a row (round 1, round 2); 2 of 50 new sources noted; {left_out}"
    assert found.lines[0].startswith(NEXT.format(48) + "  # ") and found.lines[1].startswith(MARK)
    assert "48 more to go" in found.lines[1] and "at least 5 hypotheses" in found.lines[2]
    # The round that was not weak was written at a HEAD that held three of them: one is left, and it is not new.
    after = course(at(msgspec.structs.replace(SHORT, at_head=LATE), weak(1), weak(2), ideas=(*log[:3], reread),
                      held={BASE: 1, LATE: 3, LATER: 4}), POLICY)  # fmt: skip
    assert (after.kind, after.have) == ("widen", 0)
    # Not committed yet: the newest of all. Without a strong round or decision: since the epoch began.
    assert course(at(weak(1), weak(2), ideas=(old, new), held={BASE: 1}), POLICY).have == 1
    lost = msgspec.structs.replace(SHORT, at_head="9" * 40)
    assert course(at(lost, weak(1), weak(2), ideas=log, held={BASE: 1}), POLICY).have == 0
    assert red(e) == []


def test_a_decision_without_a_search_begins_no_count_anew() -> None:
    """Breaks when the course forgets the search that rule 19 still wants, because something was decided."""
    log = tuple(idea(f"{n}.cu") for n in range(5))
    went_on = decision("select: continue: 3 % from wider loads", at_head=LATE, version="v001_fused")
    rows = (SHORT, weak(1), weak(2), went_on, weak(3, at_head=LATER), weak(4, at_head=LATER))
    found = course(at(*rows, ideas=log, held={TRY: 1, LATE: 4, LATER: 5}), POLICY)
    assert (found.kind, found.weak, found.have) == ("widen", 4, 4)
    soon = course(at(*rows[:4], ideas=log, held={TRY: 1, LATE: 4, LATER: 5}), POLICY)
    assert (soon.kind, soon.weak, soon.have) == ("widen", 2, 4)


def test_enough_sources_leave_the_hypotheses_and_the_try() -> None:
    """Breaks when somebody who has read enough is sent to read more, or past the counter to nothing."""
    log = tuple(idea(f"{n}.cu", SAID[n % 5]) for n in range(50))
    e = at(SHORT, weak(1), weak(2), ideas=log, held={LATE: 50})
    found = course(e, POLICY)
    assert (found.kind, found.have, len(found.lines)) == ("widen", 50, 1)
    assert next_line(e).startswith(f"kernelpilot attempt src/{TASK}/variants/NAME --source KEY ")
    one = at(SHORT, weak(1), weak(2), ideas=tuple(idea(f"{n}.cu") for n in range(50)), held={LATE: 50})
    assert (course(one, POLICY).have, len(course(one, POLICY).lines)) == (50, 4)
    assert next_line(one).startswith(NEXT.format(4)), "a hypothesis comes with a source of its own"
    fewer = replace(e, ideas=log[1:])
    why = "2 weak rounds in a row (round 1, round 2); 49 of 50 new sources noted"
    assert next_line(fewer) == f"{NEXT.format(1)}  # {why}" and can_be_typed(next_line(fewer))


def next_line(e: Evidence) -> str:
    """What ``next`` says of a ledger of which no rule has anything to mend."""
    report = gate.Report(passed=True, done=gate.decide(e, POLICY, final=False).done, course=course(e, POLICY))
    return gate.next_step(e, report)


def test_a_plateau_blocks_until_a_decision_is_on_record() -> None:
    """Breaks when a round may end undecided, or a decision of any of the three kinds does not end the plateau."""
    rows = (SHORT, *(weak(n) for n in range(1, 5)))
    e = at(*rows)
    found = course(e, POLICY)
    assert (found.kind, found.weak, found.have, found.want) == ("decide", 4, 0, 50)
    assert red(e) == [("30", "block", "plateau: 4 weak rounds in a row and no decision")]
    assert found.lines == (
        'kernelpilot select v001 --why "pivot: REASON"',
        'kernelpilot select v001 --why "continue: EXPECTED_GAIN and where from"',
        'kernelpilot select v001 --why "stop: REASON"',
    )
    report = gate.decide(e, POLICY, final=False)
    fix = next(f.fix for f in report.findings if f.rule == "30")
    assert fix == "  # or: ".join(found.lines) and len(fix) <= 300, "the loop shows 300 letters of a fix"
    assert "course: decide, 4 weak rounds in a row" in gate_command.text_of(e, report)
    for word, kind in (("pivot: mma", "widen"), ("continue: 3 %", "widen"), ("stop: roof", "finish")):
        after = at(*rows, decision(f"select: {word}", at_head=LATE))
        assert (leads(after)[0], red(after)) == (kind, []), "nothing was searched, so that is still owed"
    for words in ("the older one", "stop:", "pivot: REASON", "continue: EXPECTED_GAIN and where from"):
        looked = at(*rows, decision(f"select: {words}"))
        assert (leads(looked), len(red(looked))) == (("decide", 4), 1), "a command pasted as it stands decides nothing"
    early = at(SHORT, weak(1), decision("select: pivot: mma"), *(weak(n) for n in range(2, 6)))
    assert (leads(early), len(red(early))) == (("decide", 4), 1)


def test_a_round_that_goes_on_after_its_decision_is_one_weak_round_and_not_four() -> None:
    """Breaks when the attempt after the decision makes the decided rounds count again."""
    rows = (SHORT, *(weak(n) for n in range(1, 5)), decision("select: pivot: mma"))
    assert leads(at(*rows, weak(4, version="v009_try"))) == ("widen", 4)
    assert leads(at(*rows, weak(4, version="v009_try"), weak(5))) == ("widen", 5)
    strong = weak(4, 1.03, version="v009_try", verdict="IMPROVED")
    assert leads(at(*rows, strong, weak(4, version="v010_try"))) == ("on", 0)


def test_what_makes_a_round_weak() -> None:
    """Breaks when the verdict decides in place of the point figure, or a kernel that does not work is no weak round."""
    two = (SHORT, weak(1), weak(2))
    improved = weak(3, 1.02, verdict="IMPROVED", confirmed_by="v004_try.2")
    assert leads(at(*two, improved)) == ("on", 0)
    assert leads(at(*two, weak(3, 1.02))) == ("on", 0), "AMBIGUOUS at 2 % is judged by its point"
    assert leads(at(*two, weak(3, 1.006, verdict="IMPROVED"))) == ("widen", 3), "IMPROVED by 0.6 % is weak"
    assert leads(at(*two, weak(3, 0.8, verdict="REGRESSED"))) == ("widen", 3)
    broken = weak(3, verdict="BROKEN", gain=None, reason="crash: x")
    wrong = weak(3, 1.5, verdict="WRONG", reason="wrong.tail: x")
    assert leads(at(*two, broken)) == leads(at(*two, wrong)) == ("widen", 3)
    assert leads(at(*two, broken, improved)) == ("on", 0), "the best attempt of a round counts"
    void = weak(3, verdict="AMBIGUOUS", reason="machine.unfit: x")
    again = weak(3, 1.5, kind="recheck")
    assert leads(at(*two, void, again)) == ("widen", 2)
    outside = (weak(7, round=None), weak(8, round=None))
    assert leads(at(SHORT, *outside)) == ("widen", 2), "outside a loop every attempt is a round"


def test_the_next_loop_begins_at_round_0_again() -> None:
    """Breaks when a strong round of an earlier loop is taken for one of this loop, or hides behind its number."""
    first = (SHORT, weak(1), weak(2), weak(3))
    second = (weak(0, 1.03, version="v005_try", verdict="IMPROVED"), weak(1, version="v006_try"))
    assert leads(at(*first, *second)) == ("on", 1)
    flat = tuple(weak(n, version=f"v{n + 5:03d}_try") for n in range(2))
    assert leads(at(SHORT, weak(1), *flat)) == ("widen", 3)


def test_a_bring_up_round_without_a_correct_attempt_is_passed_over() -> None:
    """Breaks when bringing up a risky kernel is taken for a plateau, or the word excuses a round that was measured."""
    broken = weak(2, verdict="BROKEN", gain=None, reason="crash: x")
    for text, attempted, count in (
        ("## Mainline objective\n\nType: bring-up of the tile\n", broken, 1),
        ("## Mainline objective\n\nno bring-up\n", broken, 2),
        ("- Type: Bring-up\n", weak(2), 2),
    ):
        loop = replace(LOOP, contracts={2: text}, round=2)
        assert len(streak(at(SHORT, weak(1), attempted, loop=loop), POLICY)[0]) == count
    later = replace(LOOP, directory="y", contracts={2: "Type: bring-up"}, stops=(StopFacts(round=0, head=LATE),))
    earlier = at(SHORT, weak(1), broken, loop=later, earlier=(replace(LOOP, phase="CANCEL"),))
    assert leads(earlier) == ("widen", 2), "a contract of another loop"


def test_the_target_or_a_stop_decision_leads_to_the_finish_lane() -> None:
    """Breaks when a task whose target is met is sent to search, or does not hear what is left to make."""
    e = at(row(), *(weak(n) for n in range(1, 6)))
    assert (leads(e), red(e)) == (("finish", 5), [])
    found = course(e, POLICY)
    assert found.why == "v001_fused is 1.5x the baseline, confirmed by v001_fused.2 (target 1.1x)"
    assert found.lines == (
        "artifacts/performance-map.json is not there: kernelpilot tune",
        "dispatch/table.json is not there: kernelpilot dispatch",
        "artifacts/FINAL.md is not there: kernelpilot report --final",
    )
    table: Any = object()
    holds = TuningFacts(map=made(), table=table)
    files = {**e.files, "artifacts/FINAL.md": "x"}
    assert course(replace(e, tuning=holds, files=files), POLICY).lines == ()
    unconfirmed = row(confirmed_by=None)
    assert leads(at(unconfirmed)) == ("on", 0)
    stopped = course(at(SHORT, weak(1), weak(2), decision("select: stop: the roof")), POLICY)
    assert (stopped.kind, stopped.why) == ("finish", "decided: select: stop: the roof")
    early = (SHORT, weak(1), decision("select: stop: tired"))
    assert leads(at(*early)) == ("on", 1), "a stop that does not count ends no search"
    assert leads(at(*early, weak(2), weak(3), weak(4))) == ("decide", 4), "and takes no weak round away"


def made() -> PerformanceMap:
    """A map of the one version."""
    return built(tuned("v001_fused"))


def test_without_contract_lock_or_baseline_it_is_on_and_says_what_is_missing() -> None:
    """Breaks when a folder without a task raises, or is told that it stagnates."""
    rows = tuple(weak(n) for n in range(6))
    gone = Fault(where="contract.toml", what=MISSING, fix="f")
    for e, why in (
        (at(*rows, contract=gone), "no readable contract (contract.toml: missing)"),
        (at(*rows, lock=replace(gone, where="l")), "no readable lock (l: missing)"),
        (replace(at(), rows=rows), "artifacts/lineage.jsonl: epoch 1 has no baseline row"),
    ):
        assert course(e, POLICY) == Course(kind="on", weak=0, why=why)
        assert gate.decide(e, POLICY, final=False).course.kind == "on"
        assert "course:" not in gate_command.text_of(e, gate.decide(e, POLICY, final=False))


def test_the_json_carries_the_course_and_rule_19_waits_for_the_attempt() -> None:
    """Breaks when the loop does not get its key, or the search is demanded before anything was attempted."""
    e = at(SHORT, weak(1), weak(2), ideas=(idea("a.cu"),), held={LATE: 1})
    report = gate.decide(e, POLICY, final=False)
    said = json.loads(json.dumps(gate_command.data_of(report)))["course"]
    assert set(said) == {"kind", "weak", "why", "lines", "have", "want"}
    assert (said["kind"], said["weak"], said["have"], said["want"], len(said["lines"])) == ("widen", 2, 1, 50, 4)
    assert [w for w in report.not_evaluated if w.startswith(("19: ", "20: "))] == []
    assert [f for f in report.findings if f.rule in ("19", "20")] == []
    assert all(can_be_typed(line) for line in said["lines"] if line.startswith("kernelpilot "))


def test_the_course_of_a_real_repo_counts_by_its_history(repo: Path) -> None:
    """Breaks when ideas of before the weak rounds count, or the commits of ideas and rows are not put in order."""
    note: dict[str, Any] = {"repo": "a/b", "commit": "1" * 40, "hypothesis": "h", "at": "2026-11-30T08:00:00Z"}
    loop = Loop(repo).setup()
    for number, speedup in enumerate((1.05, 1.0, 1.001)):
        data = opened_note(f"{number}.cu", b"%d" % number)
        ledgers.add_idea(repo, Idea(path=f"{number}.cu", opened=(data,), **note), clock)
        write_variant(repo, "fused", f"def entry(**tensors):\n    return {number}\n")
        attempt(repo, FakeLab(speedup=speedup), max_pairs=6)
        loop.stop()
    found = gating.judged(repo, final=False)[0]
    assert sorted(found.git.ideas_held.values()) == [0, 1, 2, 3]
    said = course(found, POLICY)
    assert (said.kind, said.weak, said.have) == ("widen", 2, 2)
    for number in range(3, 5):
        write_variant(repo, "fused", f"def entry(**tensors):\n    return {number}\n")
        attempt(repo, FakeLab(speedup=1.0), max_pairs=6)
        loop.stop()
    blocked = [f for f in gating.gate(repo, final=False).findings if f.rule == "30"]
    assert [f.severity for f in blocked] == ["block"]
    command = blocked[0].fix.partition("  # ")[0]
    label, why = command.split(" ")[2], command.partition("--why ")[2].strip('"').replace("REASON", "split the rows")
    selecting.select(repo, label, why=why, clock=clock)
    after = gating.gate(repo, final=False)
    assert [f for f in after.findings if f.rule == "30"] == [] and after.course.kind == "widen"


EVERY = (
    SHORT, row(round=1), weak(1), weak(2), weak(2, 1.02), weak(3, verdict="BROKEN", gain=None, reason="crash: x"),
    weak(4, verdict="WRONG", gain=None, reason="wrong.tail: x"), weak(5, reason="machine.unfit: x"),
    weak(6, kind="recheck"), weak(7, round=None), decision("select: pivot: x"), decision("select: continue: 2 %"),
    decision("select: stop: x"), decision("select: look"), decision("tune: x", runs=("t.1",)), BASELINE,
    weak(8, epoch=2), weak(9, at_head="9" * 40), decision("select: pivot: x", version="v099_gone"),
)  # fmt: skip


@pytest.mark.property
@settings(max_examples=400, deadline=None)
@given(
    rows=st.lists(st.sampled_from(EVERY), max_size=14),
    ideas=st.integers(0, 4),
    held=st.dictionaries(st.sampled_from((BASE, TRY, LATE, "9" * 40)), st.integers(0, 9), max_size=3),
)
def test_any_ledger_has_one_course(rows: list[Row], ideas: int, held: dict[str, int]) -> None:
    """Breaks when a sequence of rows raises, or gives a course whose parts contradict each other or the findings."""
    e = at(*rows, ideas=tuple(idea(f"{n}.cu") for n in range(ideas)), held=held)
    for order in (e, replace(e, rows=e.rows[1:])):
        found = course(order, POLICY)
        assert 0 <= found.weak <= len(rows) and 0 <= found.have <= ideas and found.why
        assert (found.want == 50) == (found.kind in ("widen", "decide")) and (found.have == 0 or found.want == 50)
        low, high = {"on": (0, 1), "widen": (2, 99), "decide": (4, 99), "finish": (0, 99)}[found.kind]
        assert low <= found.weak <= high and (found.kind != "on" or found.lines == ())
        assert bool(red(order)) == (found.kind == "decide")


def test_a_policy_without_patience_decides_at_once() -> None:
    """Breaks when a plateau that is not longer than a weak stretch is passed over."""
    hard = replace(Policy(), plateau_rounds=1, weak_rounds=2)
    assert course(at(SHORT, weak(1)), hard).kind == "decide" and course(at(SHORT), hard).kind == "on"
    assert TASK in course(at(SHORT, weak(1), weak(2)), POLICY).lines[-1]
