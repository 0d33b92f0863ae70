"""Merged (and open) pull requests over GitHub's interface, for a repository without a clone.

Kernel spans are taken from the patches alone here: only kernels whose head stands in a hunk count.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mining import diff_facts, patch, paths, said
from mining.api import GitHub, Gone, TooLarge
from mining.cursor import OPEN_RANK, Cursor, Row
from mining.facts import Facts
from mining.mine import Tell, Wish

LIST = "/repos/{repo}/pulls?state={state}&sort=updated&direction=desc&per_page=100"
FILES = "/repos/{repo}/pulls/{number}/files?per_page=100"
MOST_FILES = 3000
"""Where the interface ends a list of files."""

Pull = dict[str, Any]


def pulls_of(answer: Any) -> list[Pull]:
    """What is kept of a page of pull requests: numbers, shas, dates, and the titles reduced."""
    return [
        {
            "number": int(row["number"]),
            "updated": str(row["updated_at"]),
            "merged": row["merged_at"] or "",
            "sha": row["merge_commit_sha"] or "",
            "head": row["head"]["sha"],
            "said": msgspec.to_builtins(said.read(row["title"] or "", row["body"] or "")),
        }
        for row in answer
    ]


def mine(github: GitHub, wish: Wish, cursor: Cursor, tell: Tell) -> None:
    """Pages of merged pull requests, newest change first, until what an earlier run has seen."""
    states = ["closed", *(["open"] if wish.open_too else [])]
    for state in states:
        _walk(github, wish, cursor, tell, state)


def _walk(github: GitHub, wish: Wish, cursor: Cursor, tell: Tell, state: str) -> None:
    repo = wish.source.repo
    place = cursor.place(repo, f"api {state}") or {}
    stop = place.get("high", wish.since) if state == "closed" else wish.since
    start, high, seen = place.get("page", ""), place.get("top", ""), place.get("seen", [])
    pages = github.pages(LIST.format(repo=repo, state=state), cursor, pulls_of, start=start)
    for page, (pulls, following) in enumerate(pages, 1):
        high = high or (pulls[0]["updated"] if pulls else stop)
        fresh = [pull for pull in pulls if pull["updated"] >= stop]
        rows = [row for pull in fresh if (row := _row(github, wish, pull, state)) is not None]
        seen += [[row.facts.id, row.facts.sha] for row in rows] if state == "open" else []
        last = not following or len(fresh) < len(pulls)
        note = {"high": high} if last else {**place, "page": following, "top": high, "seen": seen}
        cursor.settle(repo, rows, (), [(f"api {state}", note)])
        tell(f"{repo}: page {page} of {state} pull requests, {len(rows)} records, {github.left} requests left")
        if last:
            break
    if state == "open":
        cursor.forget_open(repo, [(key, sha) for key, sha in seen])


def _row(github: GitHub, wish: Wish, pull: Pull, state: str) -> Row | None:
    when = pull["merged"] if state == "closed" else pull["updated"]
    if not when or when < wish.since:
        return None
    facts = _facts(github, wish, pull, state)
    return Row(facts=facts, rank=0 if state == "closed" else OPEN_RANK) if facts else None


def _facts(github: GitHub, wish: Wish, pull: Pull, state: str) -> Facts | None:
    repo, source = wish.source.repo, wish.source
    files: list[patch.FileDiff] = []
    new: set[str] = set()
    seen: list[Any] = []
    try:
        for kept, _ in github.pages(FILES.format(repo=repo, number=pull["number"]), None, list_of_files(source)):
            seen += kept
            if len(seen) >= MOST_FILES:
                break
    except (Gone, TooLarge):
        return None
    for row in seen:
        new |= {row["path"]} if row["status"] == "added" else set()
        files.append(_diff(row))
    change = diff_facts.Change(
        id=f"{repo}#{pull['number']}",
        pr=pull["number"],
        sha=pull["sha"] if state == "closed" else pull["head"],
        date=pull["merged"] if state == "closed" else pull["updated"],
        how="api" if state == "closed" else "open",
        said=msgspec.convert(pull["said"], said.Said),
        files=tuple(sorted(files, key=lambda diff: diff.path)),
        new_paths=frozenset(new),
    )
    fragments = {diff.path: diff.fragment for diff in change.files}
    return diff_facts.facts_of(change, source, lambda path: fragments[path])


def list_of_files(source: Any) -> Any:
    """A reducer of a page of files: counts of all, patches only where kernels may be; code, so never cached."""

    def reduced(answer: Any) -> list[Any]:
        return [
            {
                "path": str(row["filename"]),
                "status": str(row["status"]),
                "add": int(row["additions"]),
                "del": int(row["deletions"]),
                "patch": row.get("patch") if paths.may_hold_kernels(str(row["filename"]), source) else None,
            }
            for row in answer
        ]

    return reduced


def _diff(row: Any) -> patch.FileDiff:
    diff = patch.of_text(row["path"], row["patch"] or "")
    diff.add, diff.deleted = row["add"], row["del"]
    return diff
