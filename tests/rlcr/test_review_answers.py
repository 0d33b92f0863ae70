"""Answers read: what a verdict may hold, and what the reviewer cannot talk itself out of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlcr.review import Finding, review
from rlcr.review.answer import finding_id
from rlcr.review.schema import SCHEMA
from tests.rlcr.review_bench import GOOD, Bench, kind, passed


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


# --- what an answer may hold ---------------------------------------------------------------------------------------


def changed(**values: Any) -> dict[str, Any]:
    return {**GOOD, **values}


def finding(**values: Any) -> dict[str, Any]:
    return {**GOOD["findings"][0], **values}


@pytest.mark.parametrize(
    "answer",
    [
        changed(extra=1),
        {key: value for key, value in GOOD.items() if key != "mainline"},
        changed(verdict="approved"),
        changed(acs=[{"id": "AC-1", "status": "met", "evidence": "x", "note": ""}]),
        changed(acs=[{"id": "AC-1", "status": s, "evidence": "x"} for s in ("met", "unmet")]),
        changed(findings=[finding(priority="P4")]),
        changed(findings=[finding(line=True)]),
        changed(findings=[finding(line="7")]),
        changed(findings={}),
        changed(text=None),
    ],
)
def test_an_answer_off_the_schema_is_no_review(bench: Bench, answer: dict[str, Any]) -> None:
    """Breaks when a key too many, one too few or a wrong type is let through."""
    bench.says(json.dumps(answer))
    assert kind(review(bench.request())) == "bad-json"


def test_a_key_given_twice_is_no_review(bench: Bench) -> None:
    """Breaks when the later of two verdicts silently wins."""
    bench.says('{"verdict": "continue", ' + json.dumps(changed(verdict="complete"))[1:])
    assert kind(review(bench.request())) == "bad-json"


def test_the_schema_is_strict_everywhere() -> None:
    """Breaks when a client's strict mode would refuse the schema: every key required, no others."""

    def strict(node: object) -> bool:
        if isinstance(node, dict) and node.get("type") == "object":
            own = node["additionalProperties"] is False and node["required"] == list(node["properties"])
            return own and all(strict(value) for value in node["properties"].values())
        return strict(node["items"]) if isinstance(node, dict) and node.get("type") == "array" else True

    assert strict(SCHEMA)
    assert not strict({"type": "object", "properties": {"a": {}}, "required": [], "additionalProperties": False})


@pytest.mark.parametrize("reference", ["", "   ", "none", "N/A", "-", "(no evidence)", "TBD."])
def test_met_without_a_reference_is_unmet_and_not_complete(bench: Bench, reference: str) -> None:
    """Breaks when a reviewer's word alone completes a criterion."""
    acs = [{"id": "AC-1", "status": "met", "evidence": reference}]
    bench.says(json.dumps(changed(verdict="complete", acs=acs, findings=[])))
    found = passed(review(bench.request()))
    assert (found.verdict, found.acs[0].status) == ("continue", "unmet")


@pytest.mark.parametrize("evidence", ['{"head": "' + "c" * 40 + '"}', "not json", None])
def test_met_on_evidence_of_another_commit_is_unmet(bench: Bench, evidence: str | None) -> None:
    """Breaks when evidence that is stale, damaged or missing carries a criterion."""
    if evidence is None:
        bench.evidence.unlink()
    else:
        bench.evidence.write_text(evidence)
    bench.says(json.dumps(changed(verdict="complete", findings=[])))
    found = passed(review(bench.request()))
    assert (found.verdict, found.acs[0].status) == ("continue", "unmet")


@pytest.mark.parametrize(
    ("priority", "verdict"), [("P0", "continue"), ("P1", "continue"), ("P2", "complete"), ("P3", "complete")]
)
def test_complete_beside_a_blocking_finding_is_continue(bench: Bench, priority: str, verdict: str) -> None:
    """Breaks when an answer that contradicts itself is read the friendly way."""
    bench.says(json.dumps(changed(verdict="complete", findings=[finding(priority=priority)])))
    assert passed(review(bench.request())).verdict == verdict


def test_a_finding_keeps_its_id_over_rounds_and_a_reviewer_cannot_choose_one(bench: Bench) -> None:
    """Breaks when the same complaint looks new each round, or a new one hides under an id of its own making."""
    old = Finding(id="F-0123456789", priority="P1", file="b.py", line=3, claim="x", locus="in-round")
    listed = [finding(id=old.id), finding(id="F-mine", claim="Second."), finding(line=99, claim="second"), finding()]
    bench.says(json.dumps(changed(findings=listed)))
    found = passed(review(bench.request(prior_open=(old,), full=False)))
    assert [f.id for f in found.findings] == [
        old.id,
        finding_id("src/a.py", "Second."),
        finding_id("src/a.py", "Off by one."),
    ]
    assert finding_id("src/a.py", "off  BY one") == finding_id("src/a.py", "Off by one.")


# --- plain text ----------------------------------------------------------------------------------------------------


def test_marker_text_is_read_over_the_whole_final_message(bench: Bench) -> None:
    """Breaks when a P0 far above the end is lost, which once counted as clean."""
    text = "- [P0] Race in the cache — src/cache.py:41\n" + "prose\n" * 3000
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
    ],
)
def test_markers_spell_the_verdict(bench: Bench, tail: str, verdict: str, mainline: str) -> None:
    """Breaks when the older markers are read otherwise; printed to stdout, as their mocks do."""
    bench.fake(f"print({tail!r})\n")
    found = passed(review(bench.request()))
    assert (found.verdict, found.mainline) == (verdict, mainline)
