"""A standalone repo with tuned versions, judged by a FakeLab that knows each version by its tree.

Run as a script: ``python -m tests.tuning_sim REPO tune|dispatch`` (crash points work).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelpilot_helpers import autotune, proc
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.autotune import LeftOut, MapCase, PerformanceMap, Tuned
from kernelpilot_helpers.benchmark import Bench, CaseBench, Interval
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.referee import dispatching, jobs, tuning, workspace
from tests import referee_sim

WIDE = ("m32_n4096", "m48_n2816", "m64_n2048", "m96_n1408", "held_m72_n1920")
TALL = ("m128_n1024", "m256_n512", "held_m192_n768")


def case(case_id: str, regime: str, m: int, n: int, **more: Any) -> MapCase:
    """A case of a made-up W."""
    return MapCase(
        case_id=case_id, regime=regime, axes={"M": m, "N": n}, **{"required": True, "held_out": False, **more}
    )


CASES = (
    case("w1", "wide", 32, 4096),
    case("w2", "wide", 64, 2048),
    case("t1", "tall", 128, 1024),
    case("t2", "tall", 256, 512),
    case("h1", "tall", 192, 768, required=False, held_out=True),
)


def bench(run: str, gains: Mapping[str, float], half: float = 0.01, cases: Sequence[MapCase] = CASES) -> Bench:
    """A bench of one run: the gain of each case, 1.2 where none is given; the version takes 100 us."""
    speed = {c.case_id: gains.get(c.case_id, 1.2) for c in cases}
    return Bench(
        verdict="IMPROVED", partial=False, reason="improved: made up", objective="geomean",
        geomean=Interval(speedup=1.2, ci_low=1.1, ci_high=1.3), half_width=half, order_effect=0.0, bias_bound=0.0,
        sign_p=0.03, alpha=0.022, pairs=6, need_more=None, arms=("A", "B"), tier="accept", device="cpu", note="",
        cases=tuple(
            CaseBench(
                case_id=c.case_id, speedup=speed[c.case_id], ci_low=speed[c.case_id] * (1 - half),
                ci_high=speed[c.case_id] * (1 + half), a_us=100.0 * speed[c.case_id], b_us=100.0,
                required=c.required, pairs=6,
            )
            for c in cases
        ),
        best_case="w1", worst_case="t1", job_ids=(run,),
    )  # fmt: skip


def tuned(
    version: str, gains: Mapping[str, float] | None = None, half: float = 0.01, cases: Sequence[MapCase] = CASES
) -> Tuned:
    """One version as measured."""
    return Tuned(
        version=version,
        variant=version.partition("_")[2],
        tree=f"{int(version[1:4]):040x}",
        run=f"{version}.9",
        bench=bench(f"{version}.9", gains or {}, half, cases),
        booking={"boot_id": "x", "cpu": "c"},
    )


def built(
    *made: Tuned, left_out: Sequence[LeftOut] = (), cases: Sequence[MapCase] = CASES, **more: Any
) -> PerformanceMap:
    """The map of some versions."""
    facts = {"epoch": 1, "at": "2025-01-02T03:04:05Z", "device": "cpu", "objective": "geomean", **more}
    return autotune.build(baseline_tree="b" * 40, cases=cases, tuned=made, left_out=left_out, **facts)


def speeds(wide: float, tall: float) -> dict[str, float]:
    """Old time over new time by case."""
    return {**dict.fromkeys(WIDE, wide), **dict.fromkeys(TALL, tall)}


class ByTree:
    """Answers with the lab of the version that is arm B."""

    def __init__(self, root: Path, labs: Mapping[str, FakeLab]) -> None:
        """``labs`` by variant name."""
        ws = workspace.open_repo(root)
        head = proc.head(root) or ""
        trees = {name: proc.tree(root, head, f"{ws.variants}/{name}") or "" for name in labs}
        self.labs = {jobs.build_key(jobs.variant_program(trees[name])): lab for name, lab in labs.items()}

    def run(self, job: Job, workdir: Path) -> Raw:
        """One job."""
        mine = next((self.labs[a.build_key] for a in job.arms if a.name == "B" and a.build_key in self.labs), None)
        return (mine or FakeLab()).run(job, workdir)


CODE = '''\
"""A version that says its name where the test can see it."""

from pathlib import Path

import numpy as np

NAME = Path(__file__).resolve().parent.name


def entry(*, x, residual, weight, out, eps):
    """The reference, in place."""
    total = x + residual
    residual[...] = total
    out[...] = total / np.sqrt((total * total).mean(-1, keepdims=True) + eps) * weight
    print(NAME)
'''


def two_versions(repo: Path) -> None:
    """``fused`` is faster everywhere, ``tiled`` faster still on the tall cases only."""
    referee_sim.write_variant(repo, "fused", CODE)
    referee_sim.attempt(repo, FakeLab(speedup=1.5), "fused", max_pairs=6)
    referee_sim.write_variant(repo, "tiled", CODE.replace("its name", "its own name"))
    # against the incumbent: faster on the whole and slower on the wide cases, so partial
    referee_sim.attempt(repo, FakeLab(speedup=speeds(0.85, 2.0)), "tiled", max_pairs=6)


LABS = {"fused": {"wide": 1.5, "tall": 1.5}, "tiled": {"wide": 1.275, "tall": 3.0}}


def lab(repo: Path, **other: FakeLab) -> ByTree:
    """The usual lab, some versions answered by another."""
    usual = {name: FakeLab(speedup=speeds(**gain)) for name, gain in LABS.items()}
    return ByTree(repo, {**usual, **other})


def tune(repo: Path, **other: FakeLab) -> tuning.TunedMap:
    """One tuning."""
    return tuning.tune(repo, max_pairs=6, lab=lab(repo, **other), clock=referee_sim.clock, say=referee_sim.quiet)


def dispatch(repo: Path) -> dispatching.Dispatched:
    """One dispatcher."""
    return dispatching.dispatch(repo, clock=referee_sim.clock)


if __name__ == "__main__":
    if sys.argv[2] == "tune":
        tune(Path(sys.argv[1]))
    else:
        dispatch(Path(sys.argv[1]))
