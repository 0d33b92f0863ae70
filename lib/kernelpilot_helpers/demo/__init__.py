"""The whole job on the CPU with a scripted writer, inside the loop: no GPU, no model, no account."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpilot_helpers.demo import commands
from kernelpilot_helpers.demo.loop import Loop, Stopped, commit
from kernelpilot_helpers.demo.script import ACTS, BOAST_ROUND, OBJECTIVES, QUERY, TUNE_ROUND, Act
from kernelpilot_helpers.errors import KernelPilotError, Refused

VARIANTS = Path(__file__).with_name("variants")
TASK = "add_rmsnorm"
MAX_PAIRS = 10
TUNE_PAIRS = 6
TRIES = 3
MACHINE = ("suspect.", "machine.")
"""How a reason begins that says nothing about the candidate: a busy machine. A writer tries again."""
LEDGER = "artifacts/optimization-ledger.md"
Show = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """One act and what the referee said of it."""

    act: Act
    version: str
    verdict: str
    reason: str
    speedup: float | None
    vs_baseline: float | None
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether a sound referee says this."""
        return self.verdict in self.act.expect and self.reason.startswith(self.act.reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class Demo:
    """The finished demo."""

    directory: Path
    played: tuple[Played, ...]
    stops: tuple[Stopped, ...]
    gate: bool
    """Whether the gate passes at the very end."""
    dispatcher: str
    report: Path
    final: Path
    lock: dict[str, Any]
    seconds: float

    @property
    def state(self) -> str:
        """The loop's end, ``COMPLETE`` only with a green gate; ``differs`` when a verdict is not a sound referee's."""
        if not all(p.as_expected for p in self.played):
            return "differs"
        phase = self.stops[-1].phase if self.stops else "none"
        return phase if self.gate or phase != "COMPLETE" else "differs"

    @property
    def next(self) -> str:
        """The command to type now."""
        beside = Path(sys.executable).with_name("kernelpilot")
        name = str(beside) if shutil.which("kernelpilot") is None and beside.exists() else "kernelpilot"
        return f"cd {shlex.quote(str(self.directory))} && {name} gate --final"


def play(directory: Path, *, show: Show, acts: Sequence[Act] = ACTS) -> Demo:
    """Scaffold, plan, lock, then rounds under the Stop hook until it lets go. Raises KernelPilotError."""
    directory = directory.resolve()
    if directory.exists() and any(directory.iterdir()):
        raise Refused("is not empty", where=str(directory), fix="name a new folder: kernelpilot demo --dir DIR")
    started = time.monotonic()
    lock = _prepare(directory, show)
    show("the loop: set up, with a reviewer that is the evidence alone")
    loop = Loop.begin(directory)
    played: list[Played] = []
    stops: list[Stopped] = []
    for number, (objective, criteria) in enumerate(OBJECTIVES):
        loop.begin_round(number, objective, criteria)
        done = [_attempt(directory, act, show) for act in acts if act.round == number]
        played += done
        if number == TUNE_ROUND:
            _tune(directory, show)
        loop.report_round(number, did=objective, evidence=[_line(p) for p in done], left=_left(number))
        stops += _end_round(loop, number, show)
        if stops[-1].phase == "FINALIZE":
            break
    stops += _finish(loop, stops[-1], show)
    gate = commands.ask(["gate", "--final"], cwd=directory, codes=(0, 1))
    show(f"the gate at the end: {'green' if gate['pass'] else 'red'}, {gate['done']['why']}")
    return Demo(
        directory=directory,
        played=tuple(played),
        stops=tuple(stops),
        gate=bool(gate["pass"]),
        dispatcher=_dispatcher(directory),
        report=directory / "artifacts" / "report.html",
        final=directory / "artifacts" / "FINAL.md",
        lock=lock,
        seconds=time.monotonic() - started,
    )


def _prepare(directory: Path, show: Show) -> dict[str, Any]:
    show("scaffold: a standalone repo for a row-wise fused add + RMSNorm (float32)")
    commands.ask(
        ["scaffold", str(directory), "--task", TASK, "--op", "norm", "--gpu", "cpu", "--parent-ok"],
        cwd=directory.parent,
    )
    _research(directory, show)
    commands.ask(["plan"], cwd=directory)
    show("lock: task audit and A/A floor")
    lock = commands.ask(["lock"], cwd=directory)
    show(f"locked: {lock['mutation_score']} wrong outputs caught; A/A half-width {_percent(lock)}")
    return lock


def _research(directory: Path, show: Show) -> None:
    """A scoped look at prior art, written down before the first candidate."""
    hits = commands.ask(["knowledge", "search", QUERY], cwd=directory)["hits"][:3]
    show(f"knowledge: {len(hits)} records for {QUERY!r}")
    found = "\n".join(f"- `{hit['id']}`: {hit['label']}" for hit in hits) or "- nothing in the corpus"
    page = directory / "artifacts" / "research-digest.md"
    words = {
        "## Baseline findings": "`baseline/candidate.py` makes five passes over memory, each with a temporary.",
        "## Source findings": found,
        "## Candidate routes": "One pass in C; then independent partial sums, so that the adds overlap.",
        "## Expected bottlenecks": "Memory traffic first, the chain of dependent additions after that.",
        "## First measurements": "`kernelpilot attempt` of the plain loop against the baseline.",
    }
    text = page.read_text()
    for heading, body in words.items():
        text = text.replace(heading, f"{heading}\n\n{body}")
    page.write_text(text)
    commit(directory, "research digest", "artifacts/research-digest.md")


def _percent(lock: dict[str, Any]) -> str:
    floor = lock.get("floor")
    return "n/a" if floor is None else f"{floor['half_width'] * 100:.2f} %"


def _attempt(directory: Path, act: Act, show: Show) -> Played:
    show(f"{act.slug}: {act.motivation}")
    started = time.monotonic()
    shutil.copytree(
        VARIANTS / act.slug,
        directory / "src" / TASK / "variants" / act.slug,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    argv = ["attempt", act.slug, "--motivation", act.motivation, "--max-pairs", str(MAX_PAIRS)]
    for _ in range(TRIES):
        said = commands.ask(argv, cwd=directory)
        show(f"  {said['version']}: {said['verdict']} ({said['reason']})")
        if not said["reason"].startswith(MACHINE):
            break
    return Played(
        act=act,
        version=said["version"],
        verdict=said["verdict"],
        reason=said["reason"],
        speedup=(said["geomean"] or {}).get("speedup"),
        vs_baseline=(said["vs_baseline"] or {}).get("speedup"),
        seconds=time.monotonic() - started,
    )


def _tune(directory: Path, show: Show) -> None:
    show("tune: every selected version beside the baseline, on every case and on the held-out ones")
    commands.ask(["tune", "--max-pairs", str(TUNE_PAIRS)], cwd=directory)
    said = commands.ask(["dispatch"], cwd=directory)
    show(f"dispatch: {said.get('kind', '')}")


def _dispatcher(directory: Path) -> str:
    path = directory / "artifacts" / "tuning-decisions.md"
    return str(path) if path.exists() else ""


def _line(played: Played) -> str:
    """A claim and where it stands: what a summary may say."""
    return f"{played.version}: {played.verdict} ({played.reason.split(':', 1)[0]})"


def _left(number: int) -> str:
    return "further candidates" if number < TUNE_ROUND else "the final inventory"


def _end_round(loop: Loop, number: int, show: Show) -> list[Stopped]:
    """Stop; in one round with a boast in a ledger first, which the gate refuses and the writer then mends."""
    out: list[Stopped] = []
    if number == BOAST_ROUND:
        show("the writer improves the optimization ledger by hand, and stops")
        page = loop.repo / LEDGER
        page.write_text(page.read_text() + "\nEverything is ten times faster now.\n")
        commit(loop.repo, "a prettier ledger", LEDGER)
        out.append(_shown(loop.stop(number), show))
        said = commands.ask(["gate"], cwd=loop.repo, codes=(0, 1))
        fixes = {f["fix"] for f in said["findings"] if f["severity"] != "trend" and LEDGER in f["where"]}
        for fix in sorted(fixes):
            show(f"the writer does what the finding says: {fix}")
            commands.ask(shlex.split(fix)[1:], cwd=loop.repo)
    out.append(_shown(loop.stop(number), show))
    return out


def _finish(loop: Loop, last: Stopped, show: Show) -> list[Stopped]:
    """The finalize phase: inventory, report, and the Stop after which the loop lets go."""
    if last.phase != "FINALIZE":
        raise KernelPilotError(
            f"the loop stands in {last.phase} after its last round: {last.headline}",
            where=str(loop.repo),
            fix=f"cd {shlex.quote(str(loop.repo))} && kernelpilot gate",
        )
    show("finalize: FINAL.md and the report, committed")
    commands.ask(["report", "--final"], cwd=loop.repo)
    loop.report_final()
    return [_shown(loop.stop(last.round), show)]


def _shown(stopped: Stopped, show: Show) -> Stopped:
    gate = {True: "gate green", False: "gate red", None: "not judged"}[stopped.gate]
    found = f" ({', '.join(stopped.findings[:3])})" if stopped.findings else ""
    show(f"Stop, round {stopped.round}: {gate}{found}, {stopped.decision} -> {stopped.phase}: {stopped.headline}")
    return stopped


__all__ = ["ACTS", "Act", "Demo", "Played", "Stopped", "play"]
