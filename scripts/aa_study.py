"""A/A gates on this machine: the same C kernel in both arms, judged by the same decisions as an attempt.

    python scripts/aa_study.py --gates 50 --out docs/measurements/aa-cpu.json

Prints how many gates said IMPROVED (none should), the half-width of each first look, and the seconds a job took. Needs
a task Python as `kernelpilot attempt` does (KERNELPILOT_PYTHON, the active venv, or python3 with numpy or torch).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from kernelpilot_helpers import benchmark, demo, policy, proc, scaffold
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.executors import task_python
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.referee import decide, floor, jobs, workspace

VARIANT = "fused"


def prepare(folder: Path) -> workspace.Workspace:
    """A scaffolded repo with the demo's plain C kernel committed; no lock is needed for A/A."""
    scaffold.make(scaffold.example(task=demo.TASK), folder, kernelpilot=Path(sys.executable), parent_ok=True)
    shutil.copytree(demo.VARIANTS / VARIANT, folder / "src" / demo.TASK / "variants" / VARIANT)
    proc.commit(folder, "variant", ["src"])
    return workspace.open_repo(folder, need_lock=False)


def facts(ws: workspace.Workspace, tier: policy.Tier, max_pairs: int) -> decide.Facts:
    """What an attempt would be judged by, with no bias known."""
    return decide.Facts(
        tier=tier,
        device=ws.device,
        max_pairs=max_pairs,
        numerics=ws.numerics,
        expect=floor.expectation(ws),
        timed=ws.timed,
        required=ws.required,
        weights=ws.weights,
        bias_bound=0.0,
        unfit="",
        incumbent_is_baseline=True,
        mutation_score="",
    )


class Study:
    """One machine, one kernel, many gates."""

    def __init__(self, ws: workspace.Workspace, lab: LocalLab, scratch: Path) -> None:
        self.ws, self.lab, self.scratch = ws, lab, scratch
        tree = proc.tree(ws.root, "HEAD", f"{ws.variants}/{VARIANT}")
        assert tree is not None
        self.arm = jobs.variant_program(tree)
        self.baseline = jobs.baseline_program(ws, proc.tree(ws.root, "HEAD", "baseline") or "")
        self.jobs: list[dict[str, Any]] = []

    def run(self, ask: decide.Ask, blocks: int) -> Raw:
        """One A/A job, timed as a whole."""
        question = jobs.Question(
            job_id=f"aa-{len(self.jobs)}", phases=("time",), arms={"A": self.arm, "B": self.arm},
            pairs=ask.pairs, first_pair=ask.first_pair, blocks=blocks,
        )  # fmt: skip
        started = time.monotonic()
        raw = self.lab.run(jobs.make(self.ws, question, self.scratch), self.scratch)
        seconds = time.monotonic() - started
        if raw.died is not None:
            raise SystemExit(f"the job died in {raw.died.stage}: {raw.died.log}")
        self.jobs.append({"pairs": ask.pairs, "seconds": round(seconds, 3), "phases": raw.env.get("phase_seconds")})
        return raw

    def gate(self, known: decide.Facts) -> dict[str, Any]:
        """Timing decisions of one attempt, looks and confirmation included; correctness is another study."""
        looks: list[Raw] = []
        first: benchmark.Bench | None = None
        bench = None
        while True:
            done = bench.pairs if bench is not None else 0
            pairs = (bench.need_more or 0) - done if bench is not None else known.tier.looks[0]
            ask = decide.Ask(role="more", phases=("time",), pairs=pairs, first_pair=done, why="")
            looks.append(self.run(ask, known.tier.blocks))
            bench = decide.judge(known, looks, known.tier)
            first = first or bench
            if bench.need_more is None:
                break
        verdict = bench.verdict
        confirmed = None
        if verdict == "IMPROVED":
            ask = decide.Ask(role="confirm", phases=("time",), pairs=bench.pairs, first_pair=0, why="")
            again = decide.judge(known, [self.run(ask, known.tier.blocks)], decide.fixed_look(known.tier, bench.pairs))
            confirmed = again.verdict
        return {
            "verdict": "AMBIGUOUS" if verdict == "IMPROVED" and confirmed != "IMPROVED" else verdict,
            "before_confirmation": verdict,
            "pairs": bench.pairs,
            "point": math.log(bench.geomean.speedup),
            "half_width": bench.half_width,
            "first_look_point": math.log(first.geomean.speedup),
            "first_look_half_width": first.half_width,
            "findings": [f.code for f in benchmark.suspicions(looks)],
        }


def main() -> int:
    """Run the study and write its raw results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=50)
    parser.add_argument("--max-pairs", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    python = task_python.find(explicit=task_python.explicit_argv(Path(), os.environ))
    with tempfile.TemporaryDirectory() as tmp:
        ws = prepare(Path(tmp) / "repo")
        study = Study(ws, LocalLab(python, proc.cache_dir() / "device.lock"), Path(tmp) / "job")
        known = facts(ws, policy.ACCEPT, options.max_pairs)
        gates = []
        env: dict[str, Any] = {}
        for number in range(options.gates):
            gates.append(study.gate(known))
            g = gates[-1]
            print(
                f"{number:3d} {g['verdict']:<10} P={g['pairs']:<2} point {g['point'] * 100:+.2f} % "
                f"half-width {g['half_width'] * 100:.2f} %", flush=True,
            )  # fmt: skip
    result = summary(gates, study.jobs, python, options)
    print(json.dumps(result["summary"], indent=1))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({**result, "env": env}, indent=1) + "\n")
    return 0


def summary(
    gates: list[dict[str, Any]], made: list[dict[str, Any]], python: task_python.TaskPython, options: Any
) -> dict[str, Any]:
    """Figures, and what they were measured with."""
    widths = [g["first_look_half_width"] for g in gates]
    six = [j["seconds"] for j in made if j["pairs"] == policy.ACCEPT.looks[0]]
    return {
        "what": f"A/A gates of the demo's plain C kernel ({VARIANT}), six cases, accept tier, P <= {options.max_pairs}",
        "command": f"python scripts/aa_study.py --gates {options.gates} --max-pairs {options.max_pairs}",
        "machine": {
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "framework": python.framework,
            "version": python.version,
        },
        "policy": msgspec.to_builtins(policy.ACCEPT),
        "summary": {
            "gates": len(gates),
            "improved": sum(g["verdict"] == "IMPROVED" for g in gates),
            "improved_before_confirmation": sum(g["before_confirmation"] == "IMPROVED" for g in gates),
            "regressed": sum(g["verdict"] == "REGRESSED" for g in gates),
            "first_look_half_width_median": statistics.median(widths),
            "first_look_half_width_max": max(widths),
            "job_seconds_median": statistics.median(six),
            "job_seconds_max": max(six),
        },
        "gates": gates,
        "jobs": made,
    }


def cpu_name() -> str:
    """Model name of the processor, as Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    sys.exit(main())
