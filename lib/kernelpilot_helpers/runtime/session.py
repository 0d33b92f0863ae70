"""Everything one job's phases share: the job, its folders, and the facts gathered so far."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from .frames import Frame
from .oracle import Oracle
from .spec import Arm, Case, parse_arm, parse_case
from .stats import Base, Measured, Want, summary, where

UNJOINED = "capture.unjoined"
"""Measured on an H200: timed by events, a kernel on a stream that is never joined cost only its launch."""


class ArmDied(Exception):
    """An arm cannot go on; ``died`` holds the fields of ``raw.Died``."""

    def __init__(self, died: dict[str, Any]) -> None:
        super().__init__(died.get("log", ""))
        self.died = died

    @property
    def last_line(self) -> str:
        """Of its log."""
        return str(self).strip().rpartition("\n")[2]


@dataclass(kw_only=True)
class Session:
    """One job under way."""

    job: dict[str, Any]
    jobdir: Path
    tmp: Path
    frame: Frame
    oracle: Oracle
    cases: list[Case]
    raw_cases: dict[str, dict[str, Any]]
    arms: dict[str, Arm]
    deadline: float
    """``time.monotonic()`` at which the job's wall-clock limit ends."""
    cores: tuple[int, ...] = (0,)
    """Where the arms run; the oracle runs elsewhere if it can."""
    device: Any = None
    """The oracle's ``cuda.Device``; None for a job on the CPU."""
    nvml: Any = None
    """The GPU's sensors, where they can be read."""
    driver: str = ""
    """The GPU driver's version as the sensors say it."""
    base: dict[tuple[str, str], list[Base]] = field(default_factory=dict)
    """The baseline's own errors seen in verification, by (case, output), under the contract's own generator."""
    builds: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    mutants: list[dict[str, Any]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    inventory: list[dict[str, Any]] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    residency: list[dict[str, Any]] = field(default_factory=list)
    gpu_looks: list[dict[str, Any]] = field(default_factory=list)
    sanitizer: list[dict[str, Any]] = field(default_factory=list)
    ceilings: dict[str, float] = field(default_factory=dict)
    plans: dict[str, Any] = field(default_factory=dict)
    """GPU: how each timed case is timed, by case_id (``gpu_timing.Plan``)."""
    known: dict[str, dict[str, str]] = field(default_factory=dict)
    """Per arm: built file name to sha256."""
    cached: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """GPU, per arm: what compilers of Python kernels had left in its build folder when its last worker ended."""
    spent: dict[str, float] = field(default_factory=dict)
    """Seconds per phase; ``verify.want`` and the like are parts of a phase.

    On a GPU the oracle's own work is queued: what it takes stands where somebody waits for it.
    """

    def event(self, arm: str, kind: str, detail: str = "", *, case_id: str = "", pair: int | None = None) -> None:
        """Keep one event; the same one is kept once."""
        entry = {"arm": arm, "kind": kind, "case_id": case_id, "detail": detail, "pair": pair}
        if entry not in self.events:
            self.events.append(entry)

    def uncaptured(self, arm: Arm, case_id: str, code: str, text: str, *, tested: bool) -> None:
        """A capture failed: a note, for events can time the calls, unless ``tested`` and the contract wants a graph.

        Work that is not joined back is a fault whatever the contract wants: events would not wait for it, either.
        Any other code than ``capture.*``, a cheat say, is kept as it is, of every arm.
        """
        must = tested and (self.job.get("graph", "may") == "must" or code == UNJOINED)
        if code.startswith("capture.") and not must:
            self.event(arm.name, "note.capture", f"{code}: {text}", case_id=case_id)
        else:
            self.event(arm.name, code, text, case_id=case_id)

    def base_of(self, case: Case, output: str) -> Base | None:
        """The baseline's error on a case as verification saw it: the yardstick where it does not run beside."""
        seen = self.base.get((case.case_id, output))
        if not seen:
            return None
        rms, bias = (sum(getattr(b, f) for b in seen) / len(seen) for f in ("rms", "bias"))
        return Base(rms=rms, max=max(b.max for b in seen), bias=bias)

    @contextlib.contextmanager
    def lap(self, part: str) -> Iterator[None]:
        """Add the seconds of the block to ``spent[part]``."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.spent[part] = self.spent.get(part, 0.0) + time.monotonic() - started

    def left(self) -> float:
        """Seconds of the job's limit that remain; raises ArmDied when there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            log = f"the job's limit of {self.job['limits']['wall_s']} s is used up"
            raise ArmDied({"arm": "", "stage": "oracle", "timeout": True, "log": log})
        return left

    def source(self, arm: Arm) -> Path:
        """The arm's source directory."""
        return self.jobdir / arm.source

    def build_dir(self, arm: Arm) -> Path:
        """Where the arm's libraries are built."""
        return self.tmp / f"build-{arm.name}"

    @property
    def gpu(self) -> bool:
        """Whether the arms compute on a GPU."""
        return self.device is not None

    @property
    def kind(self) -> str:
        """What a worker is: cpu, gpu, or build where a job for a GPU has no phase and needs none."""
        return "gpu" if self.gpu else "build" if self.job.get("device", "cpu") == "gpu" else "cpu"

    @property
    def baseline(self) -> Arm | None:
        """The arm whose own error is the yardstick."""
        return next((a for a in self.arms.values() if a.is_baseline), None)

    @property
    def suspect(self) -> str:
        """The arm that is not trusted yet: blamed for what cannot be traced to one worker."""
        return "B" if "B" in self.arms else next(iter(self.arms))

    def check(self, arm: str, case: Case, measured: Measured, want: Want, base: Any, **labels: Any) -> None:
        """Append one ``raw.Check`` (labels: seed_ix, regime, probe, call_ix, output, note, pair)."""
        factor, slack = self.job.get("where_limit", (2.0, 2.0))
        limit = factor * (base.max if base is not None else 0.0) + slack
        stats = summary(self.frame, measured, want, base)
        entry = {
            "arm": arm, "case_id": case.case_id, **labels, "where": where(self.frame, measured, want, limit),
            "stats": {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in stats.items()},
        }  # fmt: skip
        # Hundreds of checks are committed with every run: what is at its default is left out.
        self.checks.append({k: v for k, v in entry.items() if v not in (None, "")})


def open_session(
    job: dict[str, Any], jobdir: Path, tmp: Path, frame: Frame, started: float, device: Any = None
) -> Session:  # fmt: skip
    """Read the job and load its reference; raises JobError for what cannot be done."""
    limits = {
        "build_s": 120.0, "call_s": 20.0, "wall_s": 600.0, "arena_bytes": 1 << 28, "sanitize_s": 60.0, "lock_s": 900.0,
        **job.get("limits", {}),
    }  # fmt: skip
    job["limits"] = limits
    cases = [parse_case(c) for c in job["cases"]]
    reference, check = job.get("reference", "oracle/reference.py:ref"), job.get("reference_check", "")
    oracle = cast(Oracle, None)  # builds and ceilings need no contract
    if cases and job["phases"]:
        oracle = Oracle(frame, jobdir, reference, check)
    return Session(
        job=job, jobdir=jobdir, tmp=tmp, frame=frame, oracle=oracle, cases=cases,
        raw_cases={c["case_id"]: c for c in job["cases"]},
        arms={a["name"]: parse_arm(a) for a in job["arms"]},
        deadline=started + limits["wall_s"] * 0.95 - 1.0, device=device,
    )  # fmt: skip


def fresh_dir(parent: Path, name: str) -> Path:
    """A new empty private directory."""
    path = parent / f"{name}-{os.urandom(4).hex()}"
    path.mkdir(mode=0o700)
    return path
