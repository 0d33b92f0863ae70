"""Each rule of the gate on evidence written by hand: it is silent on a repo in order and speaks on one broken thing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import gate
from kernelpilot_helpers.autotune import LeftOut
from kernelpilot_helpers.contract.model import SourcePolicy
from kernelpilot_helpers.evidence.model import MISSING, CommitFacts, Evidence, GitFacts, TuningFacts, row_key
from kernelpilot_helpers.gate import Report, Rule
from kernelpilot_helpers.ledger import Idea, Provenance
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.records import Fault
from tests.evidence_sim import (
    BASELINE,
    CONTRACT,
    CORRECT,
    GIT,
    GOOD,
    IDS,
    RUNS,
    TASK,
    TREE,
    VARIANTS,
    bench,
    decision,
    evidence,
    gain,
    git,
    row,
    run,
)  # fmt: skip
from tests.tuning_sim import built, tuned

OTHER = "9" * 40


def found(e: Evidence, rule: str, *, final: bool = False) -> list[tuple[str, str, str]]:
    """(severity, where, what) of one rule's findings."""
    report = gate.decide(e, POLICY, final=final)
    return [(f.severity, f.where, f.what) for f in report.findings if f.rule == rule]


def unevaluated(report: Report) -> set[str]:
    return {entry.partition(":")[0] for entry in report.not_evaluated}


def policy_of(**changes: Any) -> Evidence:
    return evidence(contract=msgspec.structs.replace(CONTRACT, policy=SourcePolicy(**changes)))


def runs(name: str = "v001_fused.2", **changes: Any) -> Evidence:
    return evidence(runs={**RUNS, name: replace(RUNS[name], **changes)})


def audited(where: str) -> Evidence:
    return evidence(audit=(Fault(where=where, what="broken", fix="mend"),))


def test_a_repo_in_order_has_no_finding_and_lists_what_was_not_evaluated() -> None:
    """Breaks when a rule cries without a cause, or when one whose input is missing is skipped in silence."""
    report = gate.decide(GOOD, POLICY, final=False)
    assert report.findings == () and report.passed
    assert unevaluated(report) >= {"4", "8", "14", "15", "17", "18"} and not unevaluated(report) & {"19", "20"}
    assert {rule.id for rule in gate.RULES} == {str(n) for n in range(1, 35)}


def test_order_is_block_then_repair_then_trend_and_by_number() -> None:
    """Breaks when the first finding is not the one to mend first, or rule 9 comes after rule 12."""
    e = replace(audited("artifacts/lineage.jsonl"), loop=None, secrets=("a: b",), git=replace(GIT, nested=("x",)))
    e = replace(e, git=replace(e.git, variants={"fused": TREE, "new": OTHER}))
    order = [(f.severity, f.rule) for f in gate.decide(e, POLICY, final=False).findings]
    assert order == [("block", "2"), ("block", "12"), ("block", "34"), ("repair", "3"), ("trend", "10")]


@pytest.mark.parametrize(
    ("where", "rule"),
    [
        ("artifacts/contract.lock.json", "6"), ("reference.py", "6"), ("tests/new.py", "6"), ("contract.toml: x", "5"),
        ("workloads/cases.jsonl:3", "5"), ("artifacts/lineage.jsonl:4", "12"), ("artifacts/lineage.jsonl: v1", "12"),
        ("artifacts/runs/v001_fused.1", "10"), ("artifacts/attempt-ledger.md", "10"), ("v001_fused", "22"),
        ("artifacts/optimization-ledger.md", "11"), ("artifacts/source-ideas.jsonl", "10"), ("dispatch/x", "25"),
        ("src/x/variants/a/link", "10"), (".git: git log", "2"), ("somewhere", "10"),
    ],
)  # fmt: skip
def test_every_fault_of_the_audit_comes_out_under_one_rule(where: str, rule: str) -> None:
    """Breaks when a fault has no rule, so that it is dropped, or comes out twice."""
    e = audited(where)
    for one in (e, replace(e, audit=(), faults=e.audit)):
        report = gate.decide(one, POLICY, final=False)
        assert [(f.rule, f.where) for f in report.findings] == [(rule, where)]
        assert not report.passed


