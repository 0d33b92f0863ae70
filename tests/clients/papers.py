"""All that the loop wants in writing from its worker, filled in: ``papers.py ROUND`` or ``papers.py final``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from kernelpilot_helpers.demo.loop import Loop

TASKS, DONE = "#### Active Tasks", "### Completed and Verified"
AC = re.compile(r"AC-\d+(?:\.\d+)*")


def fill(repo: Path, what: str) -> None:
    """The contract and the summary of a round, or the summary of the finalize phase; and the goal tracker for it."""
    folder = max((repo / ".humanize" / "rlcr").iterdir(), key=lambda p: p.name)
    loop = Loop(repo=repo, folder=folder, session="")
    tracker = folder / "goal-tracker.md"
    if what == "final":
        loop.report_final()
        track(tracker, DONE, DONE, "| {ac} | the loop | 0 | 1 | artifacts/lineage.jsonl |")
        return
    number, digest = int(what), repo / "artifacts" / "research-digest.md"
    if number == 0 and digest.is_file():
        research(digest)
    loop.begin_round(number, "a candidate that is right, then the reason to go on or to stop", "AC-1")
    did = f"The scripted worker's part of round {number}: see the commits and the rows."
    loop.report_round(number, did=did, evidence=["artifacts/lineage.jsonl"], left="what the gate names")
    track(tracker, "## MUTABLE SECTION", TASKS, "| the evidence for {ac} | {ac} | open | [mainline] | worker | |")


def research(page: Path) -> None:
    """A sentence below each heading of the research digest that has none."""
    text = page.read_text()
    page.write_text(
        re.sub(r"^(## (.*))\n+(?=## |\Z)", r"\1\n\n\2: the scripted worker read none.\n\n", text, flags=re.M)
    )


def track(page: Path, since: str, table: str, row: str) -> None:
    """A row of ``table`` for every criterion of the plan that is not named below the heading ``since``."""
    text = page.read_text()
    below = text.partition(since)[2]
    wanted = dict.fromkeys(AC.findall(text.partition("## MUTABLE SECTION")[0]))
    rows = "".join(row.format(ac=ac) + "\n" for ac in wanted if ac not in set(AC.findall(below)))
    head, mark, rest = text.partition(table)
    top = re.match(r"\s*\|[^\n]*\|\n\|[-|\s]*\|\n", rest)
    if rows and top:
        page.write_text(head + mark + top[0] + rows + rest[top.end() :])


if __name__ == "__main__":
    fill(Path.cwd(), sys.argv[1])
