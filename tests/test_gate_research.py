"""Rules 19 and 20 on logs written by hand: what a wider search has to show, and that no source is read twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import gate
from kernelpilot_helpers.evidence.model import CommitFacts, Evidence
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.gate.course import course
from kernelpilot_helpers.gate.research import mechanism, study
from kernelpilot_helpers.gate.sources import settled, sources
from kernelpilot_helpers.knowledge.clones import opened_note
from kernelpilot_helpers.ledger import IDEAS_PATH, Idea, Motivation, Row, idea_key
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.referee import gating, ledgers
from tests.contract.test_docs import parses
from tests.evidence_sim import BASELINE, GIT, ROWED, SAID, TASK, decision, evidence, gain, row, source
from tests.loop_sim import Loop
from tests.referee_sim import attempt, clock, write_variant

READ, AFTER = "d" * 40, "e" * 40
"""Commits after the weak rounds' rows: the first holds what was read, the second comes after it."""
COMMITS = (*GIT.commits, CommitFacts(commit=READ, paths=()), CommitFacts(commit=AFTER, paths=()))
FULL = tuple(source(f"{n}.cu", SAID[n % 5]) for n in range(50))
"""A whole search: 50 files of code, each hypothesis ten times."""
NONE = "0 of 50 new sources, 0 of 5 hypotheses"


def tried(number: int, by: float | None = 1.002, *, cites: tuple[str, ...] = (), **changes: Any) -> Row:
    """The attempt of a round, by default one that gained 0.2 %."""
    fields: dict[str, Any] = {
        "version": f"v{number + 1:03d}_try", "round": number, "gain": None if by is None else gain(by),
        "vs_baseline": None, "verdict": "AMBIGUOUS", "runs": (), "confirmed_by": None, "status": "rejected",
        "reason": "flat: x", "at_head": ROWED, "motivation": Motivation(kind="research", text="t", source_keys=cites),
    }  # fmt: skip
    return row(**{**fields, **changes})


def decided(reason: str, **changes: Any) -> Row:
    """A decision on the one version that improved."""
    return decision(reason, version="v001_try", **changes)


STRONG = tried(0, 1.05, verdict="IMPROVED")
WEAK = (STRONG, tried(1), tried(2))
CITED = tried(3, cites=(FULL[0].key,), at_head=AFTER)


def log(ideas: tuple[Idea, ...], *rows: Row, held: dict[str, int] | None = None, **changes: Any) -> Evidence:
    """Rows after the baseline's, and ideas that are all committed between the weak rounds and the next attempt."""
    git = replace(GIT, commits=COMMITS, ideas_held={READ: len(ideas)} if held is None else held)
    return evidence(rows=(BASELINE, *rows), ideas=ideas, git=git, **changes)


def found(e: Evidence, rule: str = "19") -> list[gate.Finding]:
    return [f for f in gate.decide(e, POLICY, final=False).findings if f.rule == rule]


def said(e: Evidence) -> str:
    """What the one finding of rule 19 says; empty where there is none."""
    return "\n".join(f.what for f in found(e))


def bare(idea: Idea) -> Idea:
    """The same as ``kernelpilot ledger idea`` notes it: without a sha256."""
    return msgspec.structs.replace(idea, opened=())


def test_the_numbers_that_these_logs_are_written_for() -> None:
    """Breaks when a promise moves and the counts below would be read against another one."""
    numbers = (POLICY.weak_rounds, POLICY.research_sources, POLICY.research_hypotheses, POLICY.research_code_share)
    assert numbers == (2, 50, 5, 0.5)