SPEAKS: list[tuple[str, Evidence, str]] = [
    ("1", evidence(skeleton=(Fault(where="README.md", what="missing", fix="f"),)), "README.md"),
    ("1", evidence(base_missing=("README.md",)), "README.md"),
    ("1", evidence(base_is_ancestor=False), ".humanize/rlcr/x"),
    ("2", git(nested=("src/inner",)), "src/inner"),
    ("2", git(above="/outer"), "/outer"),
    ("2", git(humanize_ignored=False), ".gitignore"),
    ("2", git(humanize_tracked=(".humanize/x",)), ".humanize/x"),
    ("2", git(hidden=("artifacts/x",)), "artifacts/x"),
    ("3", evidence(loop=None), ".humanize/rlcr"),
    ("5", evidence(contract=Fault(where="contract.toml", what="bad", fix="f")), "contract.toml"),
    ("5", evidence(lock=Fault(where="artifacts/contract.lock.json", what=MISSING, fix="f")), "artifacts/contract.lock"),
    ("5", evidence(base_contract="a placeholder"), "contract.toml at"),
    ("5", evidence(rows=(row(), BASELINE)), "artifacts/lineage.jsonl"),
    ("6", git(dirty=("reference.py",)), "reference.py"),
    ("7", replace(policy_of(language="triton")), f"{VARIANTS}/fused"),
    ("9", evidence(sources={f"{VARIANTS}/fused/a.cu": "// SPDX-License-Identifier: MIT"}), f"{VARIANTS}/fused/a.cu"),
    ("10", git(removed=("artifacts/x.md",)), "artifacts/x.md"),
    ("10", git(dirty=("artifacts/lineage.jsonl",)), "artifacts/lineage.jsonl"),
    ("10", git(dirty=("artifacts/new.md",)), "artifacts/new.md"),
    ("10", git(commits=(*GIT.commits, CommitFacts(commit=OTHER, paths=(), trees={"b": OTHER}))), f"{VARIANTS}/b"),
    ("11", runs(bench=bench(1.4)), "artifacts/lineage.jsonl: v001_fused"),
    ("11", runs(bench=None), "artifacts/lineage.jsonl: v001_fused"),
    ("11", runs(verification=None), "artifacts/lineage.jsonl: v001_fused"),
    ("12", git(row_trees={row_key(BASELINE): BASELINE.tree, row_key(row()): OTHER}), "artifacts/lineage.jsonl: v001"),
    ("12", evidence(rows=(BASELINE, row(commit=OTHER))), "artifacts/lineage.jsonl: v001_fused"),
    ("13", evidence(files={f"src/{TASK}/current": "other\n"}), f"src/{TASK}/current"),
    ("13", evidence(files={}), f"src/{TASK}/current"),
    ("13", git(current_tree=OTHER), f"{VARIANTS}/fused"),
    ("13", git(variants={"fused": OTHER}), f"{VARIANTS}/fused"),
    ("13", git(dirty=(f"src/{TASK}/current",)), f"src/{TASK}/current"),
    ("16", evidence(sizes={"artifacts/profile-digests/v009_x/d.md": 1}), "artifacts/profile-digests/v009_x"),
    ("21", runs(cases=IDS[1:]), "artifacts/runs/v001_fused.2"),
    ("21", runs(seeds=1), "artifacts/runs/v001_fused.2"),
    ("21", runs(recheck_share=0.0), "artifacts/runs/v001_fused.2"),
    ("21", runs(verification=msgspec.structs.replace(CORRECT, checks=0)), "artifacts/runs/v001_fused.2"),
    ("22", runs(env={"python": "3"}), "artifacts/runs/v001_fused.2"),
    ("22", runs(problems=("bench.json: x",), bench=None), "artifacts/runs/v001_fused.2"),
    ("22", runs(bench=bench(cases=bench().cases[1:])), "artifacts/runs/v001_fused.2"),
    ("22", runs("v001_fused.1", bench=bench(cases=bench(1.2).cases)), "artifacts/runs/v001_fused.1"),
    ("23", runs(arms=("A",)), "artifacts/runs/v001_fused.2"),
    ("23", evidence(rows=(BASELINE, row(incumbent="v000_other"))), "v001_fused"),
    ("27", runs(limits=False), "artifacts/runs/v001_fused.2"),
    (
        "32",
        evidence(ideas=(Idea(repo="a/b", commit="main", path="p", pr="7", hypothesis="h", at="t"),)),
        "artifacts/sou",
    ),
    ("34", evidence(sizes={"artifacts/x": 9 * 2**20}), "artifacts/x"),
    ("34", evidence(secrets=("artifacts/x: a private key",)), "artifacts/x"),
]


