"""``kernelpilot gate``: the referee's audit handed to the collector, the evidence handed to the rules."""

from __future__ import annotations

from pathlib import Path

from kernelpilot_helpers import evidence as collector
from kernelpilot_helpers import gate as rules
from kernelpilot_helpers import policy, proc
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.evidence import Evidence
from kernelpilot_helpers.gate import Report
from kernelpilot_helpers.referee import ledgers


def root_of(start: Path) -> Path:
    """Top of the repository around ``start``; ``start`` itself outside one.

    Raises KernelPilotError for no folder, Refused when git's settings call another folder the worktree.
    """
    try:
        root = proc.toplevel(start)
    except Refused:
        return start.absolute()
    if root.resolve() not in (start.resolve(), *start.resolve().parents):
        what = f"git takes {root} for the worktree of this repo (core.worktree)"
        raise Refused(what, where=str(start), fix="git config --unset core.worktree")
    return root


def judged(start: Path, *, final: bool) -> tuple[Evidence, Report]:
    """The evidence of the repo around ``start``, and what the rules say of it.

    Raises ToolMissing without git, KernelPilotError when ``start`` is no folder, Refused for a pipe among its files;
    the repo may be in any other state.
    """
    found = collector.collect(root_of(start), audit=ledgers.check)
    return found, rules.decide(found, policy.POLICY, final=final)


def gate(start: Path, *, final: bool) -> Report:
    """Every rule over the repo around ``start``; one finding of rule 0 where nothing could be collected.

    Raises what ``judged`` raises but Refused.
    """
    try:
        return judged(start, final=final)[1]
    except Refused as why:
        return rules.refused(why.where or str(start), why.what, why.fix)
