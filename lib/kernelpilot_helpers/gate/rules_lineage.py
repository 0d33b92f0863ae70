"""Rules over history: every attempt has a row, ledgers are views, the lineage is sound, the selected version runs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from kernelpilot_helpers.contract.model import Lock
from kernelpilot_helpers.evidence.model import Evidence, row_key
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.audited import Found, under
from kernelpilot_helpers.gate.facts import best_of, epoch_rows, short
from kernelpilot_helpers.gate.model import Rule
from kernelpilot_helpers.ledger import LINEAGE_PATH, Row, citations
from kernelpilot_helpers.ledger.older import IMPORTED
from kernelpilot_helpers.policy import Policy

EVIDENCE = ("artifacts/", "dispatch/")
OTHER = 'kernelpilot select v000_baseline --why "the selected one is wrong"  # or a correct version; tune after it'
OURS = (
    "artifacts/runs/",
    "artifacts/lineage.jsonl",
    "artifacts/source-ideas.jsonl",
    "artifacts/attempt-ledger.md",
    "artifacts/optimization-ledger.md",
    "artifacts/contract.lock.json",
    "artifacts/performance-map.json",
    "dispatch/",
)
"""Evidence that our commands alone write and commit."""
VOID = ("WRONG", "BROKEN", "REGRESSED")


def every_attempt(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: audit of runs and views, paths once committed below artifacts/, dirty evidence, trees in history."""
    yield from under("10")(evidence, policy)
    yield from _deleted(evidence)
    told = set(evidence.git.removed)
    lock = evidence.lock.files if isinstance(evidence.lock, Lock) else {}
    for path in evidence.git.dirty:
        if path.startswith(EVIDENCE) and path in evidence.git.tracked and path not in told and path not in lock:
            what = "an uncommitted change of committed evidence"
            yield path, what, _settle(evidence, path)
    yield from _unjudged(evidence)


def _deleted(evidence: Evidence) -> Iterator[Found]:
    last = {path: c.commit for c in evidence.git.commits for path in c.paths if path in set(evidence.git.removed)}
    for path in evidence.git.removed:
        commit = last.get(path, "HEAD")
        what = f"was committed ({short(commit)}) and is missing: evidence is never deleted"
        yield path, what, f"git checkout {short(commit)} -- {path}"


def _unjudged(evidence: Evidence) -> Iterator[Found]:
    """Distinct variant trees of the history without a row, work in progress and runs in flight left out."""
    known = {row.tree for row in evidence.rows} | {evidence.runs[run].tree for run in facts.orphans(evidence)}
    for commit in evidence.git.commits:
        for slug, tree in commit.trees.items():
            if tree in known or commit.subject.lower().startswith(facts.WIP):
                continue
            known.add(tree)
            path = f"{facts.variants(evidence)}/{slug}"
            what = f"tree {short(tree)}, committed in {short(commit.commit)}, was never attempted"
            fix = facts.ATTEMPT.format(name=slug)
            if evidence.git.head_variants.get(slug) != tree:
                fix = f"git checkout {short(commit.commit)} -- {path} && {fix}"
            yield path, what, fix


