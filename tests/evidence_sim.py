"""Evidence written by hand: a repo in order, from which each test changes the one thing it is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from kernelpilot_helpers import contract as contracts
from kernelpilot_helpers import scaffold
from kernelpilot_helpers.attempt.resolve import resolve
from kernelpilot_helpers.benchmark import Bench, CaseBench
from kernelpilot_helpers.benchmark import Interval as BenchInterval
from kernelpilot_helpers.contract.model import Lock
from kernelpilot_helpers.correctness import Verification
from kernelpilot_helpers.evidence.model import CommitFacts, Evidence, GitFacts, LoopFacts, RunFacts, StopFacts
from kernelpilot_helpers.knowledge.clones import opened_note
from kernelpilot_helpers.ledger import Idea, Interval, Motivation, Row, idea_key

TASK = "add_rmsnorm"
REQUEST = scaffold.example(task=TASK)
CONTRACT = REQUEST.contract
EVERY = (*REQUEST.cases, *contracts.edges(CONTRACT, REQUEST.cases))
CASES = tuple(resolve(CONTRACT, case) for case in EVERY)
IDS = tuple(case.case_id for case in CASES)
TIMED = tuple(case.case_id for case in CASES if case.timed)
BASE, TRY, ROWED = "a" * 40, "b" * 40, "c" * 40
TREE, BASE_TREE = "1" * 40, "2" * 40
VARIANTS = f"src/{TASK}/variants"
ENV = {"python": "3.11", "cpu": "x", "machine": "m", "boot_id": "b", "framework": "numpy"}


def gain(speedup: float) -> Interval:
    return Interval(speedup=speedup, ci_low=speedup * 0.99, ci_high=speedup * 1.01)


def row(version: str = "v001_fused", **changes: Any) -> Row:
    """A confirmed IMPROVED attempt at 1.5x; ``changes`` overwrite any field."""
    fields: dict[str, Any] = {
        "version": version, "kind": "attempt", "parent": "v000_baseline", "variant": "fused", "tree": TREE,
        "commit": TRY, "epoch": 1, "round": 0, "at": "2026-11-30T08:00:00Z",
        "motivation": Motivation(kind="benchmark", text="t"), "language": "python",
        "runs": (f"{version}.1", f"{version}.2"), "verdict": "IMPROVED", "gain": gain(1.5), "vs_baseline": gain(1.5),
        "incumbent": "v000_baseline", "confirmed_by": f"{version}.2", "status": "selected", "at_head": TRY,
    }  # fmt: skip
    return Row(**{**fields, **changes})


BASELINE = row(
    "v000_baseline", kind="baseline", parent="", variant="baseline", tree=BASE_TREE, commit=BASE, round=None, runs=(),
    verdict=None, gain=None, vs_baseline=None, incumbent="", confirmed_by=None, at_head=BASE,
)  # fmt: skip


def decision(reason: str, **changes: Any) -> Row:
    fields: dict[str, Any] = {"kind": "decision", "runs": (), "verdict": None, "gain": None, "vs_baseline": None}
    return row(**{**fields, "confirmed_by": None, "reason": reason, **changes})


def bench(speedup: float = 1.5, **changes: Any) -> Bench:
    cases = tuple(
        CaseBench(
            case_id=c, speedup=speedup, ci_low=1.0, ci_high=2.0, a_us=3.0, b_us=2.0, required=True, pairs=6
        )
        for c in TIMED
    )  # fmt: skip
    made = Bench(
        verdict="IMPROVED", partial=False, reason="faster", objective="geomean",
        geomean=BenchInterval(speedup=speedup, ci_low=1.4, ci_high=1.6), half_width=0.01, order_effect=0.0,
        bias_bound=0.0, sign_p=0.03, alpha=0.022, pairs=6, need_more=None, arms=("A", "B"), tier="accept", device="cpu",
        note="", cases=cases, best_case=TIMED[0], worst_case=TIMED[0], job_ids=("j",),
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


CORRECT = Verification(
    job_id="j", arm="B", framework="numpy", verdict="Correct", reason="", stage="", blame="", findings=(), worst=(),
    checks=9, regimes=("gen",), mutation_score="", notes=(), log="",
)  # fmt: skip


def run(name: str, role: str, **changes: Any) -> RunFacts:
    made = RunFacts(
        run=name, role=role, bench=bench(), verification=CORRECT, env=ENV, cases=IDS, timed=TIMED,
        phases=("verify", "time"), arms=("A", "B"), seeds=3, recheck_share=0.1, tree=TREE,
        label=name.rpartition(".")[0],
    )  # fmt: skip
    return replace(made, **changes)


RUNS = {"v001_fused.1": run("v001_fused.1", "main"), "v001_fused.2": run("v001_fused.2", "confirm")}
LOOP = LoopFacts(
    directory=".humanize/rlcr/x", phase="BUILD", round=1, max_rounds=84, reviewer="evidence-only", base_commit=BASE,
    plan_sha256="", stops=(StopFacts(round=0, head=BASE), StopFacts(round=0, head=ROWED, passed=True)),
)  # fmt: skip
GIT = GitFacts(
    head=ROWED,
    commits=(
        CommitFacts(commit=BASE, paths=("contract.toml", "artifacts/lineage.jsonl", "artifacts/contract.lock.json")),
        CommitFacts(commit=TRY, paths=(f"{VARIANTS}/fused/candidate.py",), trees={"fused": TREE}, subject="v001 try"),
        CommitFacts(commit=ROWED, paths=("artifacts/lineage.jsonl",), subject="v001 IMPROVED"),
    ),
    current_tree=TREE,
    row_trees={f"{BASE}:baseline": BASE_TREE, f"{TRY}:fused": TREE},
    head_variants={"fused": TREE},
    variants={"fused": TREE},
    tracked=frozenset({"artifacts/lineage.jsonl", "contract.toml"}),
)
DIGEST = {
    "artifacts/research-digest.md": "# Research digest\n"
    + "".join(f"\n## {title}\n\nWhat was found of it.\n" for title in scaffold.RESEARCH_SECTIONS)
}
"""The research digest with a few words in each section."""
GOOD = Evidence(
    root="/repo",
    contract=CONTRACT,
    lock=Lock(epoch=1, files={"reference.py": "0" * 64}, locked_at="", why="", mutation_score="9/9"),
    written=tuple(REQUEST.cases),
    cases=CASES,
    rows=(BASELINE, row()),
    runs=RUNS,
    git=GIT,
    loop=LOOP,
    files={f"src/{TASK}/current": "fused\n", ".humanize/kernel-agent/refined-plan.md": "p", **DIGEST},
    sources={f"{VARIANTS}/fused/candidate.py": "def entry(**tensors):\n    pass\n"},
    task=TASK,
)
"""In order: one confirmed version, selected, in round 1 of a loop."""


SAID = (
    "loads of 16 bytes a thread, DRAM throughput from 60 to 80 %",
    "one barrier less in the loop, barrier stall under 0.5 cycles",
    "row sums kept in registers, 24 KB less shared memory",
    "two stages of asynchronous copies, long scoreboard under 2 cycles",
    "a persistent grid, 132 blocks and no tail wave",
)
"""Five hypotheses that differ, each with a figure."""


def source(path: str, said: str = SAID[0], *, data: str = "", **changes: Any) -> Idea:
    """A source as ``mark-read`` notes it, with the sha256 of ``data``: the path itself where none is given."""
    fields: dict[str, Any] = {"repo": "a/b", "commit": "1" * 40, "path": path, "symbol": "", **changes}
    fields = {"opened": (opened_note(path, (data or path).encode()),), **fields}
    key = idea_key(**{name: fields[name] for name in ("repo", "commit", "path", "symbol")})
    return Idea(**{"key": key, "hypothesis": said, "at": "2026-11-30T08:00:00Z", **fields})


def evidence(**changes: Any) -> Evidence:
    """``GOOD`` with some fields replaced."""
    return replace(GOOD, **changes)


def git(**changes: Any) -> Evidence:
    """``GOOD`` with some facts of git replaced."""
    return evidence(git=replace(GIT, **changes))


def loop(**changes: Any) -> Evidence:
    """``GOOD`` with some facts of the loop replaced."""
    return evidence(loop=replace(LOOP, **changes))
