"""From a clone to records: branches in order, batches of commits, each batch one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date

import msgspec

from mining import diff_facts, paths, said, title
from mining.cursor import OPEN_RANK, Cursor, Row
from mining.facts import Facts
from mining.git_history import Changed, Clone, Commit, OpenRef
from mining.repos import Source

BATCH = 200
Tell = Callable[[str], None]


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What to mine of one repository."""

    source: Source
    since: str
    """UTC date, ``2024-05-15``."""
    direct: bool = False
    open_too: bool = False
    most: int = 0
    """Largest pull request number that counts; 0 = any."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Commits to look at, each with the rank of its branch, and the tips they were found from."""

    commits: tuple[tuple[str, int], ...]
    tips: tuple[tuple[str, str], ...]
    known: int
    """Commits that an earlier run settled."""


def plan(clone: Clone, wish: Wish, cursor: Cursor) -> Plan:
    """Walk the branches; newest first, commits of the first branch not repeated for the others."""
    tips = clone.tips(wish.source.branches)
    settled = cursor.done(wish.source.repo)
    seen: set[str] = set()
    rows: list[tuple[str, int]] = []
    known = 0
    for rank, (_, tip) in enumerate(tips):
        excluding = tips[0][1] if rank else ""
        for sha in clone.shas(tip, wish.since, linear=wish.source.linear, excluding=excluding):
            if sha not in seen:
                seen.add(sha)
                known += sha in settled
                rows += [(sha, rank)] if sha not in settled else []
    return Plan(commits=tuple(rows), tips=tips, known=known)


def is_own(message: title.Message, when: str, wish: Wish) -> bool:
    """Whether the number is the repository's, not one of the fork that the clone came from."""
    if message.pr is None:
        return wish.direct and bool(message.title)
    in_range = message.pr >= wish.source.least or bool(wish.source.forked and when < wish.source.forked)
    return in_range and (wish.most == 0 or message.pr <= wish.most)


def mine(clone: Clone, wish: Wish, cursor: Cursor, todo: Plan, tell: Tell) -> int:
    """Look at every commit of the plan; return how many records were made."""
    made = 0
    for at in range(0, len(todo.commits), BATCH):
        batch = dict(todo.commits[at : at + BATCH])
        rows, done = _batch(clone, wish, batch)
        cursor.settle(wish.source.repo, rows, done)
        made += len(rows)
        tell(f"{wish.source.repo}: {min(at + BATCH, len(todo.commits))} of {len(todo.commits)} commits, {made} records")
    return made


def _batch(clone: Clone, wish: Wish, batch: dict[str, int]) -> tuple[list[Row], list[str]]:
    messages: dict[str, title.Message] = {}
    chosen: dict[str, Commit] = {}
    done = []
    for commit in clone.commits(batch):
        message = title.read(commit.message)
        if message.pr is not None or wish.direct:
            done.append(commit.sha)
        if is_own(message, commit.date, wish) and any(_candidate(clone, c, wish.source) for c in commit.changed):
            messages[commit.sha], chosen[commit.sha] = message, commit
    rows = []
    for sha, diffs, unread in clone.diffs(chosen.values(), paths_wanted(wish.source)):
        commit, message = chosen[sha], messages[sha]
        repo = wish.source.repo
        change = diff_facts.Change(
            id=f"{repo}#{message.pr}" if message.pr is not None else f"{repo}@{sha[:12]}",
            pr=message.pr,
            sha=sha,
            date=commit.date,
            how=message.how,
            said=said.read(message.title, message.body),
            files=tuple(sorted(diffs, key=lambda diff: diff.path)),
            unread=tuple(sorted(unread)),
            new_paths=frozenset(c.path for c in commit.changed if c.status == "A"),
        )
        found = _facts(clone, change, commit, wish.source)
        rows += [Row(facts=found, rank=batch[sha])] if found else []
    return rows, done


def paths_wanted(source: Source) -> Callable[[str], bool]:
    """Files whose lines are read; of the others only the counts."""
    return lambda path: paths.may_hold_kernels(path, source)


def _candidate(clone: Clone, changed: Changed, source: Source) -> bool:
    """Whether the diff is worth making: the path, then the text, may hold kernels."""
    if not paths.may_hold_kernels(changed.path, source):
        return False
    if paths.suffix(changed.path) in paths.CUDA:
        return True
    text = clone.text(changed.blob)
    return text is None or bool(paths.kind_of(changed.path, text.encode(), source))


def _facts(clone: Clone, change: diff_facts.Change, commit: Commit, source: Source) -> Facts | None:
    blobs = {changed.path: changed.blob for changed in commit.changed}
    return diff_facts.facts_of(change, source, lambda path: clone.text(blobs[path]) if path in blobs else None)


def mine_open(clone: Clone, wish: Wish, cursor: Cursor, tell: Tell) -> int:
    """Candidates that a merge ref exists for. Their titles are unknown to git: of the head's subject only words."""
    repo = wish.source.repo
    merged = {int(row.rpartition("#")[2]) for row in _merged_ids(clone, wish)}
    refs = clone.open_refs(wish.since, merged, clone.resolve("HEAD"))
    settled = cursor.done(repo)
    todo = {ref.merge: ref for ref in refs if f"open {ref.head}" not in settled}
    made = 0
    shas = list(todo)
    for at in range(0, len(shas), BATCH):
        rows = _open_batch(clone, wish, {sha: todo[sha] for sha in shas[at : at + BATCH]})
        cursor.settle(repo, rows, [f"open {todo[sha].head}" for sha in shas[at : at + BATCH]])
        made += len(rows)
        tell(f"{repo}: {min(at + BATCH, len(shas))} of {len(shas)} open candidates, {made} records")
    cursor.forget_open(repo, [(f"{repo}#{ref.number}", ref.head) for ref in refs])
    return made


def _merged_ids(clone: Clone, wish: Wish) -> Iterable[str]:
    """Numbers on any branch since ever: a stale merge ref of one of them is no open pull request."""
    for rank, (_, tip) in enumerate(clone.tips(wish.source.branches)):
        for commit_message in clone.subjects(tip, linear=wish.source.linear or rank > 0):
            number = title.read(commit_message).pr
            if number is not None:
                yield f"#{number}"


def _open_batch(clone: Clone, wish: Wish, batch: dict[str, OpenRef]) -> list[Row]:
    chosen = {
        commit.sha: commit
        for commit in clone.commits(batch)
        if any(_candidate(clone, changed, wish.source) for changed in commit.changed)
    }
    heads = {commit.sha: title.read(commit.message) for commit in clone.commits([batch[sha].head for sha in chosen])}
    rows = []
    for sha, diffs, unread in clone.diffs(chosen.values(), paths_wanted(wish.source)):
        ref, commit = batch[sha], chosen[sha]
        message = heads[ref.head]
        change = diff_facts.Change(
            id=f"{wish.source.repo}#{ref.number}",
            pr=ref.number,
            sha=ref.head,
            date=ref.date,
            how="open",
            said=said.read("" if message.how == "merge" else message.title, message.body),
            files=tuple(sorted(diffs, key=lambda diff: diff.path)),
            unread=tuple(sorted(unread)),
            new_paths=frozenset(c.path for c in commit.changed if c.status == "A"),
        )
        found = _facts(clone, change, commit, wish.source)
        rows += [Row(facts=found, rank=OPEN_RANK)] if found else []
    return rows


def utc_date(text: str) -> str:
    """A date of the command line in its plain form. Raises ValueError for anything else."""
    return date.fromisoformat(text).isoformat()
