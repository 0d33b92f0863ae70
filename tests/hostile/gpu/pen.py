"""Where the GPU zoo is measured: small locked repos, the real runtime, and the loop that an attempt runs."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernelpilot_helpers import contract, scaffold
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.executors.task_python import find
from kernelpilot_helpers.referee import locking, measure, workspace
from kernelpilot_helpers.referee.decide import Outcome
from tests.hostile.pen import intent_for, now, quiet

HERE = Path(__file__).parent
ZOO = HERE / "zoo"
TWINS = HERE / "twins"
SHARED = HERE / "shared"
TASK = HERE / "task"
FLOAT = {"dtype": "float32"}
GAPS = {"stride": ["N + 16", 1]}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no_library": {"policy": {"library_calls": False}},
    "must_graph": {"call": {"graph": "must"}},
    "prepared": {"call": {"stages": ["prepare", "entry"]}},
    "atomics": {"numerics": {"deterministic": False}},
    "f32": {"tensors": {"x": FLOAT, "residual": FLOAT, "weight": FLOAT, "out": FLOAT}},
    "padded": {"tensors": {"x": GAPS, "residual": GAPS, "out": GAPS}},
}
"""Contracts of the zoo: what each adds to ``task/contract.toml``."""
NARROW: dict[str, Any] = {"axes": {"N": {"var": None, "values": [100, 128]}}}
"""Laid over a kind where few edge cases will do: one of the axes takes the values of the cases alone."""
BINARY = "committed_cubin"
"""Its compiled kernel is written when it is measured: this repository holds no binaries either."""
WALL_S = 240.0
BLOCKS = 8
"""Timed blocks: enough for the judges of clocks, and nobody asks the zoo how fast it is."""


def merged(doc: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """``doc`` with the tables of ``more`` laid over its own, at every depth; None takes a field away."""
    out = dict(doc)
    for key, value in more.items():
        old = out.get(key)
        out[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return {key: value for key, value in out.items() if value is not None}


def request(
    kind: str, gpu: str, cases: str = "cases.jsonl", more: Mapping[str, Any] | None = None
) -> scaffold.Request:  # fmt: skip
    """The zoo's task with the fields of ``kind``, and ``more``."""
    doc = contract.read_toml((TASK / "contract.toml").read_bytes(), at="contract.toml", fix="")
    doc["target"]["gpu"] = gpu
    made = contract.from_document(merged(merged(doc, KINDS[kind]), more or {}), at=kind)
    workload = contract.parse_cases((TASK / cases).read_bytes(), made, at=cases)
    return scaffold.Request(contract=made, cases=workload, reference=TASK / "reference.py", baseline=TASK / "baseline")


@dataclass
class Short:
    """A lab with shorter limits and fewer blocks: a hang need not last as long as a user's would."""

    lab: Lab
    call_s: float
    blocks: int = BLOCKS
    raws: list[Raw] = field(default_factory=list)

    def run(self, job: Job, workdir: Path) -> Raw:
        """One job."""
        limits = msgspec.structs.replace(job.limits, call_s=self.call_s, build_s=60.0, wall_s=WALL_S)
        spec = job.time and msgspec.structs.replace(job.time, blocks=min(job.time.blocks, self.blocks))
        raw = self.lab.run(msgspec.structs.replace(job, limits=limits, time=spec), workdir)
        self.raws.append(raw)
        return raw


@dataclass
class Pen:
    """Locked repos, one a kind of contract, and the Python that runs their jobs, one candidate after the other."""

    folder: Path
    python: str
    gpu: str = "H200"
    shared: Path = SHARED
    """Files that every candidate gets unless it brings its own."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    blocks: int = BLOCKS
    cases: str = "cases.jsonl"
    """File below ``task/``: which shapes."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What every contract adds to its kind."""
    repos: dict[str, Path] = field(default_factory=dict)
    raws: list[Raw] = field(default_factory=list)
    """What the last candidate's jobs gave."""
    seconds: float = 0.0
    """How long the last candidate took, builds included."""

    def repo(self, kind: str) -> Path:
        """The locked repo of a kind, made when first asked for."""
        if kind not in self.repos:
            path = self.folder / kind
            scaffold.make(
                request(kind, self.gpu, self.cases, self.more), path, kernelpilot=Path(sys.executable), parent_ok=True
            )
            locking.lock(path, amend=False, why="", lab=FakeLab(), clock=now, say=quiet)
            self.repos[kind] = path
        return self.repos[kind]

    def lab(self) -> Lab:
        """The machine's own lab, with a private lock and cache."""
        return LocalLab(
            find(explicit=[self.python]), self.folder / "device.lock", cache=self.folder / "cache", environ=self.environ
        )

    def place(self, source: Path, target: Path) -> None:
        """A candidate's folder as it will be committed."""
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        for path in self.shared.iterdir():
            if path.is_file() and not (target / path.name).exists():
                shutil.copyfile(path, target / path.name)
        if source.name == BINARY:
            (target / "kernel.cubin").write_bytes(b"\x7fELF as its first bytes say")

    def outcome(self, source: Path, *, kind: str = "plain", tier: str = "screen", call_s: float = 30.0) -> Outcome:
        """What an attempt on ``source`` ends in: the same jobs, facts and decisions, without the row."""
        repo = self.repo(kind)
        started = time.monotonic()
        ws = workspace.open_repo(repo)
        self.place(source, repo / ws.variants / source.name)
        intent = intent_for(ws, source.name, tier)
        lab = Short(self.lab(), call_s, self.blocks)
        bench = measure.Bench(workspace=ws, lab=lab, clock=now, say=quiet)
        try:
            outcome, _ = measure.measure(bench, intent)
        finally:
            self.raws, self.seconds = lab.raws, time.monotonic() - started
        return outcome


def faults(name: str, outcome: Outcome, *, verdict: str, codes: tuple[str, ...]) -> str:
    """What is wrong with a cheat's end: empty when it was caught, for what it does."""
    said = f"{name}: {outcome.verdict} {outcome.reason}"
    if outcome.verdict not in verdict.split("|"):
        return f"{said} (want {verdict})"
    return "" if outcome.reason.startswith(codes) else f"{said} (want {' or '.join(codes)})"


def flagged(name: str, outcome: Outcome) -> str:
    """What an honest one is blamed for: empty when for nothing."""
    blamed = outcome.verdict in ("WRONG", "BROKEN") or outcome.reason.startswith(("cheat.", "suspect."))
    return f"{name}: {outcome.verdict} {outcome.reason} (honest)" if blamed else ""
