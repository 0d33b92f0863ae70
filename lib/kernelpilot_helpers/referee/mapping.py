"""From the raws of tune runs to the performance map: what ``tune`` writes, and what is judged again from its runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec

from kernelpilot_helpers import autotune, benchmark, correctness, policy
from kernelpilot_helpers.attempt import sane
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.autotune import LeftOut, PerformanceMap, Tuned
from kernelpilot_helpers.correctness import Correct, Verification
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.referee import decide, floor, runs
from kernelpilot_helpers.referee.workspace import Workspace

FIX = "kernelpilot tune"
TOO_FAST = "suspect.floor:"
"""Of a GPU: the version's times are below what its memory allows, so it does not do the work; nothing serves them."""
UNSURE = ("suspect.heat:", "clock.contradiction:")
"""Of a GPU: these times decide nothing, so they choose no version either."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """One tune run. ``bench`` counts where neither ``left_out`` nor ``disturbed`` says something."""

    verification: Verification | None = None
    bench: benchmark.Bench | None = None
    left_out: str = ""
    """The version's own fault, ``code: text``."""
    disturbed: str = ""
    """The machine's or the harness's: measure again."""


def tier(ws: Workspace) -> policy.Tier:
    """How much a tune job measures on the contract's device."""
    return ws.tier(policy.ACCEPT.name)


def timing_held_out(ws: Workspace) -> Workspace:
    """The workspace of a tune job: held-out cases are timed as well."""
    resolved = tuple(msgspec.structs.replace(c, timed=c.timed or (c.held_out and not c.edge)) for c in ws.resolved)
    return dataclasses.replace(ws, resolved=resolved)


def judge(ws: Workspace, raw: Raw) -> Judged:
    """What one tune run says; arm A is the baseline, arm B the version."""
    if odd := sane.problems([raw]):
        return Judged(disturbed=f"evidence.garbled: {odd[0]}")
    wide = timing_held_out(ws)
    outcome = correctness.judge(raw, numerics=ws.numerics, expectation=floor.expectation(wide))
    kept = correctness.record(raw, outcome, mutation_score=ws.lock.mutation_score if ws.lock else "")
    if not isinstance(outcome, Correct):
        theirs = isinstance(outcome, correctness.Broken) and outcome.blame != "candidate"
        return Judged(
            verification=kept,
            left_out="" if theirs else outcome.reason,
            disturbed=outcome.reason if theirs else "",
        )
    for found in sorted(benchmark.suspicions([raw]), key=lambda f: not f.code.startswith("cheat.")):
        words = f"{found.code}: {found.text}"
        cheat = found.code.startswith("cheat.")
        return Judged(verification=kept, left_out=words) if cheat else Judged(verification=kept, disturbed=words)
    # No ceilings: the map must come out the same on a machine that has measured none.
    bench = benchmark.judge(
        [raw],
        tier=decide.fixed_look(tier(ws), len({s.pair for s in raw.samples})),
        device=ws.device,
        required=frozenset(),
        timed=wide.timed,
        weights=wide.weights,
        cases=wide.resolved,
    )
    if bench.reason.startswith(TOO_FAST):
        return Judged(verification=kept, left_out=bench.reason)
    return Judged(verification=kept, bench=bench, disturbed=bench.reason if bench.reason.startswith(UNSURE) else "")


def map_of(ws: Workspace, made: Sequence[str], at: str) -> PerformanceMap:
    """The map that these runs give. Raises BadRecord for a run that gives no figure, and as ``autotune.build``."""
    tuned: list[Tuned] = []
    left_out: list[LeftOut] = []
    for run in made:
        intent, raw = runs.load_intent(ws.root, run), runs.load_raw(ws.root, run)
        if intent is None or raw is None or intent.role != "tune":
            raise BadRecord("is no tune run, or cannot be read", where=f"artifacts/runs/{run}", fix=FIX)
        judged = judge(ws, raw)
        if judged.disturbed:
            raise BadRecord(judged.disturbed, where=f"artifacts/runs/{run}", fix=FIX)
        if judged.bench is None:
            left_out.append(LeftOut(version=intent.subject, tree=intent.tree, run=run, why=judged.left_out))
            continue
        tuned.append(
            Tuned(
                version=intent.subject,
                variant=intent.variant,
                tree=intent.tree,
                run=run,
                bench=judged.bench,
                booking=benchmark.booking(raw.env),
            )
        )
    return autotune.build(
        epoch=ws.epoch,
        at=at,
        device="cpu" if ws.device.kind == "cpu" else "gpu",
        objective="geomean" if ws.weights is None else "total_time",
        baseline_tree=ws.baseline().tree,
        cases=autotune.cases_of(ws.contract, ws.cases),
        tuned=tuned,
        left_out=left_out,
    )
