"""Answers read: what a verdict may hold, and what the reviewer cannot talk itself out of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlcr import repo
from rlcr.decide import opinion_of
from rlcr.model import plain
from rlcr.repo import GitError
from rlcr.review import Ac, Finding, Infra, Verdict, review
from rlcr.review.answer import finding_id, judge
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


def acs(**status: str) -> list[dict[str, str]]:
    """Criteria by id, ``_`` for a hyphen, each with the evidence that holds."""
    return [{"id": name.replace("_", "-"), "status": word, "evidence": "gate"} for name, word in status.items()]


def judged(bench: Bench, found: list[dict[str, str]], *wanted: str) -> Verdict | Infra:
    """What comes of an answer that says complete, without findings, with these criteria."""
    text = json.dumps(changed(verdict="complete", acs=found, findings=[]))
    return judge(text, bench.request(acs=wanted), token="request-0")


@pytest.mark.parametrize(
    "reference",
    ["", "   ", "none", "N/A", "-", "(no evidence)", "TBD.", "slow", "gateway", "gate.py", "my-gate", "src", "src/",
     "src/b.py", "../project/src/a.py", "docs/plan.md", "I ran it and it is fast", "b" * 40, "x\u0000y", "\ud800"],
)  # fmt: skip
def test_met_without_a_reference_that_stands_at_head_is_unmet(bench: Bench, reference: str) -> None:
    """Breaks when a word, a red command, a folder, an absent file or the plan itself completes a criterion."""
    found = passed(judged(bench, [{"id": "AC-1", "status": "met", "evidence": reference}], "AC-1"))
    assert (found.verdict, found.acs[0].status) == ("continue", "unmet")
    assert "- AC-1: called met without evidence at HEAD\n" in found.text


@pytest.mark.parametrize(
    "reference",
    ["gate", "the command `gate`.", "gate: 12 rows", "src/a.py", "see src/a.py:7-9, and more", "./src/a.py#L7",
     "[a](src/a.py:7)", "src/a.py::test_it", "{root}/src/a.py:3", "`src/deep/b c.py`", "at {head:.9}", "{head}"],
)  # fmt: skip
def test_met_with_a_command_a_file_or_the_commit_is_met(bench: Bench, reference: str) -> None:
    """Breaks when honest references are turned away: such a loop would never end."""
    text = reference.format(root=bench.worktree, head=bench.head)
    found = passed(judged(bench, [{"id": "AC-1", "status": "met", "evidence": text}], "AC-1"))
    assert (found.verdict, found.acs[0].status) == ("complete", "met")
    assert found.text == GOOD["text"]


def test_a_file_is_one_of_the_commit_and_not_of_the_worktree(bench: Bench) -> None:
    """Breaks when a file that was never committed, or that HEAD no longer has, is evidence."""
    (bench.worktree / "new.txt").write_text("x")
    claim = [{"id": "AC-1", "status": "met", "evidence": "new.txt"}]
    assert passed(judged(bench, claim, "AC-1")).verdict == "continue"
    bench.head = bench.committed()
    bench.ran(gate=True)
    assert passed(judged(bench, claim, "AC-1")).verdict == "complete"


def test_every_criterion_of_the_plan_is_judged_by_silence_as_unmet(bench: Bench) -> None:
    """Breaks when a reviewer narrows the plan by leaving out, putting off or inventing criteria."""
    found = passed(judged(bench, acs(AC_1="met", AC_3="deferred", AC_9="met"), "AC-1", "AC-2", "AC-3", "AC-4"))
    assert [(a.id, a.status) for a in found.acs] == [
        ("AC-1", "met"), ("AC-2", "unmet"), ("AC-3", "deferred"), ("AC-4", "unmet")
    ]  # fmt: skip
    assert found.verdict == "continue"
    assert found.text.splitlines()[1:4] == [
        "- AC-2, AC-4: not judged, so not met",
        "- AC-3: deferred is not met: only an amended plan drops a criterion",
        "- AC-9: not in the plan, so of no account",
    ]
    assert opinion_of(found).unmet == ("AC-2", "AC-3", "AC-4")
    assert passed(judged(bench, acs(AC_1="met", AC_9="met"), "AC-1")).verdict == "complete"
    assert passed(judged(bench, [], "AC-1")).verdict == "continue"
    assert passed(judged(bench, acs(AC_1="deferred"), "AC-1")).verdict == "continue"
    assert passed(judged(bench, acs(goal="met"))).verdict == "complete", "a plan without numbers"
    assert passed(judged(bench, acs(goal="unmet"))).verdict == "continue"


@pytest.mark.parametrize("wanted", [(), ("AC-1",)])
def test_complete_that_names_no_criterion_is_not(bench: Bench, wanted: tuple[str, ...]) -> None:
    """Breaks when an empty list of criteria ends a plan: it did where the plan numbers none."""
    found = passed(judged(bench, [], *wanted))
    assert found.verdict == "continue" and ("completes nothing" in found.text) is (not wanted)
    assert passed(judged(bench, [{"id": "fast", "status": "met", "evidence": "I saw it"}])).verdict == "continue"


@pytest.mark.parametrize(
    ("said", "gate", "verdict"),
    [
        ([], None, "continue"),
        ([], False, "continue"),
        ([], True, "complete"),
        ([{"id": "it builds", "status": "met", "evidence": "src/a.py"}], None, "complete"),
        ([{"id": "it builds", "status": "met", "evidence": "trust me"}], None, "continue"),
        ([{"id": "it builds", "status": "unmet", "evidence": ""}], True, "continue"),
    ],
)
def test_without_a_plan_something_has_to_have_passed(
    bench: Bench, said: list[dict[str, str]], gate: bool | None, verdict: str
) -> None:
    """Breaks when a review without a plan is complete over nothing at all."""
    bench.ran("", **({} if gate is None else {"gate": gate}))
    text = json.dumps(changed(verdict="complete", acs=said, findings=[]))
    assert passed(judge(text, bench.request(planned=False), token="request-0")).verdict == verdict


@pytest.mark.parametrize(("name", "status"), [("AC-2a", "unmet"), ("AC-9", "deferred"), ("speed", "unmet")])
def test_a_criterion_of_its_own_that_is_not_met_stands(bench: Bench, name: str, status: str) -> None:
    """Breaks when complete is taken beside what the same answer calls not met, under an id that the plan has not."""
    said = [*acs(AC_1="met"), {"id": name, "status": status, "evidence": "the memory is doubled"}]
    found = passed(judged(bench, said, "AC-1"))
    assert found.verdict == "continue"
    assert opinion_of(found).unmet == (name,)


@pytest.mark.parametrize(
    "reference",
    ["src/a.py, run in ./ of the repository", "{root}/ has src/a.py", "`./`: src/a.py", "src/a.py and .",
     "./. src/a.py", "src/a.py in src//deep", "./../x src/a.py", "src/a.py/ src/a.py"],
)  # fmt: skip
def test_a_word_that_is_no_path_voids_no_other_reference(bench: Bench, reference: str) -> None:
    """Breaks when git refuses one word and every citation of the answer is lost with it: such a loop never ends."""
    said = [*acs(AC_1="met"), {"id": "AC-2", "status": "met", "evidence": reference.format(root=bench.worktree)}]
    said += [{"id": "AC-3", "status": "met", "evidence": "src/deep/b c.py `src/deep/b c.py`"}]
    assert passed(judged(bench, said, "AC-1", "AC-2", "AC-3")).verdict == "complete"


def test_words_that_git_refuses_are_left_out_one_by_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a refused word takes its neighbours along, or many of them cost a call each."""
    calls = 0

    def git(root: Path, *args: str) -> str:
        nonlocal calls
        calls += 1
        if any(word.startswith("odd") for word in args):
            raise GitError("no")
        return repo.git(root, *args)

    monkeypatch.setattr("rlcr.review.proof.git", git)
    said = " ".join([*(f"w{n}" for n in range(300)), "odd1", "src/a.py", "odd2", *(f"v{n}" for n in range(100))])
    assert passed(judged(bench, [{"id": "AC-1", "status": "met", "evidence": said}], "AC-1")).verdict == "complete"
    assert calls < 50
    calls, many = 0, " ".join(f"odd{n}" for n in range(3000))
    assert passed(judged(bench, [{"id": "AC-1", "status": "met", "evidence": many}], "AC-1")).verdict == "continue"
    assert calls < 100