def test_an_attempt_after_two_weak_rounds_without_a_search_blocks() -> None:
    """Breaks when rule 19 is silent, is no block, or does not say how much is missing and which command gives it."""
    (one,) = found(log((), *WEAK, tried(3)))
    assert (one.severity, one.where) == ("block", "artifacts/lineage.jsonl: v004_try")
    assert one.what == (
        "2 weak rounds in a row (round 1, round 2) ended before it; noted since they began and before it: "
        f"{NONE}; it cites none of them; still missing: 50 sources, 5 hypotheses, an attempt that cites one"
    )
    command = f"kernelpilot knowledge next --want 50 --seen {IDEAS_PATH}"
    assert one.fix.startswith(f"{command}  # ") and len(one.fix) <= 300, "the loop shows 300 letters of a fix"
    assert parses(command.replace(IDEAS_PATH, __file__)) == ""
    after = one.fix.partition("note it: ")[2].partition(", and try one: ")
    assert [parses(part) for part in (after[0], after[2])] == ["", ""]


@pytest.mark.parametrize(
    "rows",
    [
        (),
        (STRONG, tried(1)),
        WEAK,
        (STRONG, tried(1), tried(2, 1.03, verdict="IMPROVED"), tried(3), tried(4)),
        (STRONG, tried(1), tried(1, version="v009_b"), tried(1, version="v010_c")),
        (*WEAK, tried(2, version="v009_b")),
        (*WEAK, tried(3, reason="machine.unfit: x")),
        (*WEAK, tried(3, 1.5, kind="recheck")),
        (*WEAK, tried(3), decided("select: stop: the roof", at_head=AFTER)),
        (*WEAK, tried(3), row("v009_met")),
        (*WEAK, tried(3, epoch=0)),
    ],
    ids=[
        "nothing tried", "one weak round", "two and no attempt after them", "a strong round between", "one round",
        "the second weak round goes on", "a row about the machine", "a recheck",
        "a stop that counts", "the target is met", "an imported row",
    ],
)  # fmt: skip
def test_without_an_attempt_after_two_weak_rounds_nothing_is_owed(rows: tuple[Row, ...]) -> None:
    """Breaks when a search is demanded of somebody who owes none; and it is evaluated, not skipped."""
    report = gate.decide(log((), *rows), POLICY, final=False)
    assert [f for f in report.findings if f.rule == "19"] == []
    assert not [w for w in report.not_evaluated if w.startswith("19:")]


def test_a_gain_or_a_decision_after_it_does_not_take_the_debt_away() -> None:
    """Breaks when the search is skipped by one lucky attempt, or by a line that is written after the fact."""
    lucky = tried(3, 1.05, verdict="IMPROVED")
    assert NONE in said(log((), *WEAK, lucky))
    assert NONE in said(log((), *WEAK, lucky, tried(4)))
    assert NONE in said(log((), *WEAK, tried(3), decided("select: pivot: tensor cores", at_head=AFTER)))


PIVOT = decided("select: pivot: tensor cores", at_head=READ)


@pytest.mark.parametrize("word", ["pivot: tensor cores", "continue: 3 % from wider loads"])
def test_a_decision_before_it_does_not_take_the_place_of_a_search(word: str) -> None:
    """Breaks when a line in the ledger discharges the search that two weak rounds owe, before or between them."""
    row = decided(f"select: {word}", at_head=READ)
    assert (
        f"2 weak rounds in a row (round 1, round 2) ended before it; noted since they began and before it: {NONE}"
        in (said(log((), *WEAK, row, tried(3))))
    )
    between = (STRONG, tried(1), row, tried(2), row, tried(3))
    assert [f.where for f in found(log((), *between))] == ["artifacts/lineage.jsonl: v004_try"]
    assert said(log((), *between[:5])) == "", "nothing is owed before the attempt"


