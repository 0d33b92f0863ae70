"""Fast, honest work that is *not evidence*: build, verify, bench and try on the directory as it is now.

Kept in ``.kernelpilot/scratch`` (a ring buffer, git-ignored); no commit, no motivation and no row is asked for.
``kernelpilot attempt --from-try ID`` measures the same content again as evidence.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from kernelpilot_helpers import benchmark, correctness, policy, proc, records
from kernelpilot_helpers.attempt.job import Phase
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.correctness import Broken, Correct, Wrong
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.referee import floor, jobs, sources, workspace
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.workspace import LOCAL, Workspace

Mode = Literal["build", "verify", "bench", "try"]
BASELINE = "baseline"
PHASES: dict[Mode, tuple[Phase, ...]] = {
    "build": (),
    "verify": ("verify",),
    "bench": ("time",),
    "try": ("verify", "time"),
}


class Meta(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a try was of; ``tree`` is what ``--from-try`` promotes."""

    format: Literal["kernelpilot.try"] = "kernelpilot.try"
    version: int = 1
    id: str
    mode: Mode
    variant: str
    tree: str
    at: str
    result: str


META = records.Owner(format="kernelpilot.try", version=1, type=Meta, fix="kernelpilot try VARIANT")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """What came out; None where the mode does not look."""

    meta: Meta
    raw: Raw
    verification: Correct | Wrong | Broken | None
    bench: Bench | None


def run(start: Path, variant: str | None, *, mode: Mode, lab: Lab, clock: Clock) -> Tried:
    """Do one of the four on the variant's directory. Raises KernelPilotError; a wrong kernel is a result."""
    ws = workspace.open_repo(start, need_lock=mode != "build")
    name = BASELINE if _means_baseline(ws, variant) else sources.choose_variant(ws, variant)
    tree = proc.snapshot(ws.root, BASELINE if name == BASELINE else f"{ws.variants}/{name}")
    folder = _new(ws)
    candidate = jobs.baseline_program(ws, tree) if name == BASELINE else jobs.variant_program(tree)
    raw = _measure(ws, folder, candidate, mode, lab)
    verification = None
    if mode in ("verify", "try"):
        verification = correctness.judge(raw, numerics=ws.numerics, expectation=_expectation(ws, mode))
    bench = None
    if mode in ("bench", "try") and raw.samples and not isinstance(verification, Wrong | Broken):
        tier = policy.SCREEN if mode == "try" else policy.ACCEPT
        bench = benchmark.judge(
            [raw],
            tier=tier,
            device=ws.device,
            required=ws.required,
            timed=ws.timed,
            weights=ws.weights,
            bias_bound=0.0,
            max_pairs=tier.looks[0],
        )
    meta = Meta(
        id=folder.name, mode=mode, variant=name, tree=tree, at=stamp(clock), result=_words(raw, verification, bench)
    )
    records.save(folder / "meta.json", meta)
    shutil.rmtree(folder / "arms", ignore_errors=True)
    return Tried(meta=meta, raw=raw, verification=verification, bench=bench)


def _words(raw: Raw, verification: Correct | Wrong | Broken | None, bench: Bench | None) -> str:
    if verification is not None and not isinstance(verification, Correct):
        return verification.reason
    if bench is not None:
        return f"{bench.verdict}: {bench.reason}"
    if raw.died is not None:
        return f"died in {raw.died.stage}"
    return "correct" if verification is not None else "built"


def _expectation(ws: Workspace, mode: Mode) -> correctness.Expectation:
    full = floor.expectation(ws)
    return full if mode == "try" else msgspec.structs.replace(full, timed_cases=())


def _means_baseline(ws: Workspace, variant: str | None) -> bool:
    """``baseline`` by name, or nothing named in a repo that has no variant yet."""
    if variant is not None:
        return variant == BASELINE and not (ws.root / ws.variants / BASELINE).is_dir()
    return not any(p.is_dir() for p in (ws.root / ws.variants).glob("*"))


def _measure(ws: Workspace, folder: Path, candidate: jobs.Program, mode: Mode, lab: Lab) -> Raw:
    arms: dict[jobs.ArmName, jobs.Program] = {"B": candidate}
    if mode != "build":
        best, baseline = ws.best(), jobs.baseline_program(ws, ws.baseline().tree)
        arms["A"] = baseline if best.kind == "baseline" else jobs.variant_program(best.tree)
        if best.kind != "baseline":
            arms["Z"] = baseline
    tier = policy.SCREEN if mode == "try" else policy.ACCEPT
    question = jobs.Question(
        job_id=folder.name, phases=PHASES[mode], arms=arms, pairs=tier.looks[0], blocks=tier.blocks
    )
    return lab.run(jobs.make(ws, question, folder), folder)


def _new(ws: Workspace) -> Path:
    base = ws.root / LOCAL / "scratch"
    base.mkdir(parents=True, exist_ok=True)
    taken = sorted(int(p.name[4:]) for p in base.glob("try-*") if p.name[4:].isdigit())
    for old in taken[: max(0, len(taken) - policy.POLICY.scratch_keep + 1)]:
        shutil.rmtree(base / f"try-{old:04d}", ignore_errors=True)
    number = (taken[-1] if taken else 0) + 1
    while True:
        folder = base / f"try-{number:04d}"
        try:
            folder.mkdir()
        except FileExistsError:  # another try took the number just now
            number += 1
        else:
            return folder


def promoted(start: Path, try_id: str) -> Meta:
    """What a try was of. Raises Refused when it left the ring buffer."""
    ws = workspace.open_repo(start)
    path = ws.root / LOCAL / "scratch" / try_id / "meta.json"
    if not path.exists():
        kept = ", ".join(sorted(p.name for p in path.parent.parent.glob("try-*"))) or "none"
        raise Refused(f"no try {try_id!r} is kept (there are: {kept})", fix="kernelpilot try VARIANT")
    return records.load(path, META)
