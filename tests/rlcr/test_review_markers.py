"""Answers in plain text, read for the older markers: what they spell, and what they cannot say beside each other."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from rlcr.review import markers, review
from rlcr.review.answer import judge
from tests.rlcr.review_bench import GOOD, Bench, kind, passed


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_marker_text_is_read_over_the_whole_final_message(bench: Bench) -> None:
    """Breaks when a P0 far above the end is lost, which once counted as clean."""
    for mark in ("- ", "", "1. **"):
        text = mark + "[P0] Race in the cache — src/cache.py:41\n" + "prose\n" * 3000
        bench.says(text + "Mainline Progress Verdict: ADVANCED\n\nCOMPLETE\n")
        found = passed(review(bench.request()))
        assert [(f.priority, f.file, f.line) for f in found.findings] == [("P0", "src/cache.py", 41)]
        assert found.verdict == "continue"


@pytest.mark.parametrize(
    ("tail", "verdict", "mainline"),
    [
        ("Mainline Progress Verdict: ADVANCED\nCOMPLETE", "complete", "advanced"),
        ("**Mainline Progress Verdict:** STALLED\nmore to do", "continue", "stalled"),
        ("Mainline Progress Verdict: REGRESSED\nSTOP\n\n", "blocked", "regressed"),
        ("nothing helps\nSTOP", "blocked", "stalled"),
        ("Mainline Progress Verdict: ADVANCED\nCOMPLETE.", "continue", "advanced"),
        ("Mainline Progress Verdict: ADVANCED\nnot COMPLETE", "continue", "advanced"),
        ("Mainline Progress Verdict: Advanced\nComplete", "continue", "advanced"),
        ("Mainline Progress Verdict: ADVANCED\nCOMPLETE\nOne more thing.", "continue", "advanced"),
        ("Mainline Progress Verdict: ADVANCED\n**COMPLETE**", "continue", "advanced"),
    ],
)
def test_markers_spell_the_verdict(bench: Bench, tail: str, verdict: str, mainline: str) -> None:
    """Breaks when the older markers are read otherwise; printed to stdout, as their mocks do."""
    bench.fake(f"print({tail!r})\n")
    found = passed(review(bench.request()))
    assert (found.verdict, found.mainline) == (verdict, mainline)


@pytest.mark.parametrize(
    ("ran", "wanted", "verdict"),
    [
        ({"gate": True}, ("AC-1", "AC-2"), "complete"),
        ({"gate": False}, ("AC-1", "AC-2"), "continue"),
        ({}, ("AC-1", "AC-2"), "continue"),
        ({}, (), "continue"),
        (None, (), "continue"),
        ({"gate": True}, (), "complete"),
        (None, ("AC-1",), "continue"),
    ],
)
def test_the_marker_complete_stands_for_every_criterion_only_over_evidence(
    bench: Bench, ran: dict[str, bool] | None, wanted: tuple[str, ...], verdict: str
) -> None:
    """Breaks when one word meets numbered criteria without a command that passed at this very commit."""
    if ran is None:
        bench.ran("c" * 40, gate=True)
    else:
        bench.ran("", **ran)
    bench.says("Mainline Progress Verdict: ADVANCED\nCOMPLETE\n")
    found = passed(review(bench.request(acs=wanted)))
    assert (found.verdict, tuple(a.id for a in found.acs)) == (verdict, wanted)
    assert ("meets no criterion" in found.text) is (verdict == "continue")
    bench.says("Mainline Progress Verdict: ADVANCED\nmore to do\n")
    found = passed(review(bench.request(acs=wanted)))
    assert found.verdict == "continue" and all(a.status == "unmet" for a in found.acs)


@pytest.mark.parametrize(
    "before",
    ["AC-1: not met, the kernel is slower than before.", "AC-2: unmet", "| AC-2 | deferred |", "AC-1 isn't there yet.",
     "AC-1: partially", "AC-2 fails at the edge", "I looked at AC-1. It is not met.", "- ac 2 -> un-met",
     "AC-1 is not yet fulfilled"],
)  # fmt: skip
def test_a_marker_beside_words_that_contradict_it_is_no_verdict(bench: Bench, before: str) -> None:
    """Breaks when COMPLETE wins over what the same text says of a criterion."""
    text = f"{before}\n\nMainline Progress Verdict: ADVANCED\n\n"
    assert kind(judge(text + "COMPLETE", bench.request(acs=("AC-1", "AC-2")), token="request-0")) == "no-verdict"
    assert passed(judge(text + "so go on", bench.request(), token="request-0")).verdict == "continue"


def test_a_marker_beside_words_that_agree_is_a_verdict(bench: Bench) -> None:
    """Breaks when any negation in a text costs a review."""
    text = "AC-1: met. I did not find a fault.\nAC-2 met; no test fails.\nMainline Progress Verdict: ADVANCED\nCOMPLETE"
    assert passed(judge(text, bench.request(acs=("AC-1", "AC-2")), token="request-0")).verdict == "complete"


@pytest.mark.parametrize(
    "draft",
    ['{"text":"no","verdict":"continue","mainline":"stalled","acs":[],"findings":[]}', "{'verdict': 'continue'}",
     '"{\\"verdict\\": \\"continue\\"}"', '{"a": {"verdict" : 1}}'],
)  # fmt: skip
def test_a_marker_beside_an_answer_object_is_no_verdict(bench: Bench, draft: str) -> None:
    """Breaks when an object counts as prose because its verdict is not the first of its keys."""
    text = f"Draft: {draft}\nMainline Progress Verdict: ADVANCED\n\nCOMPLETE"
    assert kind(judge(text, bench.request(), token="request-0")) == "bad-json"


MANY = 1 << 20


@pytest.mark.parametrize(
    "text",
    ["I looked.\n" + "\n" * MANY + "end", "I looked.\n" + "*" * MANY + "end", "- \n" * (MANY // 3) + "end",
     "```" + "\n" * MANY + "x", "[P1] " + "a.b" * (MANY // 3), "AC-1 " * (MANY // 5) + "\nCOMPLETE",
     "mainline progress verdict" + " " * MANY, "mainline progress verdict:\n" * (MANY // 27), "{ " * (MANY // 2)],
    ids=["newlines", "stars", "dashes", "fence", "place", "criteria", "gap", "words", "braces"],
)  # fmt: skip
def test_a_megabyte_is_read_in_no_time(bench: Bench, text: str) -> None:
    """Breaks when a search of the answer takes time in the square of its length, which outlasts the Stop hook."""
    began = time.monotonic()
    judge(text, bench.request(acs=("AC-1",)), token="request-0")
    markers.verdict(text)
    found: list[dict[str, Any]] = [
        {**GOOD["findings"][0], "file": file} for file in ("a" + ":7" * (MANY // 2) + "x", "./" * MANY)
    ]
    passed(judge(json.dumps({**GOOD, "findings": found}), bench.request(), token="request-0"))
    assert time.monotonic() - began < 2.0