def test_a_search_is_owed_once_whatever_is_decided_beside_it() -> None:
    """Breaks when a decision spoils a search that was made, or one that was not made is asked for twice."""
    assert said(log(FULL, *WEAK, PIVOT, CITED)) == "", "read before the decision"
    late = log(FULL, *WEAK, PIVOT, replace_head(CITED, READ), held={AFTER: 50})
    assert NONE in said(late), "read after the attempt"
    plateau = (*WEAK, tried(3), tried(4), PIVOT, tried(5), tried(6), tried(7))
    (one,) = found(log((), *plateau))
    assert one.where == "artifacts/lineage.jsonl: v004_try"
    assert said(log(FULL, *plateau, tried(8, cites=(FULL[0].key,), at_head=AFTER))) == ""
    strong = tried(3, 1.05, verdict="IMPROVED")
    assert said(log((), *WEAK[:2], PIVOT, strong, tried(4), tried(5))) == "", "a gain begins the count anew"


def replaced(*changed: Idea, keep: int) -> tuple[Idea, ...]:
    return (*FULL[:keep], *changed)


PROSE = tuple(source(f"docs/{n}.md", SAID[n % 5]) for n in range(30))
HALF = tuple(bare(idea) if n % 2 else idea for n, idea in enumerate(FULL))
LOUD = tuple(msgspec.structs.replace(i, hypothesis=SAID[0].upper() if n % 2 else f"  {SAID[0]}. ") for n, i in
             enumerate(FULL))  # fmt: skip
VAGUE = tuple(msgspec.structs.replace(i, hypothesis="make it faster") for i in FULL)
TWINS = tuple(source(f"{n}.cu", SAID[n % 5], data="the same bytes") for n in range(50))
TYPED = tuple(msgspec.structs.replace(i, opened=(f"{i.path} sha256:{'x' * 64}",)) for i in FULL)
BESIDE = tuple(msgspec.structs.replace(i, opened=(opened_note("test.py", b"%d" % n),)) for n, i in enumerate(FULL))
CASES: list[tuple[str, tuple[Idea, ...], int, int, str]] = [
    ("whole", FULL, 50, 5, ""),
    ("49 of 50", FULL[:49], 49, 5, "1 sources"),
    ("a key repeated", replaced(FULL[0], keep=49), 49, 5, "1 of a source or of bytes noted before"),
    ("repeated with a reason", replaced(msgspec.structs.replace(FULL[0], reread_reason="again"), keep=49), 49, 5,
     "1 of a source"),
    ("another key, the same place", replaced(msgspec.structs.replace(FULL[0], key="f" * 16), keep=49), 49, 5,
     "1 of a source"),
    ("another way to write it", replaced(source("0.cu", repo="https://github.com/A/B.git/"), keep=49), 49, 5,
     "1 of a source"),
    ("one file, two symbols", replaced(source("0.cu", symbol="f"), keep=49), 49, 5, "1 of a source or of bytes"),
    ("the same bytes", TWINS, 1, 1, "49 of a source or of bytes noted before"),
    ("half without a hash", HALF, 25, 5, "25 without a sha256"),
    ("no hash", tuple(map(bare, FULL)), 0, 0, "50 without a sha256"),
    ("hashes that are none", TYPED, 0, 0, "50 without a sha256"),
    ("only the tests beside it were opened", BESIDE, 0, 0, "50 without a sha256"),
    ("26 of code, then prose", (*FULL[:26], *PROSE[:24]), 50, 5, ""),
    ("25 of code, then prose", (*FULL[:25], *PROSE[:25]), 25, 5, "25 of prose noted before the code"),
    ("prose first", (*PROSE[:24], *FULL[:26]), 26, 5, "24 of prose noted before the code"),
    ("more prose than wanted", (*FULL, *PROSE), 80, 5, ""),
    ("hypotheses equal but for case, blanks and signs", LOUD, 50, 1, "4 hypotheses, "),
    ("hypotheses without a number", VAGUE, 50, 0, "50 hypotheses name no number"),
]  # fmt: skip


