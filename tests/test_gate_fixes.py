"""Every remedy that the gate prints can be pasted: the real parser takes it, and what explains it is a comment."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import gate, referee
from kernelpilot_helpers.cli import COMMANDS
from kernelpilot_helpers.contract.model import SourcePolicy
from kernelpilot_helpers.evidence.model import CommitFacts, Evidence, StopFacts
from kernelpilot_helpers.gate.course import IDEA
from kernelpilot_helpers.gate.done import done
from kernelpilot_helpers.gate.facts import ATTEMPT, SETUP
from kernelpilot_helpers.ledger import Idea, Motivation
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.referee import runs
from kernelpilot_helpers.referee.portable import EXPORT
from tests.contract.test_docs import parses
from tests.evidence_sim import (
    BASE,
    BASELINE,
    CONTRACT,
    GIT,
    GOOD,
    LOOP,
    ROWED,
    RUNS,
    TREE,
    decision,
    evidence,
    gain,
    git,
    loop,
    row,
    run,
)  # fmt: skip
from tests.test_gate import SPEAKS

OTHER = "9" * 40
LINEAGE = "artifacts/lineage.jsonl"


def weak(n: int, **changes: Any) -> Any:
    fields: dict[str, Any] = {"gain": gain(1.001), "vs_baseline": None, "verdict": "AMBIGUOUS", "confirmed_by": None}
    return row(f"v00{n}_w", round=n, runs=(), status="rejected", tree=f"{n}" * 40, **{**fields, **changes})


SHORT = row(vs_baseline=gain(1.05), gain=gain(1.05))
GEMM = msgspec.structs.replace(CONTRACT, task=msgspec.structs.replace(CONTRACT.task, op="gemm"))
SCRATCH = msgspec.structs.replace(CONTRACT, policy=SourcePolicy(source="from_scratch"))
OUTSIDE = replace(
    loop(stops=(StopFacts(round=0, head=ROWED),), base_commit=ROWED, round=0), rows=(BASELINE, row(round=None))
)
RED = StopFacts(round=0, head=ROWED, passed=False, findings=("21:x",))
HUNG = [weak(n, verdict="BROKEN", reason="timeout: none", gain=None) for n in (2, 3)]
FLYING = {**RUNS, "v002_x.1": run("v002_x.1", "main")}
NEW = replace(GIT, commits=(*GIT.commits, CommitFacts(commit=OTHER, paths=(), trees={"b": OTHER})))
MORE: list[Evidence] = [
    evidence(rows=(BASELINE, SHORT)),
    evidence(rows=(BASELINE, SHORT, weak(2), weak(3))),
    evidence(rows=(BASELINE,)),
    evidence(rows=(BASELINE, decision("select: stop: tired"))),
    evidence(rows=(BASELINE, row(motivation=Motivation(kind="research", text="t", source_keys=("0" * 16,))))),
    evidence(rows=(BASELINE, row(tree=OTHER, motivation=Motivation(kind="research", text="t", digest="x")))),
    OUTSIDE,
    replace(OUTSIDE, loop=replace(OUTSIDE.loop or LOOP, phase="CANCEL")),
    loop(stops=(LOOP.stops[0], RED, replace(RED, round=1)), round=2),
    loop(stops=(*LOOP.stops, StopFacts(round=1, head=OTHER)), tampered=("state.md: edited",)),
    evidence(contract=GEMM, rows=(BASELINE, row(vs_baseline=gain(0.05)))),
    evidence(contract=SCRATCH, sources={"src/add_rmsnorm/variants/fused/a.cu": "// Copyright 2020 x"}),
    evidence(rows=(BASELINE, row(), row("v002_x", kind="recheck", verdict="WRONG", gain=None, reason="wrong.x"))),
    evidence(rows=(BASELINE, row(), *HUNG)),
    evidence(rows=(BASELINE, row(), row("v002_wide", tree=OTHER, incumbent="v001_fused", runs=()), decision("select"))),
    evidence(runs=FLYING, git=replace(GIT, dirty=(LINEAGE, "artifacts/new.md"))),
    evidence(git=replace(NEW, head_variants={"fused": TREE, "b": OTHER})),
    evidence(rows=(BASELINE, row(), msgspec.structs.replace(BASELINE, epoch=2, round=3))),
    git(cut="a shallow clone"), git(filtered=("a", "b")), git(hidden=("x",)), git(nested=("a b",)),
    git(variants={"fused": TREE, "new": OTHER}), git(dirty=("reference.py", "artifacts/research-digest.md")),
    evidence(ideas=(Idea(repo="a/b", commit="main", path="p q", pr="7", hypothesis="h", at="t", key="k"),)),
]  # fmt: skip


def fixes() -> Iterator[tuple[str, str]]:
    """(rule, fix) of every finding of every broken evidence, and what is missing for the end."""
    for broken in (*(e for _, e, _ in SPEAKS), *MORE):
        for final in (False, True):
            report = gate.decide(broken, POLICY, final=final)
            yield from ((f.rule, f.fix) for f in report.findings)
            yield from (("done", what.partition(": ")[2]) for what in report.done.missing)
    yield "0", gate.refused("x", "y", "kernelpilot next").findings[0].fix


FIXES = sorted(set(fixes()))


def faults(fix: str) -> list[str]:
    """What keeps a fix from being pasted."""
    command, _, _ = fix.partition("  # ")
    bare = command.replace("$(kernelpilot root)", "")
    out = [f"a parenthesis outside a comment: {fix}"] if re.search(r"[()]", re.sub(r'"[^"]*"', "", bare)) else []
    out += [f"prose after a command: {fix}"] if "; then" in fix or ", or " in command else []
    for part in (p.strip() for p in command.split(" && ")):
        if part.startswith("kernelpilot "):
            out += [said for said in [parses(part)] if said]
            out += (
                [f"no motivation: {fix}"]
                if part.startswith("kernelpilot attempt") and "--motivation" not in part
                else []
            )
        out += [f"git opens an editor: {fix}"] if part.startswith("git commit") and " -m " not in part else []
    return out


@pytest.mark.parametrize(("rule", "fix"), FIXES)
def test_a_fix_can_be_pasted_as_it_is_printed(rule: str, fix: str) -> None:
    """Breaks when a remedy is a usage error, or prose follows a command without being a comment."""
    assert faults(fix) == []


def of_the_referee() -> Iterator[str]:
    """Every text in the referee's modules that begins with one of our commands, its placeholders in upper case."""
    for page in sorted(Path(referee.__file__).parent.glob("*.py")):
        nodes = list(ast.walk(ast.parse(page.read_text(encoding="utf-8"))))
        pieces = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            text = ""
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
                text = node.value
            elif isinstance(node, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else "NAME" for p in node.values)
                text = "".join(str(part) for part in parts)
            name = text.split(" ")[1] if text.startswith("kernelpilot ") and " " in text else ""
            if name in COMMANDS and "\n" not in text:
                yield text


