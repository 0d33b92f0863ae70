"""The demo's client: it starts the loop, fills in its papers, and fires the real Stop hook as a client would."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpilot_helpers import plan, proc
from kernelpilot_helpers.demo import commands, script
from kernelpilot_helpers.errors import KernelPilotError, ToolMissing

RUNTIME = Path(__file__).resolve().parents[3] / "vendor" / "humanize"
REVIEWER = "evidence-only"
CONTRACT = """# Round {round} contract

## Mainline objective

{objective}

## Target acceptance criteria

{criteria}

## Blocking in scope

none

## Queued out of scope

none

## Success criteria

the gate is green and each attempt has its row
"""
SUMMARY = """# Round {round} summary

## What was done

{did}

## Evidence

{evidence}

## What is left

{left}

## Risks

{risks}
"""
DONE = "| AC | Task | Completed Round | Verified Round | Evidence |"
PUT_OFF = "| Task | Original AC | Deferred Since | Justification | When to Reconsider |"
FINAL = """# Finalize summary

## What was made

A dispatcher over the selected versions, written down in artifacts/FINAL.md.

## Evidence

artifacts/lineage.jsonl, artifacts/performance-map.json and the runs that they cite.

## What remains

Nothing was measured on a GPU.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopped:
    """One Stop: which round it ended, what the hook said, and where the loop stands now."""

    round: int
    decision: str
    """``block`` or ``allow``."""
    headline: str
    phase: str
    """After the Stop."""
    gate: bool | None
    """Whether the gate passed at this Stop; None when it was not asked."""
    findings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """A loop of the demo. Its session registry lies in the repo, so that no client's hook ever sees it."""

    repo: Path
    folder: Path
    session: str

    @staticmethod
    def begin(repo: Path) -> Loop:
        """Set up the loop. Raises KernelPilotError with the script's own words when it refuses."""
        start = RUNTIME / "scripts" / "setup-rlcr-loop.sh"
        if not start.exists():
            raise ToolMissing(
                "the loop's runtime is not in this bundle", where=str(RUNTIME), fix="clone KernelPilot again"
            )
        session = f"demo-{repo.name}"
        argv = [str(start), plan.PATH, "--yolo", "--reviewer", REVIEWER, "--session-id", session]
        done = commands.run(argv, cwd=repo, env=_env(repo))
        if done.returncode != 0:
            raise KernelPilotError(f"the loop was refused: {done.stderr.strip()}", where=str(repo), fix=str(start))
        folder = max((repo / ".humanize" / "rlcr").iterdir())
        return Loop(repo=repo, folder=folder, session=session)

    def begin_round(self, number: int, objective: str, criteria: str) -> None:
        """Write the contract of a round, before its work."""
        text = CONTRACT.format(round=number, objective=objective, criteria=criteria)
        (self.folder / f"round-{number}-contract.md").write_text(text)

    def report_round(self, number: int, *, did: str, evidence: list[str], left: str, risks: str = "none") -> None:
        """Write the summary of a round, after its work."""
        lines = "\n".join(f"- {line}" for line in evidence) or "none"
        text = SUMMARY.format(round=number, did=did, evidence=lines, left=left, risks=risks)
        (self.folder / f"round-{number}-summary.md").write_text(text)

    def report_final(self) -> None:
        """Write the summary of the finalize phase, and settle every criterion of the plan in the goal tracker."""
        made = plan.parse((self.repo / plan.PATH).read_text(), plan.PATH)
        tracker = self.folder / "goal-tracker.md"
        text = tracker.read_text()
        for header in (DONE, PUT_OFF):
            rows = "".join(_settled(item, header) for item in made.criteria)
            before, rule, after = text.partition(f"{header}\n{re.sub(r'[^|]+', '---', header)}\n")
            text = before + rule + rows + after
        tracker.write_text(text)
        (self.folder / "finalize-summary.md").write_text(FINAL)

    def stop(self, number: int) -> Stopped:
        """Fire the Stop hook with a client's JSON on stdin. Raises KernelPilotError when it gives no valid answer."""
        payload = {
            "session_id": self.session,
            "transcript_path": None,
            "cwd": str(self.repo),
            "hook_event_name": "Stop",
            "permission_mode": "default",
            "stop_hook_active": False,
            "last_assistant_message": f"round {number} is over",
        }
        hook = RUNTIME / "hooks" / "stop-hook"
        done = commands.run([str(hook)], cwd=self.repo, env=_env(self.repo), data=json.dumps(payload))
        try:
            said = json.loads(done.stdout) if done.stdout.strip() else {}
        except ValueError:
            said = None
        if done.returncode != 0 or not isinstance(said, dict):
            what = (
                f"the Stop hook gave no answer (exit {done.returncode}): {(done.stderr or done.stdout).strip()[:400]}"
            )
            raise KernelPilotError(what, where=str(hook), fix="./install.sh --test -k rlcr")
        entry = self._last_stop()
        gate = entry["data"].get("gate") or {}
        return Stopped(
            round=number,
            decision="block" if said.get("decision") == "block" else "allow",
            headline=str(entry["data"].get("reason", "")),
            phase=str(entry["phase"]),
            gate=gate.get("pass"),
            findings=tuple(gate.get("findings", ())),
        )

    def _last_stop(self) -> dict[str, Any]:
        lines = (self.folder / "journal.jsonl").read_text().splitlines()[1:]
        stops = [entry for line in lines if (entry := json.loads(line))["event"] == "intent"]
        if not stops:
            raise KernelPilotError("the Stop hook recorded nothing", where=str(self.folder), fix="kernelpilot doctor")
        last: dict[str, Any] = stops[-1]
        return last


def _settled(item: plan.Criterion, header: str) -> str:
    """A criterion's row in the table below one of the headers, empty when it belongs to the other."""
    found = script.STANDS_ON.get(item.topic)
    if header == PUT_OFF:
        return "" if found else f"| {item.topic} | {item.id} | 0 | {script.PUT_OFF} | with a GPU |\n"
    return f"| {item.id} | {item.topic} | {script.TUNE_ROUND} | {script.TUNE_ROUND} | {found} |\n" if found else ""


def _env(repo: Path) -> dict[str, str]:
    state = str(repo / ".kernelpilot" / "state")
    return commands.environment({"XDG_STATE_HOME": state, "XDG_CACHE_HOME": str(repo / ".kernelpilot" / "cache")})


def commit(repo: Path, message: str, *paths: str) -> None:
    """What a worker does with files of its own."""
    proc.commit(repo, message, list(paths))