@pytest.mark.parametrize(("rule", "broken", "where"), SPEAKS)
def test_a_rule_speaks_on_what_it_is_about_and_blocks_the_pass(rule: str, broken: Evidence, where: str) -> None:
    """Breaks when a rule does not see its own case, or names another place."""
    report = gate.decide(broken, POLICY, final=False)
    mine = [f for f in report.findings if f.rule == rule]
    assert mine and all(f.where.startswith(where) and f.fix for f in mine)
    assert not report.passed
    assert json.dumps(msgspec.to_builtins(report))


def test_no_contract_is_one_finding_that_names_the_scaffold() -> None:
    """Breaks when an empty folder gives a page of findings."""
    nothing = Evidence(
        root="/x",
        contract=Fault(where="contract.toml", what=MISSING, fix="kernelpilot scaffold DIR --task NAME"),
        lock=Fault(where="l", what=MISSING, fix=""),
        git=GitFacts(head=""),
    )
    report = gate.decide(nothing, POLICY, final=True)
    assert [(f.rule, f.severity) for f in report.findings] == [("5", "block")] and "scaffold" in report.findings[0].fix
    assert not report.passed and not report.done.met
    assert gate.next_step(nothing, report) == "kernelpilot scaffold DIR --task NAME"
    assert len(unevaluated(report)) == 33


def test_no_lock_is_one_finding_and_a_lost_lock_is_not_mistaken_for_it() -> None:
    """Breaks when deleting the lock resets the gate to the state before it."""
    lost = Fault(where="artifacts/contract.lock.json", what=MISSING, fix="")
    fresh = evidence(lock=lost, rows=(), git=replace(GIT, commits=(), head_variants={}))
    report = gate.decide(fresh, POLICY, final=False)
    assert [(f.rule, f.what) for f in report.findings] == [("5", "no lock, run kernelpilot lock")]
    assert "10" in unevaluated(report)
    after = gate.decide(evidence(lock=lost), POLICY, final=False)
    assert [f.what for f in after.findings if f.rule == "5"] == ["the lock is gone"]


