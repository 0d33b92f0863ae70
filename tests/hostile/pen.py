"""Where the zoo is measured: small locked repos, the real runtime, and the loop that an attempt runs."""

from __future__ import annotations

import datetime as dt
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernelpilot_helpers import contract, proc, scaffold
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.executors.task_python import find
from kernelpilot_helpers.ledger.model import Motivation
from kernelpilot_helpers.referee import locking, measure, workspace
from kernelpilot_helpers.referee.decide import Outcome
from kernelpilot_helpers.referee.runs import Intent
from kernelpilot_helpers.scaffold.request import KITS, template

ZOO = Path(__file__).parent / "zoo"
TASK = "zoo"
CASES = b"""{"format":"kernelpilot.cases","version":1}
{"case_id":"m8_n512","axes":{"M":8,"N":512}}
{"case_id":"m48_n96","axes":{"M":48,"N":96}}
{"case_id":"held_m9_n200","axes":{"M":9,"N":200},"required":false,"held_out":true}
"""
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no_library": {"policy": {"library_calls": False}},
    "prepared": {"call": {"stages": ["prepare", "entry"]}},
}
"""Contracts of the zoo: what each adds to the built-in one."""
LAST = "2999-01-01T00:00:00Z"


def request(kind: str) -> scaffold.Request:
    """The built-in task with small cases and the fields of ``kind``."""
    doc = contract.read_toml(template("contract.toml").encode(), at="template", fix="")
    doc["task"]["name"] = TASK
    doc["axes"] = {"M": {"var": [1, 48]}, "N": {"values": [65, 96, 200, 512]}}
    for table, fields in KINDS[kind].items():
        doc[table] = {**doc.get(table, {}), **fields}
    made = contract.from_document(doc, at="zoo")
    return scaffold.Request(contract=made, cases=contract.parse_cases(CASES, made, at="zoo"), kit=KITS["norm", "cpu"])


@dataclass
class Short:
    """The real lab with shorter limits: a hang need not last as long as a user's would."""

    lab: LocalLab
    call_s: float
    raws: list[Raw] = field(default_factory=list)

    def run(self, job: Job, workdir: Path) -> Raw:
        """One job."""
        limits = msgspec.structs.replace(job.limits, call_s=self.call_s, build_s=20.0, wall_s=90.0)
        raw = self.lab.run(msgspec.structs.replace(job, limits=limits), workdir)
        self.raws.append(raw)
        return raw


@dataclass
class Pen:
    """Locked repos, one a kind of contract, and the Python that runs their jobs."""

    folder: Path
    python: str
    repos: dict[str, Path] = field(default_factory=dict)
    raws: list[Raw] = field(default_factory=list)
    """What the last candidate's jobs gave."""

    def repo(self, kind: str) -> Path:
        """The locked repo of a kind, made when first asked for."""
        if kind not in self.repos:
            path = self.folder / kind
            scaffold.make(request(kind), path, kernelpilot=Path(sys.executable))
            locking.lock(path, amend=False, why="", lab=FakeLab(), clock=now, say=quiet)
            self.repos[kind] = path
        return self.repos[kind]

    def lab(self) -> LocalLab:
        """The machine's own lab, with a private lock and cache."""
        return LocalLab(find(explicit=[self.python]), self.folder / "device.lock", cache=self.folder / "cache")

    def outcome(self, source: Path, *, kind: str = "plain", tier: str = "screen", call_s: float = 20.0) -> Outcome:
        """What an attempt on ``source`` ends in: the same jobs, facts and decisions, without the row."""
        repo = self.repo(kind)
        ws = workspace.open_repo(repo)
        target = repo / ws.variants / source.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        intent = intent_for(ws, source.name, tier)
        lab = Short(self.lab(), call_s)
        bench = measure.Bench(workspace=ws, lab=lab, clock=now, say=quiet)
        outcome, _ = measure.measure(bench, intent)
        self.raws = lab.raws
        return outcome


def intent_for(ws: workspace.Workspace, name: str, tier: str) -> Intent:
    """What an attempt on the variant ``name`` would be for, without a commit or a row."""
    baseline = ws.baseline()
    return Intent(
        run="", role="main", kind="attempt", label=f"v001_{name}", variant=name,
        tree=proc.snapshot(ws.root, f"{ws.variants}/{name}"), commit=baseline.commit,
        parent=baseline.version, incumbent=baseline.version, language="any", tier=tier, epoch=ws.epoch,
        motivation=Motivation(kind="benchmark", text="zoo"), at=LAST, max_pairs=6 if tier == "accept" else None,
    )  # fmt: skip


def now() -> dt.datetime:
    """The clock."""
    return dt.datetime.now(dt.timezone.utc)


def quiet(_: str) -> None:
    """Say nothing."""