@pytest.mark.parametrize("name", ["AC-1", "ac 1", "AC1", "AC_01", "**AC-1**", "Ac-1: it is fast"])
def test_a_criterion_is_known_however_it_is_written(bench: Bench, name: str) -> None:
    """Breaks when a spelling turns a met criterion into an unknown one, or two spellings are two judgements."""
    said = [{"id": name, "status": "met", "evidence": "gate"}]
    assert passed(judged(bench, said, "AC-1")).acs == (Ac(id="AC-1", status="met", evidence="gate"),)
    other = {"id": "ac1" if name == "AC-1" else "AC-1", "status": "unmet", "evidence": ""}
    assert kind(judged(bench, [*said, other], "AC-1")) == "bad-json", "judged twice"
    assert passed(judged(bench, [{**said[0], "id": "AC-1.1"}], "AC-1")).verdict == "continue", "a part is not the whole"


def test_an_answer_of_a_megabyte_stays_small_in_the_journal_and_keeps_what_blocks(bench: Bench) -> None:
    """Breaks when a reviewer that invents thousands of findings fills the journal, or hides a P0 behind them."""
    flood = [finding(priority="P3", claim=f"Fault {n}.", file="f" * 20, line=10**30) for n in range(6000)]
    named = [{"id": f"X{n}", "status": "unmet", "evidence": ""} for n in range(2000)]
    answer = changed(verdict="complete", acs=named, findings=[*flood, finding(priority="P0", claim="Lost writes.")])
    bench.says(json.dumps(answer))
    kept = opinion_of(passed(review(bench.request())))
    assert len(kept.findings) == 60 and len(kept.unmet) == 500
    assert (kept.findings[0].priority, kept.findings[0].claim) == ("P0", "Lost writes.")
    assert len(json.dumps(plain(kept))) < 80_000