def test_a_rule_that_fails_is_a_block_and_the_others_still_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when one of our bugs hides every finding or lets the gate pass."""

    def boom(e: Evidence, p: Any) -> Any:
        raise ZeroDivisionError("boom")

    module = __import__("kernelpilot_helpers.gate.decide", fromlist=["x"])
    bad = Rule(id="1", title="bad", severity="trend", phase="always", check=boom)
    monkeypatch.setattr(module, "RULES", (bad, *gate.RULES))
    report = module.decide(git(nested=("x",)), POLICY, final=False)
    assert [(f.rule, f.severity) for f in report.findings] == [("1", "block"), ("2", "block")]


def test_a_declared_language_is_held_against_the_files() -> None:
    """Breaks when a C file passes as Triton, or when a declared language goes unchecked for want of a table entry."""
    c = {f"{VARIANTS}/fused/kernel.c": "int x;"}
    assert found(replace(policy_of(language="c"), sources=c), "7") == []
    assert len(found(replace(policy_of(language="triton"), sources=c), "7")) == 2
    assert (
        found(replace(policy_of(language="triton"), sources={f"{VARIANTS}/fused/a.py": "import triton\n"}), "7") == []
    )
    assert "7" in unevaluated(gate.decide(policy_of(language="cobol"), POLICY, final=False))


def test_provenance_answers_for_a_foreign_file_but_not_from_scratch() -> None:
    """Breaks when the row that names the file is not believed, or when from_scratch takes foreign code."""
    theirs = {f"{VARIANTS}/fused/a.cu": "// from https://github.com/a/b/blob/x/a.cu"}
    told = Provenance(url="https://github.com/a/b", commit="1" * 40, licence="MIT", files=("a.cu",), delta="d")
    rows = (BASELINE, row(provenance=(told,)))
    assert found(evidence(sources=theirs, rows=rows), "9") == []
    assert len(found(replace(policy_of(source="from_scratch"), sources=theirs, rows=rows), "9")) == 1
    assert found(evidence(sources={f"{VARIANTS}/fused/a.cu": "// see https://example.org/page"}), "9") == []


def test_work_in_progress_does_not_block_and_runs_in_flight_excuse_their_tree() -> None:
    """Breaks when an uncommitted folder, a wip commit or an attempt that is just measuring blocks."""
    assert found(git(variants={"fused": TREE, "new": OTHER}), "10")[0][0] == "trend"
    commit = CommitFacts(commit=OTHER, paths=(), trees={"b": OTHER}, subject="wip: b")
    assert found(git(commits=(*GIT.commits, commit)), "10") == []
    plain = git(commits=(*GIT.commits, replace(commit, subject="b")))
    flying = replace(plain, runs={**RUNS, "v002_b.1": run("v002_b.1", "main", tree=OTHER)})
    assert found(plain, "10") != [] and found(flying, "10") == []


def test_nobody_is_told_to_commit_the_files_of_a_run_in_flight() -> None:
    """Breaks when the gate, asked while an attempt measures, sends the worker to commit or remove its files."""
    dirty = ("artifacts/runs/v002_x.1/intent.json", "artifacts/notes.md")
    e = evidence(runs={**RUNS, "v002_x.1": run("v002_x.1", "main")}, git=replace(GIT, dirty=dirty))
    assert [where for severity, where, _ in found(e, "10") if severity == "repair"] == ["artifacts/notes.md"]


def test_a_later_improvement_on_the_selected_version_must_be_selected() -> None:
    """Breaks when an older version may stay current; a recheck that voids the later one mends it."""
    later = row("v002_wide", variant="wide", tree=OTHER, incumbent="v001_fused", runs=())
    back = decision("select: older")
    assert [w for _, _, w in found(evidence(rows=(BASELINE, row(), later, back)), "13")] == [
        "v002_wide IMPROVED on v001_fused later, and v001_fused is selected"
    ]
    void = row("v003_wide", kind="recheck", variant="wide", tree=OTHER, verdict="WRONG", gain=None, vs_baseline=None)
    assert found(evidence(rows=(BASELINE, row(), later, void, back)), "13") == []


def test_a_recheck_that_takes_the_claim_back_is_told() -> None:
    """Breaks when a selected version that a recheck found slower than the baseline, or broken, still ends the task."""
    slow = row("v002_fused", kind="recheck", verdict="REGRESSED", gain=gain(0.8), vs_baseline=gain(0.8))
    for again, told in (
        (slow, 1),
        (row("v002_fused", kind="recheck", verdict="BROKEN", gain=None, vs_baseline=None, reason="crash: x"), 1),
        (row("v002_fused", kind="recheck", verdict="BROKEN", gain=None, vs_baseline=None, reason="interrupted: x"), 0),
        (row("v002_fused", kind="recheck", verdict="REGRESSED", gain=gain(0.8), incumbent="v009_other"), 0),
    ):
        e = evidence(rows=(BASELINE, row(), again))
        assert len([f for f in found(e, "13") if "does not hold" in f[2]]) == told, again
        assert gate.decide(e, POLICY, final=True).done.why.count("does not hold") == told


def test_a_version_that_is_not_correct_may_not_stay_selected() -> None:
    """Breaks when a decision row, or a tune run after the verdict, leaves a wrong version selected and all done."""
    wrong = row(verdict="WRONG", gain=None, vs_baseline=None, status="rejected", reason="wrong.shape: x")
    e = evidence(rows=(BASELINE, wrong, decision("select: mine")))
    assert "v001_fused is WRONG (wrong.shape: x)" in found(e, "13")[0][2]
    again = row("v002_fused", kind="recheck", verdict="WRONG", gain=None, vs_baseline=None, reason="wrong.race: y")
    e = evidence(rows=(BASELINE, row(), again))
    assert "v002_fused is WRONG" in found(e, "13")[0][2]
    assert not gate.decide(e, POLICY, final=True).done.met
    out = LeftOut(version="v001_fused", tree=TREE, run="v001_fused.3", why="wrong.tolerance: z")
    for epoch, says in ((1, 1), (2, 0)):
        tuning = TuningFacts(map=built(tuned("v001_fused"), left_out=(out,), epoch=epoch))
        e = evidence(tuning=tuning)
        assert len(found(e, "13")) == says
        assert ("wrong.tolerance" in gate.decide(e, POLICY, final=False).done.why) == bool(says)
        back = decision("select: it is wrong", version="v000_baseline", variant="baseline")
        e = evidence(rows=(BASELINE, row(), back), tuning=tuning, files={f"src/{TASK}/current": "baseline\n"})
        e = replace(e, git=replace(e.git, current_tree=BASELINE.tree))
        assert len(found(e, "13")) == 1 - says  # without the fault, the faster version must be selected


def test_an_amendment_inside_a_loop_is_shown() -> None:
    """Breaks when a worker can lower the target in a round and nobody reads of it."""
    again = msgspec.structs.replace(BASELINE, epoch=2, round=3, reason="locked: easier")
    report = gate.decide(evidence(rows=(BASELINE, row(), again)), POLICY, final=False)
    assert [(f.severity, "round 3 (epoch 2): locked: easier" in f.what) for f in report.findings if f.rule == "6"] == [
        ("trend", True)
    ]
    outside = msgspec.structs.replace(again, round=None)
    assert found(evidence(rows=(BASELINE, row(), outside)), "6") == []


def test_a_cut_history_is_one_finding() -> None:
    """Breaks when rows are held against a history of which git shows a part."""
    e = evidence(git=replace(GIT, cut="a shallow clone", commits=GIT.commits[-1:]), base_is_ancestor=False)
    assert {f.rule for f in gate.decide(e, POLICY, final=False).findings if f.severity == "block"} == {"2"}


def test_merged_runs_of_two_bookings_are_refused() -> None:
    """Breaks when samples of two machines decide together."""
    rows = (BASELINE, row(runs=("v001_fused.1", "v001_fused.3", "v001_fused.2")))
    more = run("v001_fused.3", "more")
    assert found(evidence(rows=rows, runs={**RUNS, "v001_fused.3": more}), "23") == []
    other = replace(more, env={**more.env, "boot_id": "later"})
    assert len(found(evidence(rows=rows, runs={**RUNS, "v001_fused.3": other}), "23")) == 1


def test_two_timeouts_ask_for_a_minimal_tile_until_a_correct_version_comes() -> None:
    """Breaks when a hanging line may be tried for ever, or when the rule can never be mended."""

    def hung(n: int) -> Any:
        return row(
            f"v00{n}_h",
            verdict="BROKEN",
            reason="timeout: no answer",
            gain=None,
            vs_baseline=None,
            runs=(),
            tree=f"{n}" * 40,
        )

    rows = (BASELINE, row(), hung(2), hung(3))
    assert found(evidence(rows=rows[:3]), "27") == []
    assert [w for _, w, _ in found(evidence(rows=rows), "27")] == ["v003_h"]
    assert found(evidence(rows=(*rows, row("v004_tile", verdict="AMBIGUOUS", confirmed_by=None, runs=()))), "27") == []


MAP = built(tuned("v001_fused"))
TABLE: Any = object()
HOLDS = TuningFacts(map=MAP, table=TABLE)


def test_done_wants_a_confirmed_target_and_a_finish_lane_that_holds() -> None:
    """Breaks when a point estimate, an unconfirmed figure or a stale dispatcher ends the task."""

    def done(e: Evidence) -> gate.Done:
        from kernelpilot_helpers.gate.done import done as ask

        return ask(e)

    assert done(evidence(tuning=HOLDS)) == gate.Done(
        met=True, why="v001_fused is 1.5x the baseline, confirmed by v001_fused.2 (target 1.1x)"
    )
    lane = done(GOOD)
    assert not lane.met and [w.rpartition(": ")[2] for w in lane.missing] == [
        "kernelpilot tune",
        "kernelpilot dispatch",
    ]
    stale = TuningFacts(map=MAP, table=TABLE, dispatch_faults=(Fault(where="d", what="stale", fix=""),))
    assert list(done(evidence(tuning=stale)).missing) == [
        "dispatch/table.json does not hold (stale): kernelpilot dispatch"
    ]
    slow = row(vs_baseline=gain(1.05))
    assert not done(evidence(tuning=HOLDS, rows=(BASELINE, slow))).met
    assert not done(evidence(tuning=HOLDS, rows=(BASELINE, row(confirmed_by=None)))).met
    flat = [row(f"v00{n}_w", round=n, gain=gain(1.001), verdict="AMBIGUOUS", confirmed_by=None, status="rejected",
                vs_baseline=None, runs=(), reason="flat: x") for n in (2, 3)]  # fmt: skip
    said = (BASELINE, slow, *flat)
    assert done(evidence(tuning=HOLDS, rows=(*said, decision("select: stop: 1.05x is the roof")))).met
    assert not done(evidence(tuning=HOLDS, rows=(*said, decision("stop: x"), decision("select: on")))).met
    assert done(evidence(rows=(BASELINE, *flat, decision("stop: nothing helps", variant="baseline")))).met
