"""What the reviewer is told. The words are in ``prompt-template/``; files are linked, never pasted."""

from __future__ import annotations

from pathlib import Path
from string import Template

from rlcr.review.model import Finding, Request

TEMPLATES = Path(__file__).resolve().parents[2] / "prompt-template"
_TASKS = {"BUILD": "review-build.md", "CODE_REVIEW": "review-code.md", "FINALIZE": "review-finalize.md"}
_CLAIM = 300
_LISTED = 60


def prompt_for(request: Request, *, token: str = "") -> str:
    """The prompt of a review; equal requests give equal bytes.

    ``token`` is repeated at both ends, so that an echo of any half of the prompt can be told from an answer. Raises
    OSError when a template is missing, KeyError or ValueError when one is damaged.
    """
    task = _read(_TASKS.get(request.phase, _TASKS["BUILD"]))
    scope = _read("review-full.md" if request.full or not request.prior_open else "review-scoped.md")
    known = {
        "base": request.base_commit,
        "head": request.head,
        "round": str(request.round),
        "phase": request.phase,
        "worktree": str(request.worktree),
        "plan": str(request.plan_path),
        "summary": str(request.summary_path),
        "evidence": str(request.evidence_path),
        "open": _listed(request.prior_open),
        "token": token,
    }
    parts = {"task": task.substitute(known).strip(), "scope": scope.substitute(known).strip()}
    return _read("review.md").substitute(known, **parts).strip() + "\n"


def _read(name: str) -> Template:
    return Template((TEMPLATES / name).read_text(encoding="utf-8"))


def _listed(findings: tuple[Finding, ...]) -> str:
    if not findings:
        return "(none)"
    lines = [
        f"- {f.id} {f.priority} {f.locus} {f.file or '(no file)'}:{f.line} {' '.join(f.claim.split())[:_CLAIM]}"
        for f in findings[:_LISTED]
    ]
    if len(findings) > _LISTED:
        lines.append(f"- and {len(findings) - _LISTED} more, listed in findings.jsonl beside the summary")
    return "\n".join(lines)
