"""A standalone repo judged by FakeLab, in this process or in one that is killed on purpose.

Run as a script: ``python -m tests.referee_sim REPO VARIANT SPEEDUP`` makes one attempt (crash points work).
"""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

from kernelpilot_helpers import scaffold
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.ledger.model import Motivation
from kernelpilot_helpers.referee import attempt as attempts
from kernelpilot_helpers.referee import locking
from kernelpilot_helpers.referee.locking import Locked


class WithControls:
    """Answers A/A controls (one program in both arms) as a quiet machine does, and all else with ``lab``."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def run(self, job: Job, workdir: Path) -> Raw:
        """One job."""
        same = len(job.arms) > 1 and len({arm.build_key for arm in job.arms}) == 1
        return FakeLab().run(job, workdir) if same else self.lab.run(job, workdir)


TASK = "add_rmsnorm"
VARIANTS = f"src/{TASK}/variants"


def clock() -> dt.datetime:
    """Now: the A/A control must be young, so a frozen clock would need a frozen boot as well."""
    return dt.datetime.now(dt.timezone.utc)


def quiet(_: str) -> None:
    """Say nothing."""


def locked_repo(folder: Path, lab: Lab | None = None) -> Locked:
    """Scaffold and lock."""
    scaffold.make(scaffold.example(task=TASK), folder, kernelpilot=Path(sys.executable))
    return locking.lock(folder, amend=False, why="", lab=lab or FakeLab(), clock=clock, say=quiet)


def write_variant(repo: Path, slug: str, code: str) -> Path:
    """Write ``candidate.py`` of a variant."""
    path = repo / VARIANTS / slug / "candidate.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    return path


def attempt(
    repo: Path, lab: Lab, variant: str | None = "fused", *, tier: str = "accept", again: bool = False,
    max_pairs: int | None = 10, no_commit: bool = False, parent: str | None = None,
    sources: tuple[str, ...] = (),
) -> attempts.Recorded:  # fmt: skip
    """One attempt with a fixed motivation."""
    request = attempts.Request(
        variant=variant,
        motivation=Motivation(kind="benchmark", text="fewer temporaries", source_keys=sources),
        tier=tier,
        again=again,
        max_pairs=max_pairs,
        no_commit=no_commit,
        parent=parent,
    )
    return attempts.attempt(repo, request, lab=WithControls(lab), clock=clock, say=quiet)


if __name__ == "__main__":
    recorded = attempt(Path(sys.argv[1]), FakeLab(speedup=float(sys.argv[3])), sys.argv[2])
    print(recorded.row.version, recorded.row.verdict)
