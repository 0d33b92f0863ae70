"""The forms that the worker fills in, and the sections of a plan. Pure."""

from __future__ import annotations

import re

from rlcr import criteria

SUMMARY_HEADINGS = ("What was done", "Evidence", "What is left", "Risks")
CONTRACT_HEADINGS = (
    "Mainline objective",
    "Target acceptance criteria",
    "Blocking in scope",
    "Queued out of scope",
    "Success criteria",
)
GOAL = "Goal|Objective|Purpose"
CRITERIA = "Acceptance|Criteria|Requirements"


def section(plan: str, words: str) -> str:
    """Everything below the first level-2 heading that begins with one of the words, to the next level-2 heading."""
    out: list[str] = []
    inside = fenced = False
    for line in plan.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if not fenced and re.match(r"##\s", line):
            if inside:
                break
            inside = re.match(rf"##\s+({words})\b", line, re.IGNORECASE) is not None
            continue
        if inside:
            out.append(line)
    return "\n".join(out).strip()


def criteria_of(plan: str) -> tuple[str, ...]:
    """Ids of every acceptance criterion of a plan, in its order; empty when it numbers none.

    They stand in the section on criteria; a plan that has none is itself that section.
    """
    return criteria.ids(section(plan, CRITERIA) or plan)


def form(title: str, headings: tuple[str, ...]) -> str:
    """A form with fixed headings; what stands in a comment does not count as filled in."""
    return f"# {title}\n" + "".join(f"\n## {heading}\n\n<!-- fill in -->\n" for heading in headings)


def summary_form(number: int) -> str:
    """The untouched summary of a round."""
    return form(f"Round {number} summary", SUMMARY_HEADINGS)


def contract_form(number: int) -> str:
    """The untouched contract of a round."""
    return form(f"Round {number} contract", CONTRACT_HEADINGS)


FINAL = "finalize-summary.md"
FINAL_FORM = form("Finalize summary", ("What was made", "Evidence", "What remains"))


def filled(text: str) -> str:
    """What is left of a page without comments and headings; a comment that is not closed goes on to the end."""
    return re.sub(r"^#.*$", "", bare(text), flags=re.MULTILINE).strip()


def bare(text: str) -> str:
    """A page without its comments."""
    return re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
