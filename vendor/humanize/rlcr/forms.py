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


def sections(text: str, words: str) -> list[str]:
    """What stands below each level-2 heading that begins with one of the words, to the next level-2 heading.

    A number or a sign before the words of a heading does not hide it.
    """
    rows = criteria.lines(text)
    wanted = re.compile(
        rf"[\W_]{{0,20}}(?:[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{0,3}}[\W_]{{1,8}})?(?:{words})\b", re.IGNORECASE
    )
    found: list[list[str]] = []
    inside = False
    for row, free in zip(rows, criteria.unfenced(rows), strict=True):
        if free and (heading := re.match(r" {0,3}##\s", row)):
            inside = wanted.match(row[heading.end() : heading.end() + 400]) is not None
            found += [[]] if inside else []
        elif inside:
            found[-1].append(row)
    return ["\n".join(part).strip() for part in found]


def section(text: str, words: str) -> str:
    """The first of the ``sections``; empty where there is none."""
    return next(iter(sections(text, words)), "")


def criteria_text(plan: str) -> str:
    """The sections on criteria of a plan, one below the other.

    Empty where there is none, and where none of them numbers a criterion while the plan does so elsewhere: then the
    whole plan is that section.
    """
    text = "\n\n".join(part for part in sections(plan, CRITERIA) if part)
    return text if criteria.ids(text) or not criteria.ids(plan) else ""


def criteria_of(plan: str) -> tuple[str, ...]:
    """Ids of every acceptance criterion of a plan, in its order; empty when it numbers none."""
    return criteria.ids(criteria_text(plan) or plan)


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