REFEREE = sorted(set(of_the_referee()))
IMPORTED = (ATTEMPT.format(name="VARIANT"), IDEA, EXPORT, runs.AGAIN)


@pytest.mark.parametrize("fix", [*REFEREE, *IMPORTED])
def test_a_remedy_of_the_referee_can_be_pasted_too(fix: str) -> None:
    """Breaks when a refusal outside the gate names a command that is a usage error."""
    assert faults(fix.replace("{NAME}", "NAME")) == []


def test_the_remedies_of_the_referee_are_seen() -> None:
    """Breaks if the scan above finds nothing to check."""
    assert len(REFEREE) >= 8 and any(fix.startswith("kernelpilot lock --amend") for fix in REFEREE)


def test_the_table_of_fixes_covers_the_rules_and_can_fail() -> None:
    """Breaks if the check above sees few remedies, or takes everything."""
    assert {rule for rule, _ in FIXES} >= {
        str(n) for n in (1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 16, 21, 22, 23, 27, 30)
    }
    assert sum(fix.startswith("kernelpilot ") for _, fix in FIXES) > 12
    for bad in (
        "kernelpilot attempt fused --again",
        "kernelpilot select v000_baseline (or a correct one)",
        "kernelpilot select v1 --why x; then kernelpilot tune",
        "kernelpilot select VERSION --wy x",
        "git add x && git commit",
    ):
        assert faults(bad) != []


def test_a_candidate_outside_rounds_is_sent_to_a_loop_first_and_then_to_a_recheck() -> None:
    """Breaks when the remedy of rule 3 runs into a usage error, or names an attempt that no loop would see."""
    said = [f.fix for f in gate.decide(OUTSIDE, POLICY, final=False).findings if f.rule == "3"]
    assert said == ['kernelpilot attempt fused --again --motivation "recheck inside a round"']
    over = replace(OUTSIDE, loop=replace(OUTSIDE.loop or LOOP, phase="CANCEL"))
    assert [f.fix for f in gate.decide(over, POLICY, final=False).findings if f.rule == "3"] == [SETUP]


def test_nobody_is_told_to_commit_half_a_killed_command() -> None:
    """Breaks when, after a kill, the gate advises to commit or undo by hand what the recovery finishes."""
    files = (
        "artifacts/runs/v002_x.1/raw.json",
        LINEAGE,
        "artifacts/attempt-ledger.md",
        "artifacts/performance-map.json",
    )
    tracked = GIT.tracked | {"artifacts/attempt-ledger.md"}
    e = evidence(runs=FLYING, git=replace(GIT, dirty=files, tracked=tracked))
    said = {f.where: f.fix for f in gate.decide(e, POLICY, final=False).findings if f.rule == "10"}
    assert set(said) == {LINEAGE, "artifacts/attempt-ledger.md", "artifacts/performance-map.json"}
    assert {fix.partition("  # ")[0] for fix in said.values()} == {"kernelpilot ledger render"}
    quiet = evidence(git=replace(GIT, dirty=files[2:], tracked=tracked))
    assert [f.fix for f in gate.decide(quiet, POLICY, final=False).findings if f.rule == "10"] == [
        "git checkout HEAD -- artifacts/attempt-ledger.md",
        'git add -- artifacts/performance-map.json && git commit -m "evidence" -- artifacts/performance-map.json',
    ]


def test_a_loop_from_before_the_lock_is_shown() -> None:
    """Breaks when a loop whose rounds began without a lock passes unseen, or one set up at the lock is named."""
    before = replace(GIT, commits=(CommitFacts(commit=OTHER, paths=("contract.toml",)), *GIT.commits))
    early = replace(loop(stops=(StopFacts(round=0, head=OTHER), *LOOP.stops[1:])), git=before)
    found = [(f.rule, f.severity) for f in gate.decide(early, POLICY, final=False).findings]
    assert found == [("5", "trend")]
    at_lock = replace(loop(stops=(StopFacts(round=0, head=BASE), *LOOP.stops[1:])), git=before)
    assert gate.decide(at_lock, POLICY, final=False).findings == ()


def test_without_a_faster_version_done_says_so_in_plain_words() -> None:
    """Breaks when the baseline is said to lack a figure against itself."""
    assert done(evidence(rows=(BASELINE,))).why == "no version was shown to be faster than the baseline (target 1.1x)"
    assert "derived work" in next(w for w in gate.decide(GOOD, POLICY, final=False).not_evaluated if w[:2] == "8:")
