"""How often the GPU referee errs and what it finds: false IMPROVED, power, half-width and seconds of each tier.

    python scripts/operating_curve.py --pool pool.json --budget-s 540      # measure; call again to go on
    python scripts/operating_curve.py --resample-only pool.json --out docs/measurements/operating-curve.json

A pool of cross-over pairs per effect is measured through the real runtime: a program against itself, against placebo
edits (kernel renamed, dead code), and against itself slowed by 0.5, 1, 2 and 5 %. The slowed one is the incumbent, so
the candidate's gain is real. Gates are then drawn from the pools, 2,000 per effect and tier, and judged by the rules of
an attempt: they are resampled, not measured one by one. Needs a GPU, except --resample-only, and a task Python with
torch (KERNELPILOT_PYTHON, the active venv, or python3).

Time: a pair of 8 cases lasts about 2.5 s, so six effects of 40 pairs take about 11 minutes in all; each chunk of 20
pairs is one job and is appended to the pool file when it is whole.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import curve_report
import curve_workload as workload
from kernelpilot_helpers import benchmark, proc
from kernelpilot_helpers.attempt.job import Job, TimeSpec
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.executors import task_python
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.executors.local import LocalLab

EFFECTS: dict[str, float] = {
    "A/A": 0.0, "slower 1 %": 0.01, "slower 2 %": 0.02, "placebo edits": 0.0, "slower 0.5 %": 0.005, "slower 5 %": 0.05,
}  # fmt: skip
"""Name to the incumbent's true extra time, in the order of measuring."""
CALIBRATE_SHARE = 0.25
"""Far above the noise of the smallest shapes; the loop's time is linear in its steps."""
CALIBRATE_PAIRS = 4
JOB_OVERHEAD_S = 15.0
"""What a job costs besides its pairs, until one was measured."""
PAIR_S = 2.5
FORMAT = "kernelpilot.operating-pool"


