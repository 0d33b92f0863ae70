"""``kernelpilot report --final``: FINAL.md, the page and the loop's journal, written and committed as one stock-taking.

Safe to repeat: what has not changed is neither written nor committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelpilot_helpers import proc, records, report
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import done
from kernelpilot_helpers.gate.final_text import not_finished
from kernelpilot_helpers.gate.model import Report
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.referee import gating, recover, workspace
from kernelpilot_helpers.referee.floor import Clock
from kernelpilot_helpers.referee.workspace import Workspace

Judge = Callable[[Path], tuple[Evidence, Report]]
"""The evidence of a repo and what the gate says of it; takes no lock, changes nothing."""

EXPORTS = ("journal.jsonl", "round-*-summary.md", "round-*-contract.md")
"""What the rules read of a loop: with it, a clone can be judged like the repo itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """What a stock-taking left behind. ``commits`` is empty when nothing had changed."""

    files: tuple[str, ...]
    """Repo-relative paths that are committed now."""
    commits: tuple[str, ...]
    passed: bool
    done: bool
    unfinished: str = ""
    """What is lacking, as the page's first line says it; empty when the work is done."""
    notes: tuple[str, ...] = ()


def finish(start: Path, *, clock: Clock, judge: Judge) -> Finished:
    """Take stock: FINAL.md and the journal in one commit, then the page that tells of both.

    Raises Refused without lock or attempt, BadRecord for a lineage that does not hold together, Busy while another
    command holds the repo.
    """
    ws = workspace.open_repo(start)
    with workspace.held(ws):
        notes = recover.recover(ws, clock)
        ws = workspace.open_repo(start)
        workspace.require_sound(ws)
        evidence, said = judge(ws.root)
        text = report.final_text(report.final_facts(evidence, POLICY))
        records.write_text(ws.root / report.FINAL_PATH, text)
        files = [report.FINAL_PATH, *_export_loop(ws, evidence)]
        commits = [proc.commit(ws.root, f"final inventory of {ws.task}", files)]
        if commits[0]:
            evidence, said = judge(ws.root)
        commits.append(_commit_page(ws, evidence, said))
    return Finished(
        files=(*files, report.REPORT_PATH),
        commits=tuple(commit for commit in commits if commit),
        passed=said.passed,
        done=said.done.met,
        unfinished=not_finished(done.done(evidence)),
        notes=tuple(notes),
    )


def _export_loop(ws: Workspace, evidence: Evidence) -> Sequence[str]:
    """Copy the loop's journal and round pages to where git keeps them; the folder, where there is anything in it."""
    exported = (ws.root / report.JOURNAL_PATH).parent
    source = ws.root / evidence.loop.directory if evidence.loop else exported
    if source != exported:
        for path in sorted(path for pattern in EXPORTS for path in source.glob(pattern)):
            records.write_bytes(exported / path.name, records.read_bytes(path, fix=f"ls -l {path}"))
    return [exported.relative_to(ws.root).as_posix()] if exported.exists() else []


def _commit_page(ws: Workspace, evidence: Evidence, said: Report) -> str | None:
    page = report.render(report.collect(ws.root, evidence=evidence, gate=said))
    records.write_text(ws.root / report.REPORT_PATH, page)
    # The page is ignored until now, and a plain add passes over ignored files.
    proc.git(ws.root, "add", "-f", "--", report.REPORT_PATH)
    return proc.commit(ws.root, f"report of {ws.task}", [report.REPORT_PATH])


def page_target(root: Path) -> Path:
    """Where a page that is not final goes: beside the evidence, or aside once a final one is committed there."""
    kept = proc.git(root, "ls-files", "--error-unmatch", "--", report.REPORT_PATH, check=False).code == 0
    return root / workspace.LOCAL / "report.html" if kept else root / report.REPORT_PATH


def gate_of(root: Path) -> tuple[Evidence, Report]:
    """Evidence and gate for the page: the rules of every phase but the last, which speak of the page's own commit.

    Raises ToolMissing without git; the repo itself may be in any state.
    """
    return gating.judged(root, final=False)
