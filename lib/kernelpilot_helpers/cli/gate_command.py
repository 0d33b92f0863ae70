"""``kernelpilot gate``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.evidence import Evidence
    from kernelpilot_helpers.gate import Report

PRINTED = 20
"""Findings shown as text; ``--json`` holds all of them."""
WIDTH = 400
"""Letters of one part of a finding in text."""


@click.command("gate")
@click.option("--final", is_flag=True, help="the end: the stop rule and artifacts/FINAL.md as well")
@click.option("--repo", type=click.Path(path_type=Path), default=Path(), help="the standalone repo (default: here)")
@common.json_option
def command(final: bool, repo: Path, as_json: bool) -> int:
    """Check every rule over the evidence and report all findings at once, each with what mends it.

    Exit 0 when nothing blocks and nothing is to repair, else 1. RLCR_PHASE=FINALIZE means --final.
    """
    found, report = judged(repo, final=final or os.environ.get("RLCR_PHASE") == "FINALIZE")
    common.emit(data_of(report), as_json=as_json, text=text_of(found, report))
    return 0 if report.passed else 1


def judged(repo: Path, *, final: bool) -> tuple[Evidence | None, Report]:
    """Evidence and report; a wall on the way is a report with one block, never an exception."""
    from kernelpilot_helpers import gate
    from kernelpilot_helpers.errors import KernelPilotError
    from kernelpilot_helpers.referee import gating

    try:
        return gating.judged(repo, final=final)
    except KernelPilotError as error:
        return None, gate.refused(error.where or str(repo), error.what, error.fix)
    except OSError as error:
        where = str(error.filename or repo)
        return None, gate.refused(where, error.strerror or str(error), "make it a readable file or folder")
    except Exception as error:  # noqa: BLE001 - whoever reads the JSON must get a finding, not a traceback
        what = f"a bug of ours: {type(error).__name__}: {error}"
        return None, gate.refused(str(repo), what, "kernelpilot ledger check  # and git status: what was changed last?")


def data_of(report: Report) -> dict[str, Any]:
    """The stable keys."""
    import msgspec

    return {
        "pass": report.passed,
        "done": msgspec.to_builtins(report.done),
        "findings": msgspec.to_builtins(report.findings),
        "not_evaluated": list(report.not_evaluated),
        "course": msgspec.to_builtins(report.course),
    }


def next_line(found: Evidence | None, report: Report) -> str:
    """What to do now, in one line."""
    from kernelpilot_helpers import gate

    if found is None:
        return report.findings[0].fix or report.findings[0].what
    return for_shell(gate.next_step(found, report))


def next_of(repo: Path) -> str:
    """What ``kernelpilot next`` says in a repo: commands that end a step close with it."""
    return next_line(*judged(repo, final=False))


def for_shell(line: str) -> str:
    """The loop's set-up as it works here: outside a client there is neither a session nor somebody to review."""
    from kernelpilot_helpers.gate.facts import SETUP

    inside = os.environ.get("CODEX_THREAD_ID") or os.environ.get("CLAUDE_CODE_SESSION_ID")
    return line if inside else line.replace(SETUP, f"{SETUP} --reviewer evidence-only --session-id NAME")


def text_of(found: Evidence | None, report: Report) -> str:
    """What to do now, then the findings, as many as one reads."""
    lines = [f"now: {next_line(found, report)}"]
    reds = sum(f.severity != "trend" for f in report.findings)
    lines.append("gate: pass, nothing to mend" if report.passed else f"gate: not passed, {reds} to mend")
    lines.append(f"done: {'yes' if report.done.met else 'not yet'}, {report.done.why}")
    lines += [f"  missing: {what}" for what in report.done.missing]
    if report.course.kind != "on":
        lines.append(f"course: {report.course.kind}, {_cut(' '.join(report.course.why.split()))}")
    for f in report.findings[:PRINTED]:
        lines.append(f"{f.severity} {f.rule}  {_cut(f.where)}: {_cut(f.what)}\n    fix: {_cut(for_shell(f.fix))}")
    if len(report.findings) > PRINTED:
        lines.append(f"... and {len(report.findings) - PRINTED} more: kernelpilot gate --json")
    if report.not_evaluated:
        numbers = ", ".join(dict.fromkeys(entry.partition(":")[0] for entry in report.not_evaluated))
        lines.append(f"not evaluated (which is not a pass of them): rules {numbers}; why: kernelpilot gate --json")
    return "\n".join(lines)


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[:WIDTH]} ..."