class Study:
    """One pool file, one machine."""

    def __init__(self, options: argparse.Namespace, lab: Lab) -> None:
        self.options, self.lab, self.path = options, lab, options.pool
        self.started = time.monotonic()
        self.pool: dict[str, Any] = {
            "format": FORMAT, "version": 1, "cases": list(workload.CASES), "blocks": options.blocks,
            "sample_us": options.sample_us, "calibration": None, "chunks": [], "effects": {},
        }  # fmt: skip
        if self.path.exists():
            self.pool = json.loads(self.path.read_text())
            if self.pool.get("format") != FORMAT or self.pool["blocks"] != options.blocks:
                raise SystemExit(f"{self.path} is another pool (format or --blocks differ): give another --pool")

    def left(self) -> float:
        """Seconds of the budget that remain."""
        return float(self.options.budget_s) - (time.monotonic() - self.started)

    def run(self, a: dict[str, str], b: dict[str, str], pairs: int, first_pair: int) -> tuple[Raw, float]:
        """One job and its wall seconds; a job that died ends the study with what it said."""
        with tempfile.TemporaryDirectory(prefix="kp-curve-") as tmp:
            folder = Path(tmp) / "job"
            folder.mkdir()
            spec = TimeSpec(
                pairs=pairs,
                first_pair=first_pair,
                blocks=self.options.blocks,
                sample_us=self.options.sample_us,
                recheck_share=0.0,
            )
            job: Job = workload.make_job(folder, a=a, b=b, time=spec, arena_gib=self.options.arena_gib)
            started = time.monotonic()
            raw = self.lab.run(job, folder)
        if raw.died is not None:
            raise SystemExit(
                f"the job died in {raw.died.stage} (arm {raw.died.arm or 'oracle'}): {raw.died.log[-1500:]}"
            )
        bad = sorted({f"{e.kind} {e.case_id} {e.detail}" for e in raw.events if not e.kind.startswith("note.")})
        if bad:
            print(f"  events: {'; '.join(bad)}", file=sys.stderr)
        return raw, time.monotonic() - started

    def calibrate(self) -> None:
        """Find out, per shape, how many waiting steps make which share of its time."""
        guess = {
            case: max(1, round(CALIBRATE_SHARE * us * 1000 / workload.GUESS_STEP_NS))
            for case, us in zip(workload.CASES, workload.GUESS_US, strict=True)
        }
        raw, seconds = self.run(workload.program(guess), workload.program(), CALIBRATE_PAIRS, 0)
        table = benchmark.tabulate([raw], timed=workload.CASES)
        found = {}
        for case, steps in guess.items():
            base = statistics.median(cell.b_ns for cell in table.cells[case])
            share = statistics.median(cell.log_ratio for cell in table.cells[case])
            found[case] = {"base_ns": base, "steps": steps, "share": share, "step_ns": base * math.expm1(share) / steps}
            print(f"  {case:<14} {base / 1000:8.2f} us  {steps} steps = {share * 100:+.2f} %", flush=True)
        self.pool["calibration"] = {"cases": found, "seconds": seconds, "pairs": CALIBRATE_PAIRS}
        self.save()

    def steps(self, effect: float) -> dict[str, int]:
        """Waiting steps by case for one effect; a step that did not show in the calibration cannot be used."""
        cases = self.pool["calibration"]["cases"]
        weak = [case for case, c in cases.items() if c["step_ns"] <= 0]
        if weak:
            raise SystemExit(f"the waiting loop costs nothing measurable in {', '.join(weak)}: calibrate again")
        return {case: max(1, round(effect * c["base_ns"] / c["step_ns"])) for case, c in cases.items()}

    def programs(self, name: str) -> tuple[dict[str, str], dict[str, str]]:
        """Arms A and B of one effect."""
        if EFFECTS[name]:
            return workload.program(self.steps(EFFECTS[name])), workload.program()
        if name == "placebo edits":
            return workload.program(), workload.program(name="fused_norm_renamed", unused=True)
        return workload.program(), workload.program()

    def measure(self) -> None:
        """Chunks of every effect in turn, until each has enough pairs or the budget is used up."""
        if self.pool["calibration"] is None:
            self.calibrate()
        while True:
            wanted = [e.strip() for e in self.options.effects.split(",") if e.strip()] or list(EFFECTS)
            have = {name: len(self.pool["effects"].get(name, {"pairs": []})["pairs"]) for name in wanted}
            open_ = [name for name in wanted if have[name] < self.options.pairs]
            if not open_:
                print("the pool is complete")
                return
            name = min(open_, key=lambda n: (have[n], list(EFFECTS).index(n)))
            pairs = min(self.options.chunk, self.options.pairs - have[name])
            need = self.overhead() + pairs * self.pair_s()
            if self.left() < need:
                rest = sum(self.options.pairs - have[n] for n in open_)
                print(f"budget used up: {rest} pairs are missing (about {rest * self.pair_s():.0f} s); call again")
                return
            self.chunk(name, pairs, have[name])

    def overhead(self) -> float:
        """Seconds of a job besides its pairs."""
        known = [c["seconds"] - c["time_s"] for c in self.pool["chunks"]]
        return statistics.median(known) if known else JOB_OVERHEAD_S

    def pair_s(self) -> float:
        """Seconds of one pair."""
        known = [c["time_s"] / c["pairs"] for c in self.pool["chunks"]]
        return statistics.median(known) if known else PAIR_S

    def chunk(self, name: str, pairs: int, first_pair: int) -> None:
        """One job of one effect, appended to the pool when it is whole."""
        raw, seconds = self.run(*self.programs(name), pairs, first_pair)
        got = benchmark.pool_of([raw], timed=workload.CASES, effect=name)
        entry = self.pool["effects"].setdefault(name, {"nominal": EFFECTS[name], "pairs": []})
        for pair in got.pairs:
            cells = {
                c: [round(cell.log_ratio, 7), round(cell.a_ns, 1), round(cell.b_ns, 1)]
                for c, cell in pair.cells.items()
            }
            entry["pairs"].append({"order": pair.order, "cells": cells})
        spent = raw.env.get("phase_seconds", {})
        self.pool["chunks"].append(
            {
                "effect": name, "pairs": pairs, "seconds": round(seconds, 2),
                "time_s": round(spent.get("time", seconds), 2), "build_s": round(spent.get("build", 0.0), 2),
                "first_pair": first_pair,
                "methods": sorted({s.method for s in raw.samples}),
                "env": {k: v for k, v in raw.env.items() if isinstance(v, (str, int, float))},
            }
        )  # fmt: skip
        self.save()
        means = [statistics.fmean(v[0] for v in p["cells"].values()) for p in entry["pairs"]]
        print(
            f"  {name:<14} {len(means):3d} pairs  mean {statistics.fmean(means) * 100:+.3f} %  "
            f"sd {statistics.stdev(means) * 100:.3f} %  {seconds:.0f} s", flush=True,
        )  # fmt: skip

    def save(self) -> None:
        """Replace the pool file whole."""
        fresh = self.path.with_name(self.path.name + ".tmp")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps(self.pool, separators=(",", ":")) + "\n")
        fresh.replace(self.path)


