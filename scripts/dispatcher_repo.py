"""A repo with a generated dispatcher whose every shape goes to a version of another kind, in seconds and without a GPU.

The tool's own steps make it: scaffold, lock, attempt, tune, dispatch. Only the lab is played: it says that each version
is three times as fast as the others on its own shape, so that the dispatcher must choose all of them. Versions are the
task's templates as they are; which of them is really the fastest is no question here.
"""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import datetime as dt
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelpilot_helpers import scaffold
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.ledger.model import Motivation
from kernelpilot_helpers.referee import attempt, dispatching, locking, tuning

COLUMNS = 4096
MINE, THEIRS = 3.0, 0.9
"""Old time over new time on a version's own shape, and on every other one."""
PAIRS = 6


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version, and the shape that the dispatcher is to send to it."""

    name: str
    """Of the variant's folder."""
    rows: int
    template: str = ""
    """The template that it is; empty where ``files`` holds all of it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of its own, or texts added to those of the template: no two versions may have the same content."""

    def write(self, repo: Path, variants: Path) -> None:
        """Put it into the repo, as a person does who starts from a template."""
        folder = variants / self.name
        if self.template:
            shutil.copytree(repo / "templates" / self.template, folder)
        folder.mkdir(exist_ok=True)
        for name, text in self.files.items():
            with (folder / name).open("a") as out:
                out.write(text)


LATE = tuple(
    Version(name=f"cuda_late_{n}", rows=rows, template="cuda_nvrtc", files={"kernel.cu": f"\n// version {n}\n"})
    for n, rows in (("one", 512), ("two", 640))
)
"""Stay unloaded until the check that loads them."""
QUICK = (
    Version(name="cuda_nvrtc", rows=16, template="cuda_nvrtc"),
    Version(name="triton_row", rows=32, template="triton_row"),
    Version(name="torch_ops", rows=128, template="torch_ops"),
    *LATE,
)
"""What is built in seconds."""
ALL = (
    *QUICK[:2],
    Version(name="cuda_extension", rows=64, template="cuda_extension"),
    Version(name="triton_autotuned", rows=256, template="triton_autotuned"),
    *QUICK[2:],
)
TWIN = Version(
    name="cuda_extension_two", rows=1024, template="cuda_extension", files={"launch.cu": "\n// another version\n"}
)
"""A second extension of the first one's name: torch's builder renames the second build of a name in a process."""


class Played:
    """A lab that knows a version by its program, and says that it is fast on its own shape alone."""

    def __init__(self, versions: Sequence[Version]) -> None:
        self.versions = versions
        self.now: Version | None = None
        """The version that is being attempted: a program that was never seen before is its."""
        self.known: dict[str, Version] = {}

    def run(self, job: Job, workdir: Path) -> Raw:
        """One job; two arms of one program are equally fast."""
        keys = {arm.name: arm.build_key for arm in job.arms}
        if self.now is None or "B" not in keys or len(set(keys.values())) == 1:
            return FakeLab().run(job, workdir)
        mine = self.known.setdefault(keys["B"], self.now)
        speed = {case_of(v): MINE if v is mine else THEIRS for v in self.versions}
        return FakeLab(speedup=speed, noise=0.001).run(job, workdir)


def case_of(version: Version) -> str:
    """The id of the case that a version is to win."""
    return f"m{version.rows}_n{COLUMNS}"


def clock() -> dt.datetime:
    """Now."""
    return dt.datetime.now(dt.timezone.utc)


def quiet(_: str) -> None:
    """Say nothing."""


def own_cases(repo: Path, versions: Sequence[Version]) -> None:
    """One case and one regime for each version, in place of the template's."""
    lines: list[dict[str, object]] = [{"format": "kernelpilot.cases", "version": 1}]
    for v in versions:
        lines.append({"case_id": case_of(v), "axes": {"M": v.rows, "N": COLUMNS}, "regime": v.name})
    (repo / "workloads" / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = repo / "contract.toml"
    head, _, rest = path.read_text().partition("[timing.decide]\n")
    decide = "".join(f'{v.name} = "pipelined"\n' for v in versions)
    path.write_text(f"{head}[timing.decide]\n{decide}\n{rest[rest.index('[') :]}")


def make(repo: Path, versions: Sequence[Version]) -> Path:
    """The repo, dispatched. Raises KernelPilotError where a step refuses, SystemExit where a version serves nothing."""
    scaffold.make(scaffold.example(task="", gpu="cuda", op="norm"), repo, kernelpilot=Path(sys.executable))
    own_cases(repo, versions)
    lab = Played(versions)
    locking.lock(repo, amend=False, why="", lab=lab, clock=clock, say=quiet)
    variants = next((repo / "src").iterdir()) / "variants"
    why = Motivation(kind="benchmark", text="a version of another kind, as its template is")
    for version in versions:
        lab.now = version
        version.write(repo, variants)
        asked = attempt.Request(variant=version.name, motivation=why, max_pairs=PAIRS)
        attempt.attempt(repo, asked, lab=lab, clock=clock, say=quiet)
    tuning.tune(repo, max_pairs=PAIRS, lab=lab, clock=clock, say=quiet)
    table = dispatching.dispatch(repo, clock=clock).table
    if lacking := {v.name for v in versions} - {rule.variant for rule in table.rules}:
        raise SystemExit(f"the dispatcher serves nothing with {', '.join(sorted(lacking))}: {table.refused}")
    return repo
