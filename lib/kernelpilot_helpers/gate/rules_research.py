"""Rules over what was read: a wider search after weak rounds, and no source twice. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.audited import Found
from kernelpilot_helpers.gate.done import stopped, target_met
from kernelpilot_helpers.gate.model import NotEvaluated, Rule
from kernelpilot_helpers.gate.research import MARK, Study, study
from kernelpilot_helpers.gate.sources import Source, read, sources
from kernelpilot_helpers.gate.weak import streak
from kernelpilot_helpers.ledger import IDEAS_PATH, LINEAGE_PATH, Row
from kernelpilot_helpers.policy import Policy

SHOWN = 4
"""Rounds or keys named in one line."""


def expansion(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: rows of the epoch, the log of source ideas, how much of it each commit held, HEAD of each row.

    The first attempt after ``policy.weak_rounds`` weak rounds owes a search: counted from where the weak rounds
    began, noted before it, with one hypothesis that it cites. What it lacked a later attempt makes up for. A decision
    takes no search's place: only one made after the attempt that made up for it begins the count anew. A target that
    is met, or a stop that counts, asks for no search.
    """
    if target_met(evidence)[0] or stopped(evidence, policy):
        return
    for debt in debts(evidence, policy):
        if evidence.git.cut:
            owing = debt.attempt.version
            raise NotEvaluated(f"what was read before {owing} is in no history here: {evidence.git.cut}")
        if not debt.paid:
            now, had = study(evidence, policy, debt.begin), study(evidence, policy, debt.begin, debt.attempt)
            where = f"{LINEAGE_PATH}: {debt.attempt.version}"
            yield where, _lacked(debt.weak, debt.attempt, had, now), _make_up(evidence, now)


@dataclass(kw_only=True, slots=True)
class Debt:
    """A search that an attempt owed."""

    weak: tuple[str, ...]
    """The weak rounds, oldest first."""
    begin: Row
    """The row after which they begin."""
    attempt: Row
    paid: bool = False
    """Whether it or a later attempt cites a hypothesis of a whole search."""


def debts(evidence: Evidence, policy: Policy) -> list[Debt]:
    """The searches owed in this epoch, one for each stretch of weak rounds, oldest first."""
    return _walk(evidence, policy)[0]


def unsearched(evidence: Evidence, policy: Policy) -> tuple[tuple[str, ...], Row | None]:
    """As ``weak.streak``, of a count that only a search and a decision after it begin anew. Raises NotEvaluated."""
    return streak(replace(evidence, rows=_walk(evidence, policy)[1]), policy)


def _walk(evidence: Evidence, policy: Policy) -> tuple[list[Debt], tuple[Row, ...]]:
    """The debts, and the rows since the last decision that a search came before, without other decisions."""
    out: list[Debt] = []
    kept: tuple[Row, ...] = ()
    for row in facts.epoch_rows(evidence):
        if facts.word(row) in facts.DECISIONS:
            begin = streak(replace(evidence, rows=kept), policy)[1]
            if any(debt.paid and debt.begin is begin for debt in out):
                kept = (row,)
            continue  # without a search the count goes on as if nothing had been decided
        kept = (*kept, row)
        if row.kind == "attempt" and not facts.void(row):
            weak, begin = streak(replace(evidence, rows=kept), policy, len(kept) - 1)
            if len(weak) >= policy.weak_rounds and begin is not None and all(d.begin is not begin for d in out):
                out.append(Debt(weak=weak, begin=begin, attempt=row))
            for debt in out:
                debt.paid = debt.paid or _paid(evidence, policy, debt.begin, row)
    return out, kept


def _paid(evidence: Evidence, policy: Policy, begin: Row, attempt: Row) -> bool:
    """Whether a whole search lies between two rows, and the second cites a hypothesis of it."""
    if not attempt.motivation.source_keys:
        return False
    had = study(evidence, policy, begin, attempt)
    return had.whole and _cites(attempt, had)


def _cites(row: Row, had: Study) -> bool:
    return not set(row.motivation.source_keys).isdisjoint(had.keys)