def merged(pools: list[dict[str, Any]]) -> dict[str, Any]:
    """One pool of several lanes: an effect is measured on one GPU, so no effect may be in two of them."""
    first, *others = pools
    for other in others:
        if twice := first["effects"].keys() & other["effects"].keys():
            raise SystemExit(f"measured in two pools: {', '.join(sorted(twice))}; give each lane its own --effects")
        first["effects"] |= other["effects"]
        first["chunks"] += other["chunks"]
        first.setdefault("calibrations", [first["calibration"]]).append(other["calibration"])
    return first


def main(argv: list[str] | None = None) -> int:
    """Measure, resample, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pool", type=Path, default=Path("operating-pool.json"), help="measured pairs; appended to")
    parser.add_argument("--resample-only", type=Path, metavar="POOL", help="no GPU: judge gates drawn from this pool")
    parser.add_argument("--out", type=Path, help="where the result goes; the plot goes beside it as .svg")
    parser.add_argument("--budget-s", type=float, default=540.0, help="begin no chunk that would end after this")
    parser.add_argument("--pairs", type=int, default=40, help="pairs an effect, even")
    parser.add_argument("--chunk", type=int, default=20, help="pairs a job, even")
    parser.add_argument("--blocks", type=int, default=12, help="timed blocks a pair, case and arm")
    parser.add_argument("--sample-us", type=float, default=300.0)
    parser.add_argument("--arena-gib", type=float, default=8.0, help="device memory an arm")
    parser.add_argument(
        "--effects", default="", help="names, separated by commas (a lane of several GPUs); all by default"
    )
    parser.add_argument(
        "--with", dest="others", type=Path, nargs="*", default=[], help="pools of other lanes, merged into the result"
    )
    parser.add_argument("--gates", type=int, default=2000, help="gates an effect and tier")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    if options.pairs % 2 or options.chunk % 2:
        parser.error("--pairs and --chunk are even: half the pairs start with either arm")
    path = options.resample_only or options.pool
    if options.resample_only is None:
        python = task_python.find(explicit=task_python.explicit_argv(Path(), os.environ), framework="torch")
        Study(options, LocalLab(python, proc.cache_dir() / "device.lock")).measure()
    pool = merged([json.loads(p.read_text()) for p in (path, *options.others)])
    result = curve_report.resample(pool, gates=options.gates, seed=options.seed)
    print(curve_report.words(result))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({**result, "pool": pool}, separators=(",", ":")) + "\n")
        options.out.with_suffix(".svg").write_text(curve_report.plot(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