@pytest.mark.parametrize(("ideas", "have", "hypotheses", "words"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_counts(ideas: tuple[Idea, ...], have: int, hypotheses: int, words: str) -> None:
    """Breaks when a forged or empty row counts, when an honest one does not, or the finding does not say which."""
    e = log(ideas, *WEAK, CITED)
    what = said(e)
    assert (what == "") == (words == "") and words in what
    if what:
        assert f"before it: {have} of 50 new sources, {hypotheses} of 5 hypotheses; it" in what
    # The course asks for just what the rule counts.
    led = course(log(ideas, *WEAK), POLICY)
    assert (led.kind, led.have, led.want) == ("widen", have, 50)
    wanted = max(50 - have, 5 - hypotheses)
    assert led.lines[0].startswith(f"kernelpilot knowledge next --want {wanted} " if wanted > 0 else "kernelpilot att")


def test_one_hypothesis_of_the_search_is_tried() -> None:
    """Breaks when an attempt that cites nothing, or something older, passes for the one that the search led to."""
    old = source("old.cu", "an older plan of ours, 5 % less time")
    for cites in ((), (old.key,), ("0" * 16,)):
        e = log((old, *FULL), *WEAK, tried(3, cites=cites, at_head=AFTER), held={ROWED: 1, READ: 51})
        assert "50 of 50 new sources, 5 of 5 hypotheses; it cites none of them; still missing: an attempt" in said(e)
        (one,) = found(e)
        command, _, keys = one.fix.partition("  # ")
        assert command == f"kernelpilot attempt src/{TASK}/variants/NAME --source KEY --motivation HYPOTHESIS"
        assert FULL[-1].key in keys and parses(command) == ""
    vague = (source("0.cu", "no idea"), *FULL[1:], source("50.cu", SAID[0]))
    assert "cites none of them" in said(log(vague, *WEAK, CITED)), "what it cites is no hypothesis"
    assert said(log(vague, *WEAK, tried(3, cites=("f" * 16, FULL[1].key), at_head=AFTER))) == ""


def test_what_was_read_before_the_weak_rounds_or_after_the_attempt_does_not_count_for_it() -> None:
    """Breaks when order is not that of the history: an old reading list serves, or one that came too late."""
    assert NONE in said(log(FULL, *WEAK, CITED, held={ROWED: 50})), "held when the strong round's row was written"
    late = log(FULL, *WEAK, replace_head(CITED, READ), held={AFTER: 50})
    assert NONE in said(late) and "still missing: an attempt that cites one" in said(late)
    assert NONE in said(log(FULL, *WEAK, CITED, held={})), "no commit holds them yet"
    assert NONE in said(log(FULL, *WEAK, replace_head(CITED, "9" * 40))), "a row at a HEAD that is not there"
    lost = (replace_head(STRONG, "9" * 40), *WEAK[1:], CITED)
    assert NONE in said(log(FULL, *lost)), "nothing can be shown to come after it"
    cut = log(FULL, *WEAK, CITED, held={})
    shallow = gate.decide(replace(cut, git=replace(cut.git, cut="a shallow clone")), POLICY, final=False)
    assert [w for w in shallow.not_evaluated if w.startswith("19:")] == [
        "19: what was read before v004_try is in no history here: a shallow clone"
    ]


def replace_head(row: Row, head: str) -> Row:
    return msgspec.structs.replace(row, at_head=head)


def test_a_later_attempt_makes_up_for_it() -> None:
    """Breaks when the finding cannot be mended, or is mended by an attempt without the search."""
    first = tried(3)
    assert said(log(FULL, *WEAK, first, replace_head(tried(4, cites=(FULL[7].key,)), AFTER))) == ""
    assert NONE in said(log(FULL, *WEAK, first, replace_head(tried(4), AFTER)))
    assert NONE in said(log(FULL[:49], *WEAK, first, replace_head(tried(4, cites=(FULL[7].key,)), AFTER)))
    void = tried(4, cites=(FULL[7].key,), at_head=AFTER, reason="machine.unfit: x")
    assert NONE in said(log(FULL, *WEAK, first, void)), "nothing was tried"


def test_one_search_serves_one_stretch_of_weak_rounds() -> None:
    """Breaks when each weak round asks for 50 more, or one search serves for ever."""
    more = tuple(tried(n, at_head=AFTER) for n in (4, 5))
    assert said(log(FULL, *WEAK, CITED, *more)) == ""
    went_on = decided("select: continue: 3 % from wider loads", at_head=AFTER)
    again = log(FULL, *WEAK, CITED, went_on, *more, tried(6, at_head=AFTER))
    (one,) = found(again)
    assert (one.where, NONE in one.what) == ("artifacts/lineage.jsonl: v007_try", True)


@pytest.mark.parametrize(
    ("text", "bare_words"),
    [
        ("Wider loads: DRAM throughput from 60 to 80 %", "wider loads dram throughput from to"),
        ("wider  LOADS, dram throughput from 50 to 90 %!", "wider loads dram throughput from to"),
        ("faster by 5 %", ""),
        ("make everything much faster", ""),
        ("", ""),
        ("1 2 3 4", ""),
    ],
)
def test_a_hypothesis_is_a_mechanism_and_a_number(text: str, bare_words: str) -> None:
    """Breaks when another number passes for another mechanism, or words alone or numbers alone for a hypothesis."""
    assert mechanism(text) == bare_words


def reread(*ideas: Idea) -> list[tuple[str, str]]:
    """(severity, what) of rule 20."""
    return [(f.severity, f.what) for f in found(log(ideas), "20")]


SHORT = source("x.cu", commit="abcdef0")
LONG = source("x.cu", commit="abcdef0" + "1" * 33)
MOVED = source("x.cu", commit="abcdef9" + "1" * 33, data="y")


@pytest.mark.parametrize(
    ("ideas", "count"),
    [
        ((FULL[0], FULL[1]), 0),
        ((FULL[0], FULL[0]), 1),
        ((FULL[0], FULL[0], FULL[0]), 1),
        ((FULL[0], msgspec.structs.replace(FULL[0], reread_reason="new head")), 0),
        ((FULL[0], msgspec.structs.replace(FULL[0], reread_reason="  ")), 1),
        ((FULL[0], FULL[0], msgspec.structs.replace(FULL[0], reread_reason="noted twice by mistake")), 0),
        ((bare(FULL[0]), FULL[0]), 1),
        ((FULL[0], source("0.cu", symbol="f")), 0),
        ((FULL[0], source("./0.cu", repo="A/B", data="0.cu")), 1),
        ((SHORT, LONG), 1),
        ((LONG, SHORT), 1),
        ((LONG, MOVED), 0),
        ((SHORT, LONG, MOVED), 1),
        ((source("x.cu", commit="abcdef"), LONG), 0),
        ((SHORT, LONG, source("x.cu", commit="abcdef0" + "2" * 33, data="y")), 0),
    ],
    ids=[
        "two sources", "twice", "three times", "a reason", "a blank reason", "a reason later", "first without a hash",
        "another symbol", "written another way", "a short commit first", "a short commit after it", "another commit",
        "three commits", "six digits are no commit", "a short commit of two",
    ],
)  # fmt: skip
def test_a_second_row_of_one_source_needs_a_reason(ideas: tuple[Idea, ...], count: int) -> None:
    """Breaks when rule 20 misses a source that is noted twice, or takes two sources for one."""
    got = reread(*ideas)
    assert len(got) == count
    assert all(severity == "repair" and "was read before" in what for severity, what in got)


def test_what_mends_a_second_row_can_be_typed_and_mends_it() -> None:
    """Breaks when the remedy of rule 20 is a usage error, or leaves the finding as it was."""
    (one,) = found(log((FULL[0], FULL[0])), "20")
    assert (one.where, parses(one.fix)) == (f"{IDEAS_PATH}: {FULL[0].key}", "")
    assert f"--source-repo a/b --commit {'1' * 40} --path 0.cu --hypothesis TEXT --reread-reason" in one.fix
    assert reread(FULL[0], FULL[0], msgspec.structs.replace(bare(FULL[0]), reread_reason="noted twice")) == []


FORGED = source("0.cu", symbol="g", data="typed")
TRUE = msgspec.structs.replace(FULL[0], reread_reason="its sha256 was noted twice")


def test_one_file_has_one_sha256() -> None:
    """Breaks when a typed sha256 stands beside the true one unnoticed, or its own reason excuses it."""
    (one,) = found(log((FULL[0], FORGED)), "20")
    assert one.severity == "repair" and "one of them was typed" in one.what and parses(one.fix) == ""
    self_excused = msgspec.structs.replace(FORGED, reread_reason="because")
    assert len(reread(FULL[0], self_excused)) == 1
    assert reread(FULL[0], FORGED, TRUE) == [], "read again: the first one holds"
    assert len(reread(FULL[0], FORGED, source("0.cu", data="a third", reread_reason="x"))) == 1
    beside = msgspec.structs.replace(FULL[1], opened=(*FULL[1].opened, opened_note("0.cu", b"other")))
    assert len(reread(FULL[0], beside)) == 1, "a file that was opened beside another one"
    assert reread(FULL[0], source("0.cu", commit="2" * 40, data="changed since")) == []


def test_a_doubtful_row_counts_only_once_it_is_settled() -> None:
    """Breaks when a row whose sha256 is contested serves the search."""
    contested = (*FULL, FORGED)
    assert "49 of 50 new sources" in said(log(contested, *WEAK, tried(3, cites=(FULL[1].key,), at_head=AFTER)))
    assert "2 whose file stands with another sha256 elsewhere" in said(log(contested, *WEAK, tried(3, at_head=AFTER)))
    assert said(log((*contested, TRUE), *WEAK, tried(3, cites=(FULL[1].key,), at_head=AFTER))) == ""
    assert settled(sources(contested))[("a/b", "1" * 40, "0.cu")] == ""


def test_a_pull_request_that_is_noted_again_with_its_head_is_mended() -> None:
    """Breaks when the remedy that rule 32 prints leaves its finding standing."""
    open_ = source("p.cu", commit="main", pr="7")
    assert len(found(log((open_,)), "32")) == 1
    assert found(log((open_, source("p.cu", pr="7", reread_reason="its head was not noted"))), "32") == []
    assert len(found(log((open_, source("q.cu", pr="7"))), "32")) == 1


def test_a_real_repo_owes_a_search_and_pays_it(repo: Path) -> None:
    """Breaks when real rows, commits of ideas and HEADs are not put in order, or the paid debt stays a finding."""
    loop = Loop(repo).setup()

    def next_round(number: int, speedup: float, *cites: str) -> gate.Report:
        write_variant(repo, "fused", f"def entry(**tensors):\n    return {number}\n")
        attempt(repo, FakeLab(speedup=speedup), max_pairs=6, sources=cites)
        loop.stop()
        return gating.gate(repo, final=False)

    for number, speedup in enumerate((1.05, 1.0, 1.001)):
        report = next_round(number, speedup)
    assert report.course.kind == "widen" and [f for f in report.findings if f.rule == "19"] == []
    report = next_round(3, 1.002)
    assert [(f.severity, NONE in f.what) for f in report.findings if f.rule == "19"] == [("block", True)]
    wanted = replace(POLICY, research_sources=3, research_hypotheses=2)
    for n in range(3):
        noted = ledgers.add_idea(repo, source(f"{n}.cu", SAID[n % 2], key=""), clock)
    assert noted.key == idea_key(repo="a/b", commit="1" * 40, path="2.cu", symbol="")
    next_round(4, 1.001, noted.key)
    judged = gating.judged(repo, final=False)[0]
    begin = next(r for r in judged.rows if r.kind == "attempt")
    assert (study(judged, wanted, begin).sources, study(judged, POLICY, begin).missing) == (3, 47)
    assert [f for f in gate.decide(judged, wanted, final=False).findings if f.rule in ("19", "20")] == []
