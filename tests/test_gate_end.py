"""How a task may end, and what no end may rest on: early stop decisions, empty papers, invented sources, a GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec

from kernelpilot_helpers import gate, scaffold
from kernelpilot_helpers.evidence.model import MISSING, CommitFacts, TuningFacts
from kernelpilot_helpers.gate.done import done
from kernelpilot_helpers.ledger import Idea, Motivation, Row
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.scaffold import request
from tests.evidence_sim import BASE, BASELINE, CONTRACT, GIT, GOOD, decision, evidence, gain, row
from tests.tuning_sim import built, tuned

TABLE: Any = object()
HOLDS = TuningFacts(map=built(tuned("v001_fused")), table=TABLE)


def test_a_stop_decision_counts_once_two_weak_rounds_stand_before_it() -> None:
    """Breaks when a loop that tried nothing, or one thing, ends as COMPLETE by a word, or is told of that word."""

    def weak(n: int, by: float = 1.001, **changes: Any) -> Row:
        fields: dict[str, Any] = {"gain": gain(by), "verdict": "AMBIGUOUS", "reason": "flat: x", "round": n}
        return row(f"v00{n}_w", **{**fields, "confirmed_by": None, "status": "rejected", "runs": (), **changes})

    base: dict[str, Any] = {"version": "v000_baseline", "variant": "baseline"}
    stop = decision("select: stop: tired", **base)
    ends = [
        ((stop,), False),
        ((weak(1), stop), False),
        ((weak(1), stop, weak(2)), False),
        ((weak(1), weak(2), stop), True),
        ((weak(1), weak(2, 1.2), weak(3), stop), False),
        ((weak(1), weak(1, verdict="SAME"), stop), False),
        ((weak(1), weak(2, reason="machine.unfit: x"), stop), False),
        ((weak(1, epoch=2), weak(2, epoch=2), stop), False),
        ((weak(1), weak(2), decision("select: continue: 3 %", **base), stop), True),
        ((weak(1), stop, weak(2), stop), True),
        ((decision("select: stop: exhausted, digest x shows", **base),), False),
    ]
    for rows, met in ends:
        e = evidence(rows=(BASELINE, *rows), tuning=HOLDS)
        assert done(e).met is met, [r.version for r in rows]
        final = gate.decide(e, POLICY, final=True)
        assert any(f.rule == "30" and f.severity == "block" for f in final.findings) is not met
        assert (final.course.kind == "finish") is met
    early = done(evidence(rows=(BASELINE, weak(1), stop)))
    assert early.why.endswith(
        "the decision 'select: stop: tired' does not count: 1 of 2 weak rounds in a row stand before it"
    )
    assert 'rlcr" stop --why' in early.missing[0] and "select" not in early.missing[0]
    for rows, told in (((), False), ((weak(1),), False), ((weak(1), weak(2)), True)):
        report = gate.decide(evidence(rows=(BASELINE, *rows)), POLICY, final=True)
        words = [*report.done.missing, *(f.fix for f in report.findings if f.rule == "30")]
        assert words and all(("stop: REASON" in w) is told for w in words)


def test_what_a_row_cites_must_be_there_until_it_is_measured_again_without() -> None:
    """Breaks when an invented source or digest backs a row for ever, or the finding can never be mended."""
    key = "0123456789abcdef"
    cites = Motivation(kind="research", text="t", source_keys=(key,), digest="m1")
    e = evidence(rows=(BASELINE, row(motivation=cites)))
    report = gate.decide(e, POLICY, final=False)
    (said,) = [f for f in report.findings if f.rule == "10"]
    assert (said.severity, said.where) == ("repair", "artifacts/lineage.jsonl: v001_fused")
    assert said.what == f"cites source {key}, digest m1, which is not in this repo"
    idea = Idea(key=key, repo="a/b", commit="1" * 40, path="p", hypothesis="h", at="2026-11-30T08:00:00Z")
    there = replace(e, ideas=(idea,), sizes={"artifacts/profile-digests/v001_fused/m1/digest.md": 1})
    again = replace(e, rows=(*e.rows, row("v002_fused", kind="recheck")))
    for mended in (there, again, evidence(rows=(BASELINE, row(motivation=cites, epoch=0)))):
        assert [f for f in gate.decide(mended, POLICY, final=False).findings if "cites" in f.what] == []


def test_an_empty_research_digest_blocks_the_end_and_only_the_end() -> None:
    """Breaks when the form of the scaffold, or one filled with "none", passes for research."""
    path = "artifacts/research-digest.md"

    def said(text: str | None) -> list[tuple[str, str]]:
        files = {k: v for k, v in GOOD.files.items() if k != path} | ({} if text is None else {path: text})
        e = evidence(files=files)
        assert path not in {f.where for f in gate.decide(e, POLICY, final=False).findings}
        return [(f.severity, f.what) for f in gate.decide(e, POLICY, final=True).findings if f.where == path]

    form = request.template("research-digest.md")
    every = f"says nothing of its own below: {', '.join(scaffold.RESEARCH_SECTIONS)}"
    assert said(form) == said(None) == [("block", every)]
    for filler in ("none", "n/a", "<!-- the baseline makes five passes -->", "- TODO\n- 1 2 3"):
        assert said(re.sub("^(## .*)$", rf"\1\n\n{filler}", form, flags=re.M)) == [("block", every)]
    assert said(GOOD.files[path]) == []
    one = GOOD.files[path].replace("## Candidate routes\n\nWhat was found of it.", "## Candidate routes")
    assert said(one) == [("block", "says nothing of its own below: Candidate routes")]


def test_a_gpu_target_is_sent_to_the_lock_like_any_other() -> None:
    """Breaks when the gate turns somebody with a GPU task away from a lock that would be made."""
    gpu = msgspec.structs.replace(CONTRACT, target=msgspec.structs.replace(CONTRACT.target, gpu="H100"))
    fresh = replace(GIT, commits=(CommitFacts(commit=BASE, paths=("contract.toml",)),))
    e = evidence(contract=gpu, lock=Fault(where="l", what=MISSING, fix=""), rows=(), git=fresh, loop=None)
    report = gate.decide(e, POLICY, final=False)
    assert [f.fix for f in report.findings] == ["kernelpilot lock"]
    assert gate.next_step(e, report) == "kernelpilot lock  # it measures, so on a machine with the H100"


def test_a_lock_that_no_commit_holds_is_not_checked_out() -> None:
    """Breaks when the remedy names a file that HEAD lacks, or a lock that HEAD holds is made again."""
    path = "artifacts/contract.lock.json"
    none = tuple(replace(c, paths=tuple(p for p in c.paths if p != path)) for c in GIT.commits)

    def fixes(**changes: Any) -> list[str]:
        git = replace(GIT, dirty=changes.pop("dirty", ()), commits=changes.pop("commits", GIT.commits))
        report = gate.decide(evidence(git=git, **changes), POLICY, final=False)
        return [f.fix for f in report.findings if f.where == path and f.rule in ("5", "6")]

    torn = Fault(where=path, what="not valid JSON", fix="")
    assert fixes(dirty=(path,)) == [f"git checkout HEAD -- {path}"]
    assert fixes(dirty=(path,), commits=none) == ["kernelpilot lock"]
    assert fixes(lock=torn) == [f"git checkout HEAD -- {path}"]
    assert fixes(lock=torn, commits=none) == [f"rm {path} && kernelpilot lock"]


def test_a_fault_of_the_contract_is_told_once() -> None:
    """Breaks when one misspelt line is a block of the contract, of the audit and of the lock."""
    what = "1 fault\n  target.speedup = 0.9: want a ratio above 1"
    fault = Fault(where="contract.toml", what=what, fix="mend it")
    for dirty, fix in (((), "mend it"), (("contract.toml",), "git checkout HEAD -- contract.toml  # or, to keep")):
        at = evidence(contract=fault, audit=(fault,), git=replace(GIT, dirty=dirty))
        found = [f for f in gate.decide(at, POLICY, final=False).findings if "target.speedup" in f.what]
        assert [f.rule for f in found] == ["5"] and found[0].fix.startswith(fix)
