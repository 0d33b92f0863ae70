"""Made-up histories for the report's tests: rows, runs and a repo that holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelpilot_helpers import ledger, records
from kernelpilot_helpers.benchmark import Bench, CaseBench
from kernelpilot_helpers.benchmark import Interval as BenchInterval
from kernelpilot_helpers.correctness import Finding, Verification
from kernelpilot_helpers.ledger import Interval, Motivation, Row
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
