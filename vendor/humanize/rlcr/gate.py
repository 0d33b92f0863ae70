"""The rules that need no evidence command and no reviewer: pure, and all of them at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlcr import forms, tracker
from rlcr.model import Problem, Setup, State
from rlcr.options import RLCR
from rlcr.repo import Facts
from rlcr.step import NOOPS
from rlcr.unseen import told

SUMMARY_CAP = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Papers:
    """What the worker has written; None where there is no regular file, empty text where it is too big."""

    plan_sha256: str | None
    summary: str | None
    contract: str | None
    final: str | None
    tables: str | None = None
    """The goal tracker below its fixed part."""
    criteria: tuple[str, ...] = ()
    """Ids of every acceptance criterion of the plan as it stands."""
    too_big: tuple[str, ...] = ()


def noop_reason(summary: str | None) -> str:
    """The reason after ``No-op:``, empty when the summary has no such line."""
    found = re.search(r"^No-op:[ \t]*(\S.*)$", summary or "", re.MULTILINE)
    return found.group(1).strip()[:300] if found else ""


def folder_of(setup: Setup) -> str:
    """The loop's folder, relative to the worktree."""
    return f".humanize/rlcr/{setup.loop}"


def plan_name(state: State) -> str:
    """The loop's own copy of the plan as it stands: ``plan.md``, after amendments ``plan-2.md`` and so on."""
    version = 1 + sum(1 for amend in state.amends if amend.what == "plan")
    return "plan.md" if version == 1 else f"plan-{version}.md"


def problems(state: State, facts: Facts, papers: Papers) -> tuple[Problem, ...]:
    """Everything that stands against this Stop."""
    out = [*_repository(state, facts, papers)]
    if state.phase == "FINALIZE":
        out += _summary("finalize-summary.md", papers.final, forms.FINAL_FORM, papers.too_big)
        out += _tracker(papers, final=True)
    elif state.work_expected:
        name = f"round-{state.round}-summary.md"
        out += _summary(name, papers.summary, forms.summary_form(state.round), papers.too_big)
        out += _contract(f"round-{state.round}-contract.md", papers.contract)
        out += _tracker(papers, final=False)
        out += _head(state, facts, papers)
    return tuple(out)


def _repository(state: State, facts: Facts, papers: Papers) -> list[Problem]:
    s, out = state.begun, []
    if facts.branch != s.branch:
        here = facts.branch or "a detached HEAD"
        out.append(
            Problem(rule="branch", where=here, what=f"the loop runs on {s.branch}", fix=f"git switch {s.branch}")
        )
    if s.plan and papers.plan_sha256 != s.plan_sha256:
        what = "the plan is gone" if papers.plan_sha256 is None else "the plan was changed while the loop runs"
        fix = f"cp {folder_of(s)}/{plan_name(state)} {s.plan}; a change that is meant: {RLCR} plan amend --why TEXT"
        out.append(Problem(rule="plan", where=s.plan, what=what, fix=fix))
    if facts.tracked:
        where = ", ".join(facts.tracked[:5])
        fix = "git rm -r --cached .humanize, and commit"
        out.append(Problem(rule="humanize", where=where, what="files of the loop are tracked by git", fix=fix))
    if facts.dirty:
        where = ", ".join(facts.dirty[:10]) + (f" and {len(facts.dirty) - 10} more" if len(facts.dirty) > 10 else "")
        out.append(Problem(rule="clean", where=where, what="Git working tree is not clean", fix="commit or remove it"))
    out += [Problem(rule="clean", where=where, what=what, fix=fix) for where, what, fix in told(facts.hidden)]
    if not facts.base_is_ancestor:
        what, fix = "HEAD no longer descends from the loop's first commit", "git reflog, and go back"
        out.append(Problem(rule="base", where=s.base_commit[:12], what=what, fix=fix))
    return out


def _summary(name: str, text: str | None, untouched: str, too_big: tuple[str, ...]) -> list[Problem]:
    if name in too_big:
        return [Problem(rule="summary", where=name, what=f"larger than {SUMMARY_CAP} bytes", fix="shorten it")]
    if text is None:
        return [Problem(rule="summary", where=name, what="missing", fix="write it")]
    if text.split() == untouched.split() or not forms.filled(text):
        return [Problem(rule="summary", where=name, what="still the empty form", fix="replace it by your report")]
    return []


def _contract(name: str, text: str | None) -> list[Problem]:
    if text is None:
        return [Problem(rule="contract", where=name, what="missing", fix="write it with its five headings")]
    empty = [h for h in forms.CONTRACT_HEADINGS if not forms.filled(forms.section(text, re.escape(h)))]
    if empty:
        what = f"not filled in: {', '.join(empty)}"
        return [
            Problem(rule="contract", where=name, what=what, fix="write below each heading, 'none' where nothing is")
        ]
    return []


def _tracker(papers: Papers, *, final: bool) -> list[Problem]:
    """Every criterion of the plan is accounted for in the worker's tables; at the end, with what it stands on."""

    def one(what: str, fix: str) -> list[Problem]:
        return [Problem(rule="tracker", where=tracker.NAME, what=what, fix=fix)]

    if tracker.NAME in papers.too_big:
        return one(f"larger than {tracker.CAP} bytes", "shorten its tables")
    if papers.tables is None:
        return one("missing", "stop once more: it is written anew; then fill in its tables")
    found = tracker.held(papers.tables, papers.criteria, final=final)
    return one(*found) if found else []


def idle(state: State, facts: Facts) -> bool:
    """Whether the round has made nothing yet: no commit, or only such that leave every file as it was."""
    before = state.round_tree or facts.base_tree  # of round 0 no tree is written down
    return facts.head == state.round_head or facts.tree == before


def _head(state: State, facts: Facts, papers: Papers) -> list[Problem]:
    if not idle(state, facts):
        return []
    if not noop_reason(papers.summary):
        what = "no commit in this round that changes a file"
        fix = "commit the work, or write a line 'No-op: <reason>' in the summary"
        return [Problem(rule="head", where=facts.head[:12], what=what, fix=fix)]
    if state.noops >= NOOPS:
        what = f"{NOOPS} rounds without a commit have passed already"
        return [Problem(rule="head", where=facts.head[:12], what=what, fix="commit work, or cancel the loop")]
    return []
