"""Made-up histories for the report's tests: rows, runs and a repo that holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelpilot_helpers import ledger, proc, records
from kernelpilot_helpers import report as reports
from kernelpilot_helpers.autotune import Cell, MapCase, MapVariant, PerformanceMap
from kernelpilot_helpers.benchmark import Bench, CaseBench
from kernelpilot_helpers.benchmark import Interval as BenchInterval
from kernelpilot_helpers.correctness import Finding, Verification
from kernelpilot_helpers.dispatcher import Guard, ShapeRule, Table
from kernelpilot_helpers.evidence import CommitFacts, Evidence, GitFacts, LoopFacts, StopFacts, TuningFacts
from kernelpilot_helpers.evidence import RunFacts as EvidenceRun
from kernelpilot_helpers.gate import Done, Report
from kernelpilot_helpers.gate import Finding as GateFinding
from kernelpilot_helpers.ledger import Interval, Motivation, Row
from kernelpilot_helpers.referee import workspace
from kernelpilot_helpers.report import FloorFacts, ReportData, RunFacts

COMMIT = "c" * 40
EVIL = "<script>alert(1)</script>"


def ratio(point: float, half: float = 0.03) -> Interval:
    return Interval(speedup=point, ci_low=point * (1 - half), ci_high=point * (1 + half))


def row(n: int, verdict: Any, gain: float | None = None, over: float | None = None, **more: Any) -> Row:
    version = f"v{n:03d}_try{n}"
    fields: dict[str, Any] = {
        "version": version,
        "kind": "attempt",
        "parent": "v000_baseline",
        "variant": f"try{n}",
        "tree": f"{n:040x}",
        "commit": COMMIT,
        "epoch": 1,
        "at": "2025-01-02T03:04:05Z",
        "motivation": Motivation(kind="benchmark", text=f"idea number {n}"),
        "language": "c",
        "runs": (f"{version}.1", f"{version}.2") if verdict == "IMPROVED" else (f"{version}.1",),
        "verdict": verdict,
        "gain": ratio(gain) if gain else None,
        "vs_baseline": ratio(over) if over else None,
        "incumbent": "v000_baseline",
        "confirmed_by": f"{version}.2" if verdict == "IMPROVED" else None,
        "status": "selected" if verdict == "IMPROVED" else "rejected",
        "at_head": COMMIT,
    }
    return Row(**{**fields, **more})


def baseline() -> Row:
    return row(
        0,
        None,
        version="v000_baseline",
        kind="baseline",
        parent="",
        variant="baseline",
        runs=("v000_baseline.1",),
        status="selected",
        motivation=Motivation(kind="baseline", text="baseline"),
    )


def bench(point: float, *, cases: int = 3) -> Bench:
    lines = tuple(
        CaseBench(
            case_id=f"m{2**ix}_k4096",
            speedup=point * (1 + 0.1 * (ix - 1)),
            ci_low=point * (1 + 0.1 * (ix - 1)) * 0.95,
            ci_high=point * (1 + 0.1 * (ix - 1)) * 1.05,
            a_us=100.0,
            b_us=100.0 / point,
            required=True,
            pairs=6,
        )
        for ix in range(cases)
    )
    return Bench(
        verdict="IMPROVED",
        partial=False,
        reason="improved: as measured",
        objective="geomean",
        geomean=BenchInterval(speedup=point, ci_low=point * 0.97, ci_high=point * 1.03),
        half_width=0.03,
        order_effect=0.0,
        bias_bound=0.002,
        sign_p=0.03,
        alpha=0.022,
        pairs=6,
        need_more=None,
        arms=("A", "B"),
        tier="accept",
        device="cpu",
        note="",
        cases=lines,
        best_case=lines[-1].case_id,
        worst_case=lines[0].case_id,
        job_ids=("j",),
    )


def wrong(text: str = "columns 896..999 of every row") -> Verification:
    return Verification(
        job_id="j",
        arm="B",
        framework="numpy",
        verdict="Wrong",
        reason="wrong.shape: only edge cases fail",
        stage="",
        blame="",
        findings=(Finding(code="wrong.shape", text=text, case_id="m3_k1000"),),
        worst=(),
        checks=12,
        regimes=("normal",),
        mutation_score="",
        notes=(),
        log="",
    )


def seven() -> ReportData:
    rows = (
        baseline(),
        row(1, "IMPROVED", 1.62, 1.62, motivation=Motivation(kind="research", text="fuse both passes over the row")),
        row(2, "WRONG", reason="wrong.shape: only edge cases fail", motivation=Motivation(kind="benchmark", text=EVIL)),
        row(3, "SAME", 1.004, incumbent="v001_try1", reason="same.band: inside +-1 % at 97.8 %"),
        row(4, "IMPROVED", 1.31, 2.12, incumbent="v001_try1"),
        row(5, "BROKEN", reason="timeout: call did not return within 20 s", incumbent="v004_try4"),
        row(6, "REGRESSED", 0.81, incumbent="v004_try4", reason="regressed: slower by 19 %"),
        row(7, "AMBIGUOUS", 1.02, incumbent="v004_try4", partial=True, reason="partial.required_case: m1 is slower"),
    )
    runs = {
        "v000_baseline.1": RunFacts(
            run="v000_baseline.1",
            floor=FloorFacts(run="v000_baseline.1", at="2025-01-02T03:04:05Z", half_width=0.008, point=0.001, fit=True),
            env={"cpu": "Example CPU 3000", "cores": 2, "python": "3.11.2", "started": "never shown"},
        ),
        **{
            run: RunFacts(run=run, bench=bench(r.gain.speedup), env={"cpu": "Example CPU 3000"})
            for r in rows
            if r.gain
            for run in r.runs
        },
        "v002_try2.1": RunFacts(run="v002_try2.1", verification=wrong()),
    }
    return ReportData(
        task="rmsnorm",
        summary="RMS norm over rows",
        gpu="cpu",
        target=1.5,
        epoch=1,
        mutation_score="19/19",
        rows=rows,
        runs=runs,
    )


def write_repo(tmp_path: Path, data: ReportData) -> Path:
    for r in data.rows:
        ledger.append(tmp_path, r)
    for run in data.runs.values():
        folder = tmp_path / "artifacts" / "runs" / run.run
        if run.bench:
            records.save(folder / "bench.json", run.bench)
        if run.verification:
            records.save(folder / "verify.json", run.verification)
        records.write_bytes(folder / "raw.json", records.dump({"format": "kernelpilot.raw", "env": run.env, "x": [1]}))
    records.write_text(
        tmp_path / "contract.toml",
        'task = {name = "rmsnorm", op = "norm", summary = "RMS norm"}\ntarget = {gpu = "cpu", speedup = 1.5}\n',
    )
    records.write_bytes(
        tmp_path / "artifacts" / "contract.lock.json",
        records.dump({"epoch": 1, "mutation_score": "19/19", "files": {}}),
    )
    return tmp_path


SUMMARY = """# Round 1

