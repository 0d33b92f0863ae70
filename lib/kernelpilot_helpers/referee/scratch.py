"""Fast, honest work that is *not evidence*: build, verify, bench and try on the directory as it is now.

Kept in ``.kernelpilot/scratch`` (a ring buffer, git-ignored); no commit, no motivation and no row is asked for.
``kernelpilot attempt --from-try ID`` measures the same content again as evidence.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from kernelpilot_helpers import benchmark, correctness, policy, proc, records
from kernelpilot_helpers.attempt.job import Phase
from kernelpilot_helpers.attempt.raw import Build, Raw
from kernelpilot_helpers.benchmark import Bench
from kernelpilot_helpers.correctness import Broken, Correct, Wrong
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.ledger.model import Row
from kernelpilot_helpers.referee import ceilings, floor, jobs, machine_code, signature, sources, workspace
from kernelpilot_helpers.referee.floor import Clock, stamp
from kernelpilot_helpers.referee.workspace import LOCAL, Workspace

Mode = Literal["build", "verify", "bench", "try"]
BASELINE = "baseline"
BUILT = "built"
"""Folder of a build's try that keeps the cubins, an arm a folder."""
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
class Against:
    """A build for a GPU beside the incumbent's."""

    version: str
    same: bool
    """One and the same program: there is nothing to time."""
    kernels: tuple[machine_code.KernelChange, ...]
    note: str = ""
    """Why there is nothing to compare with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """What came out; None where the mode does not look."""

    meta: Meta
    raw: Raw
    verification: Correct | Wrong | Broken | None
    bench: Bench | None
    against: Against | None = None
    faults: tuple[str, ...] = ()
    """Builds only: what the contract's call and the candidate's function do not share."""
    logs: tuple[str, ...] = ()
    """Builds only: whole logs of compilers that failed, below the repo."""


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
        tier = _tier(ws, mode)
        bench = benchmark.judge(
            [raw],
            tier=tier,
            device=ws.device,
            required=ws.required,
            timed=ws.timed,
            weights=ws.weights,
            bias_bound=0.0,
            max_pairs=tier.looks[0],
            cases=ws.resolved,
            ceilings=ceilings.best_here(ws.device.kind),
        )
    against = _against(ws, raw, folder) if mode == "build" and ws.device.kind == "gpu" else None
    faults = _faults(ws, candidate, raw, folder) if mode == "build" else ()
    result = "; ".join(faults) or _words(raw, verification, bench)
    meta = Meta(id=folder.name, mode=mode, variant=name, tree=tree, at=stamp(clock), result=result)
    records.save(folder / "meta.json", meta)
    shutil.rmtree(folder / "arms", ignore_errors=True)
    logs = tuple(str(p.relative_to(ws.root)) for p in sorted((folder / BUILT / "B").glob("*.log")))
    return Tried(
        meta=meta, raw=raw, verification=verification, bench=bench, against=against, faults=faults, logs=logs
    )  # fmt: skip


def _faults(ws: Workspace, candidate: jobs.Program, raw: Raw, folder: Path) -> tuple[str, ...]:
    """What is wrong with the function's names, unless the import ended before it had any."""
    file, _, function = candidate.entry.partition(":")
    died = raw.died
    if died is not None and died.arm != "A" and f"no attribute {function!r}" not in died.log:
        return ()
    contract = ws.contract
    more = "prepare" in contract.call.stages
    return signature.faults(folder / "arms" / "B" / file, function, list(contract.tensors), more=more)


def _tier(ws: Workspace, mode: Mode) -> policy.Tier:
    return ws.tier(policy.SCREEN.name if mode == "try" else policy.ACCEPT.name)


def _words(raw: Raw, verification: Correct | Wrong | Broken | None, bench: Bench | None) -> str:
    if verification is not None and not isinstance(verification, Correct):
        return verification.reason
    if bench is not None:
        return f"{bench.verdict}: {bench.reason}"
    if raw.died is not None and not _built(raw):
        waited = re.search(r"no reply within ([\d.]+) s", raw.died.log) if raw.died.stage == "build" else None
        how = f": the import did not end within {float(waited[1]):.0f} s" if waited and raw.died.timeout else ""
        return f"died in {raw.died.stage}{how}"
    return "correct" if verification is not None else "built"


def _built(raw: Raw) -> bool:
    """Only the incumbent could not be built beside a candidate that could: that says nothing of the candidate."""
    return raw.died is not None and raw.died.arm == "A" and any(b.arm == "B" and b.ok for b in raw.builds)


def _against(ws: Workspace, raw: Raw, folder: Path) -> Against | None:
    """The candidate's build held against the incumbent's; None where the candidate was not built."""
    arms: dict[str, Build] = {b.arm: b for b in raw.builds if b.ok}
    if "B" not in arms:
        return None
    best = _incumbent(ws)
    version = best.version if best is not None else ""
    if "A" not in arms:
        why = "it could not be built here" if version else "no lock stands"
        return Against(version=version, same=False, kernels=(), note=f"not compared with an incumbent: {why}")
    same = arms["A"].binary_id == arms["B"].binary_id
    return Against(version=version, same=same, kernels=machine_code.changes(arms["A"], arms["B"], folder / BUILT))


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
    if mode == "build":
        best = _incumbent(ws) if ws.device.kind == "gpu" else None
        if best is not None:
            arms["A"] = _program(ws, best)
    else:
        best = ws.best()
        arms["A"] = _program(ws, best)
        if best.kind != "baseline":
            arms["Z"] = jobs.baseline_program(ws, ws.baseline().tree)
    tier = _tier(ws, mode)
    question = jobs.Question(
        job_id=folder.name, phases=PHASES[mode], arms=arms, pairs=tier.looks[0], blocks=tier.blocks
    )
    return lab.run(jobs.make(ws, question, folder), folder)


def _program(ws: Workspace, row: Row) -> jobs.Program:
    return jobs.baseline_program(ws, row.tree) if row.kind == "baseline" else jobs.variant_program(row.tree)


def _incumbent(ws: Workspace) -> Row | None:
    """What a build is held against; None without a lock that stands, since a build needs none."""
    try:
        return ws.best()
    except Refused:
        return None


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