def in_progress(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: variant folders of the worktree against HEAD and the rows."""
    known = {row.tree for row in evidence.rows}
    selected = evidence.files.get(facts.current_path(evidence), "").strip()
    for slug, tree in sorted(evidence.git.variants.items()):
        if tree not in known and tree != evidence.git.head_variants.get(slug) and slug != selected:
            path = f"{facts.variants(evidence)}/{slug}"
            yield (
                path,
                "work in progress: not committed and not attempted",
                facts.ATTEMPT.format(name=slug),
            )


def uncommitted(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: untracked files below artifacts/ and dispatch/; those of a run in flight are its command's to commit."""
    flying = tuple(f"artifacts/runs/{run}/" for run in facts.orphans(evidence))
    for path in evidence.git.dirty:
        if path.startswith(EVIDENCE) and path not in evidence.git.tracked and not path.startswith(flying):
            yield path, "evidence that no commit holds", _settle(evidence, path)


def cited(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: source keys and digests that rows cite, against the ideas on record and the digests that lie here.

    Rows stay for ever: a later row of the same tree that cites nothing unknown mends one that does.
    """
    keys, digests = {idea.key for idea in evidence.ideas}, citations.digest_ids(evidence.sizes)
    open_: dict[str, tuple[Row, tuple[str, ...]]] = {}
    for row in evidence.rows:
        if row.kind not in facts.TRIED or row.epoch == 0:
            continue
        if missing := citations.unknown(row.motivation, keys=keys, digests=digests):
            open_[row.tree] = row, missing
        else:
            open_.pop(row.tree, None)
    for row, missing in open_.values():
        path = f"{facts.variants(evidence)}/{row.variant}"
        fix = f'kernelpilot attempt {row.variant} --again --motivation "the same, without what is not there"'
        if evidence.git.head_variants.get(row.variant) != row.tree:
            fix = f"git checkout {short(row.commit)} -- {path} && {fix}"
        yield f"{LINEAGE_PATH}: {row.version}", f"cites {', '.join(missing)}, which is not in this repo", fix


def _settle(evidence: Evidence, path: str) -> str:
    """How a file that differs from HEAD comes to rest: a killed command is finished, never committed half."""
    quoted, fresh = shlex.quote(path), path not in evidence.git.tracked
    if path.startswith(OURS) and (LINEAGE_PATH in evidence.git.dirty or any(facts.orphans(evidence))):
        return "kernelpilot ledger render  # finishes or puts aside what a killed command left"
    if path.startswith(OURS) and not fresh:
        return f"git checkout HEAD -- {quoted}"
    add = f"git add -- {quoted} && " if fresh else ""
    return f'{add}git commit -m "evidence" -- {quoted}'


def optimizations(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: the rendered ledger (audit), and each IMPROVED row against the bench of its confirmation run."""
    yield from under("11")(evidence, policy)
    for row in evidence.rows:
        if row.verdict != "IMPROVED" or row.kind not in facts.TRIED or row.gain is None:
            continue
        run = evidence.runs.get(row.confirmed_by or "")
        where = f"{LINEAGE_PATH}: {row.version}"
        if run is None or run.bench is None:
            yield where, "IMPROVED without a readable confirmation run", "git checkout -- artifacts/runs"
        elif run.bench.verdict != "IMPROVED" or not math.isclose(run.bench.geomean.speedup, row.gain.speedup):
            says = f"{run.bench.verdict} {run.bench.geomean.speedup:g}"
            what = f"the confirmation {run.run} says {says}, the row {row.gain.speedup:g}"
            yield where, what, "git checkout -- artifacts"
        elif run.verification is None or run.verification.verdict != "Correct":
            yield where, f"the confirmation {run.run} was not shown correct", "git checkout -- artifacts"


def lineage(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: audit of chain, parents and git history, each row's commit and tree, and the heads the loop has seen."""
    yield from under("12")(evidence, policy)
    if evidence.git.cut:
        return  # rule 2 names it, and nothing can be compared
    at = facts.places(evidence)
    for row in evidence.rows:
        if not row.commit or (row.epoch == 0 and row.reason.startswith(IMPORTED)):
            continue
        where = f"{LINEAGE_PATH}: {row.version}"
        if row.commit not in at:
            what = f"its commit {short(row.commit)} is not in HEAD's history"
            yield where, what, "git reflog  # find that commit, then bring it back with git merge or git reset"
        elif evidence.git.row_trees.get(row_key(row), "") != row.tree:
            what = f"tree {short(row.tree)} is not what commit {short(row.commit)} holds for {row.variant}"
            yield where, what, f"git checkout -- {LINEAGE_PATH}"
    loop = evidence.loop
    for stop in loop.stops[1:] if loop and evidence.base_is_ancestor else ():
        if stop.head and stop.head not in at:
            what = f"the loop saw commit {short(stop.head)} in round {stop.round}, and it is not in HEAD's history"
            yield (
                f"{loop.directory if loop else ''}",
                what,
                "git reflog  # find that commit, then bring it back with git merge or git reset",
            )


def selected(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: ``current``, its tree in HEAD and in the worktree, the selected row, and what improved on it later."""
    best = best_of(evidence)
    path = facts.current_path(evidence)
    text = evidence.files.get(path)
    back = f'kernelpilot select {best.version} --why "restore"'
    if text is None or text.split() != [best.variant]:
        what = f"names {' '.join((text or '').split())[:80]!r}; the selected version {best.version} is {best.variant!r}"
        yield path, what, back if text is not None else f"git checkout -- {path}"
        return
    if path in evidence.git.dirty:
        yield path, "an uncommitted change", f"git checkout -- {path}"
    if wrong := facts.found_wrong(evidence, best):
        yield path, f"the selected version {best.version} does not hold: {wrong}", OTHER
    folder = "baseline" if best.kind == "baseline" else f"{facts.variants(evidence)}/{best.variant}"
    if evidence.git.current_tree != best.tree:
        held = short(evidence.git.current_tree) or "nothing"
        what = f"HEAD holds tree {held}; {best.version} was judged as {short(best.tree)}"
        yield folder, what, f"{back}  # or, if this is the next try: {facts.ATTEMPT.format(name=best.variant)}"
    elif best.kind != "baseline" and evidence.git.variants.get(best.variant) != best.tree:
        changed = [p for p in evidence.git.dirty if p.startswith(f"{folder}/")]
        told = ", ".join(changed[:4]) or "its files differ from HEAD"
        what = f"the selected variant was edited without an attempt ({told})"
        yield folder, what, f"{facts.ATTEMPT.format(name=best.variant)}  # or undo the edit: git checkout -- {folder}"
    for row in _better(epoch_rows(evidence), best):
        if facts.found_wrong(evidence, row):
            continue
        what = f"{row.version} IMPROVED on {row.incumbent} later, and {best.version} is selected"
        yield path, what, f'kernelpilot select {row.version} --why "it is faster"'


def _better(rows: tuple[Row, ...], best: Row) -> Iterator[Row]:
    """Later IMPROVED rows whose chain of incumbents leads to the selected version, not voided by a recheck."""
    over = {best.version}
    for ix, row in enumerate(rows):
        if row.kind != "attempt" or row.verdict != "IMPROVED" or row.incumbent not in over or row.tree == best.tree:
            continue
        over.add(row.version)
        again = [r for r in rows[ix + 1 :] if r.kind == "recheck" and r.tree == row.tree]
        if not (again and again[-1].verdict in VOID):
            yield row


RULES: tuple[Rule, ...] = (
    Rule(id="10", title="every attempt has a row", severity="block", phase="always", check=every_attempt),
    Rule(id="10", title="work in progress", severity="trend", phase="always", check=in_progress),
    Rule(id="10", title="what is cited is there", severity="repair", phase="always", check=cited),
    Rule(id="10", title="evidence is committed", severity="repair", phase="always", check=uncommitted),
    Rule(id="11", title="optimization ledger", severity="block", phase="always", check=optimizations),
    Rule(id="12", title="lineage is sound", severity="block", phase="always", check=lineage),
    Rule(id="13", title="what runs is what was selected", severity="block", phase="always", check=selected),
)