@pytest.mark.parametrize(
    "evidence", ['{"head": "' + "c" * 40 + '"}', '{"checks": []}', '["HEAD"]', '{"head": ["HEAD"]}', "not json", None]
)
def test_met_on_evidence_of_another_commit_is_unmet(bench: Bench, evidence: str | None) -> None:
    """Breaks when evidence that is stale, damaged or missing carries a criterion."""
    if evidence is None:
        bench.evidence.unlink()
    else:
        bench.evidence.write_text(evidence.replace("HEAD", bench.head))
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
    bench.says(json.dumps(changed(findings=[finding(id=old.id, claim="Worded anew.")])))
    assert passed(review(bench.request(queued=(old,)))).findings[0].id == old.id, "a queued one is known as well"


@pytest.mark.parametrize("name", ["src/a.py", "./src/a.py", "src/a.py:7", "`src/a.py`", "{root}/src/a.py#L7-L9"])
def test_a_file_is_named_as_git_names_it(bench: Bench, name: str) -> None:
    """Breaks when a spelling makes a touched file look untouched, so that a fault in it waits."""
    text = json.dumps(changed(findings=[finding(file=name.format(root=bench.worktree))]))
    (found,) = passed(judge(text, bench.request(), token="request-0")).findings
    assert (found.file, found.id) == ("src/a.py", finding_id("src/a.py", "Off by one."))


def test_an_answer_in_a_fence_is_the_answer(bench: Bench) -> None:
    """Breaks when a good answer is refused for how it is wrapped."""
    bench.says("```json\n" + json.dumps(GOOD, indent=1) + "\n```\n")
    assert passed(review(bench.request())).verdict == "continue"