`99 %` of this is prose. We fused two passes over 4096x4096.
v001_fused is 1.30x as fast as the baseline [v001_fused.3].
"""


def loop(repo: Path, *, phase: str = "BUILD", summaries: dict[int, str] | None = None) -> LoopFacts:
    """Set-up at the baseline commit, a red Stop after the first attempt, a passing one after the second."""
    heads = proc.git_out(repo, "rev-list", "--topo-order", "--reverse", "HEAD").split()
    return LoopFacts(
        directory=".humanize/rlcr/2026-11-30_08-00-00",
        phase=phase,
        round=2,
        max_rounds=84,
        reviewer="evidence-only",
        base_commit=heads[1],
        plan_sha256="a" * 64,
        stops=(
            StopFacts(round=0, head=heads[1], outcome="setup"),
            StopFacts(round=1, head=heads[-1], passed=False, findings=("10:runs",), outcome="block", reason="gate red"),
            StopFacts(round=1, head=heads[-1], passed=True, outcome="block", reason="next round"),
        ),
        summaries={1: SUMMARY} if summaries is None else summaries,
    )


def tuned() -> TuningFacts:
    """Two versions on two cases: one is better on the small shape, the other on the large one."""
    ratios = {
        ("m1", "v001_fused"): 1.5,
        ("m1", "v002_wide"): 0.9,
        ("m64", "v001_fused"): 1.1,
        ("m64", "v002_wide"): 3.0,
    }
    cells = tuple(
        Cell(case_id=case, version=version, vs_baseline=ratio(r), baseline_us=100.0, version_us=100.0 / r)
        for (case, version), r in ratios.items()
    )
    shapes = {"m1": ("decode", 1), "m64": ("prefill", 64)}
    rule = ShapeRule(
        regime="decode",
        guards=(Guard(axis="M", low=1, high=8),),
        version="v001_fused",
        variant="fused",
        tree="f" * 40,
        why="1.50x on m1",
    )
    return TuningFacts(
        map=PerformanceMap(
            epoch=1,
            at="2026-11-30T08:00:00Z",
            environment={},
            baseline_tree="b" * 40,
            cases=tuple(
                MapCase(case_id=name, regime=regime, axes={"M": m}, required=True, held_out=False)
                for name, (regime, m) in shapes.items()
            ),
            variants=tuple(
                MapVariant(version=v, variant=v[5:], tree="f" * 40, run=f"{v}.9") for v in ("v001_fused", "v002_wide")
            ),
            cells=cells,
        ),
        table=Table(kind="table", epoch=1, map_sha256="d" * 64, rules=(rule,), files={}),
    )


def red() -> Report:
    """A gate with one block, a rule that could not be judged, and a task that is not done."""
    finding = GateFinding(
        rule="10", severity="block", where=EVIL, what="no row cites this run", fix="kernelpilot attempt"
    )
    missing = Done(met=False, why="no target met", missing=("a confirmed version",))
    return Report(passed=False, done=missing, findings=(finding,), not_evaluated=("24: no performance map",))


def evidence_of(repo: Path, **more: Any) -> Evidence:
    """What a collector reads of a real repo, as far as the report and the last rules need it."""
    ws = workspace.open_repo(repo)
    assert ws.lock is not None
    data = reports.collect(repo)
    log = proc.git_out(repo, "log", "--topo-order", "--reverse", "--format=%x00%H", "--name-only")
    entries = [entry.split("\n") for entry in log.split("\0")[1:]]
    commits = tuple(CommitFacts(commit=head, paths=tuple(p for p in paths if p)) for head, *paths in entries)
    names = (reports.FINAL_PATH, reports.JOURNAL_PATH)
    files = {name: (repo / name).read_bytes().decode() for name in names if (repo / name).exists()}
    fields: dict[str, Any] = {
        "root": str(repo),
        "contract": ws.contract,
        "lock": ws.lock,
        "cases": ws.resolved,
        "rows": ws.rows,
        "runs": {
            run: EvidenceRun(run=run, bench=r.bench, verification=r.verification, env=r.env)
            for run, r in data.runs.items()
        },
        "git": GitFacts(head=proc.head(repo) or "", commits=commits, dirty=tuple(proc.dirty(repo))),
        "files": files,
    }
    return Evidence(**{**fields, **more})