def _lacked(weak: Sequence[str], row: Row, had: Study, now: Study) -> str:
    """What an attempt lacked, and how much of that is still missing."""
    cites = "cites one" if _cites(row, had) else "cites none of them"
    told = (
        f"{len(weak)} weak rounds in a row ({', '.join(weak[-SHOWN:])}) ended before it; noted since they began and "
        f"before it: {had.sources} of {had.want} new sources, {had.hypotheses} of {had.want_hypotheses} hypotheses; "
        f"it {cites}"
    )
    missing = [f"{now.missing} sources"] * bool(now.missing)
    missing += [f"{now.missing_hypotheses} hypotheses"] * bool(now.missing_hypotheses)
    missing.append("an attempt that cites one")
    vague = f"; {now.vague} hypotheses name no number or hardly a word" if now.vague and now.missing_hypotheses else ""
    left_out = f"; {now.left_out()}" if now.left_out() else ""
    return f"{told}; still missing: {', '.join(missing)}{vague}{left_out}"


def _make_up(evidence: Evidence, now: Study) -> str:
    again = f"kernelpilot attempt {facts.variants(evidence)}/NAME --source KEY --motivation HYPOTHESIS"
    if now.whole:
        return f"{again}  # KEY is one of {', '.join(now.keys[-SHOWN:])}"
    return f"{now.hand_out()}  # read each and note it: {MARK}, and try one: {again}"


def reread(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: repository, commit, path, symbol and reason of each source idea, in order.

    Rows stay for ever: a later row of the same source that gives a reason mends one without.
    """
    noted = sources(evidence.ideas)
    excused = {(source.place, source.symbol): ix for ix, source in enumerate(noted) if source.reason}
    seen: dict[tuple[object, str], Source] = {}
    for ix, source in enumerate(noted):
        name = (source.place, source.symbol)
        first = seen.get(name)
        seen.setdefault(name, source)
        if first is None or excused.get(name, -1) >= ix:
            continue
        what = f"{source.place[0]} {source.place[2]} {source.symbol}".rstrip() + " was read before"
        if first.idea.commit != source.idea.commit:
            what += f" (commit {first.idea.commit} is {source.idea.commit})"
        yield f"{IDEAS_PATH}: {source.idea.key}", f"{what} (key {first.key}), and no reason is given", _again(source)


def _again(source: Source) -> str:
    idea = source.idea
    commit = source.place[1] if facts.COMMIT.match(source.place[1]) else "HEAD_SHA"
    symbol = f" --symbol {shlex.quote(idea.symbol)}" if idea.symbol else ""
    read = f"--source-repo {shlex.quote(idea.repo)} --commit {commit} --path {shlex.quote(idea.path)}{symbol}"
    return f'kernelpilot ledger idea {read} --hypothesis TEXT --reread-reason "why it was read again"'


def two_hashes(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: the sha256 that rows note for files of one repository, commit and path: one file has one.

    A later reading with a reason settles which of them holds; rows with another one then count as no source.
    """
    noted, true = read(evidence.ideas)
    told: set[object] = set()
    before: dict[object, str] = {}
    for source in noted:
        for place, sha in source.opened:
            if before.setdefault(place, sha) == sha or true[place] or place in told:
                continue
            told.add(place)
            repo, commit, path = place
            what = f"{repo} {path} at {commit[:12]} has the sha256 {before[place][:12]} in one row and {sha[:12]} here"
            mark = f"kernelpilot knowledge mark-read {shlex.quote(commit)} --file {shlex.quote(path)}"
            fix = f'{mark} --hypothesis TEXT --reread-reason "its sha256 was noted twice"'
            yield f"{IDEAS_PATH}: {source.idea.key}", f"{what}: one of them was typed", fix


RULES: tuple[Rule, ...] = (
    Rule(id="19", title="research expansion", severity="block", phase="always", check=expansion),
    Rule(id="20", title="do not reread", severity="repair", phase="always", check=reread),
    Rule(id="20", title="one file has one sha256", severity="repair", phase="always", check=two_hashes),
)
