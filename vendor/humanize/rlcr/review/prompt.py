"""What the reviewer is told. The words are in ``prompt-template/``; files are linked, never pasted."""

from __future__ import annotations

from pathlib import Path
from string import Template

from rlcr.review.model import Finding, Request

TEMPLATES = Path(__file__).resolve().parents[2] / "prompt-template"
_TASKS = {"BUILD": "review-build.md", "CODE_REVIEW": "review-code.md", "FINALIZE": "review-finalize.md"}
_CLAIM = 300
_LISTED, _FILES, _AMENDS = 60, 60, 20
_ACS = 300


def prompt_for(request: Request, *, token: str = "") -> str:
    """The prompt of a review; equal requests give equal bytes.

    ``token`` is repeated at both ends, so that an echo of any half of the prompt can be told from an answer. Raises
    OSError when a template is missing, KeyError or ValueError when one is damaged.
    """
    task = _read(_TASKS.get(request.phase, _TASKS["BUILD"]))
    scope = _read("review-full.md" if request.full or not request.since else "review-scoped.md")
    known = {
        "base": request.base_commit,
        "head": request.head,
        "round": str(request.round),
        "phase": request.phase,
        "worktree": str(request.worktree),
        "plan": str(request.plan_path),
        "summary": str(request.summary_path),
        "evidence": str(request.evidence_path),
        "diff": str(request.diff_path or "(not written down: ask git)"),
        "open": _listed(request.prior_open),
        "queued": _listed(request.queued),
        "since": request.since,
        "changed": _bounded([_line(path) for path in request.changed], _FILES, "in the diff"),
        "criteria": _criteria(request.acs, planned=request.planned),
        "amends": _amends(request),
        "token": token,
    }
    parts = {"task": task.substitute(known).strip(), "scope": scope.substitute(known).strip()}
    return _read("review.md").substitute(known, **parts).strip() + "\n"


def _read(name: str) -> Template:
    return Template((TEMPLATES / name).read_text(encoding="utf-8"))


def _line(text: str) -> str:
    return " ".join(text.split())[:_CLAIM]


def _bounded(lines: list[str], most: int, where: str) -> str:
    more = [f"- and {len(lines) - most} more, {where}"] if len(lines) > most else []
    return "\n".join([f"- {line}" for line in lines[:most]] + more) or "(none)"


def _listed(findings: tuple[Finding, ...]) -> str:
    lines = [
        f"{f.id} {f.priority} {f.locus} {_line(f.file) or '(no file)'}:{f.line} {_line(f.claim)}" for f in findings
    ]
    return _bounded(lines, _LISTED, "in findings.jsonl beside the report")


def _criteria(acs: tuple[str, ...], *, planned: bool) -> str:
    if not acs and not planned:
        return "there is no plan: say what the change has to do, each under a short id of your own"
    if not acs:
        return "the plan numbers none: give each criterion that it states a short id of its own"
    return ", ".join(acs[:_ACS]) + (f", and {len(acs) - _ACS} more in the plan" if len(acs) > _ACS else "")


def _amends(request: Request) -> str:
    """One paragraph, empty where nothing was changed by the way."""
    if not request.amends:
        return ""
    first = request.first_plan or request.loop_dir / "plan.md"
    listed = _bounded([_line(text) for text in request.amends[-_AMENDS:]], _AMENDS, "in the journal")
    return _read("review-amends.md").substitute(first=first, amends=listed).strip() + "\n\n"
