"""Rules over the loop: work inside rounds, repeated blockers, far-off attempts, plateau, pull requests."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.audited import Found
from kernelpilot_helpers.gate.done import early_stop, may_stop, stopped, target_met
from kernelpilot_helpers.gate.facts import contract_of, epoch_rows, loop_of, short
from kernelpilot_helpers.gate.model import NotEvaluated, Rule
from kernelpilot_helpers.gate.weak import decides, gains
from kernelpilot_helpers.ledger import IDEAS_PATH, LINEAGE_PATH
from kernelpilot_helpers.policy import Policy

TENSOR_CORE = ("gemm", "attention", "moe")
"""Kinds of kernel that stand or fall with the tensor cores."""
PAPERS = ("28", "33")
"""Rules whose findings lie in what the worker writes about a round: they ask for no narrower one."""
AT_LIMIT = "none.at_limit"
"""Class of a digest whose kernel is near the roof that limits it."""
NARROW = ("milestone", "reset", "bring-up")


def inside_rounds(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: the loops' journals (HEAD at set-up and at each Stop), variant trees of the history, rows and rounds.

    A commit belongs to (HEAD of the Stop before, HEAD of this Stop]. A tree that HEAD still holds and that was
    committed outside every round needs a row that was written inside one.
    """
    if evidence.loop is None:
        yield ".humanize/rlcr", "no loop: rounds are not reviewed", facts.SETUP
        return
    rounds = facts.rounds(evidence)
    if not rounds and evidence.loop.faults:
        return  # the journal tells no rounds; that is a finding of its own
    seen = {row.tree for row in evidence.rows if row.round is not None or row.commit in rounds or row.at_head in rounds}
    judged = {row.tree for row in evidence.rows}
    inside = {tree for c in evidence.git.commits if c.commit in rounds for tree in c.trees.values()}
    for commit in evidence.git.commits:
        for slug, tree in commit.trees.items():
            if commit.subject.lower().startswith(facts.WIP) and tree not in judged:
                continue
            if tree in seen | inside or evidence.git.head_variants.get(slug) != tree or commit.commit in rounds:
                continue
            path = f"{facts.variants(evidence)}/{slug}"
            what = f"tree {short(tree)} was committed in {short(commit.commit)}, outside every round of a loop"
            yield path, what, _again(evidence, slug)


def _again(evidence: Evidence, slug: str) -> str:
    again = f'kernelpilot attempt {slug} --again --motivation "recheck inside a round"'
    return again if evidence.loop and evidence.loop.active else facts.SETUP


def journal(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: header, sequence and hash chain of every loop's journal."""
    for loop in facts.loops(evidence):
        for fault in loop.faults:
            yield fault.where, fault.what, fault.fix


def by_hand(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: ``tamper`` lines of the newest journal."""
    for what in evidence.loop.tampered if evidence.loop else ():
        where, _, said = what.partition(": ")
        yield where or "loop", f"the loop's runtime noted: {said}", "leave the loop's files to its runtime"


def amended(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: ``amend`` lines of the newest journal: what the loop is judged by now is not what it began with."""
    loop = evidence.loop
    for said in loop.amends if loop else ():
        what, _, why = said.partition(": ")
        where = loop.directory if loop else ""
        yield where, f"the {what} was amended: {why}", "nothing to mend: the round's summary says what it changes"


def _of_the_work(name: str) -> bool:
    """Whether a finding id is of a rule over the evidence: the loop's papers are mended by writing, in any round."""
    rule, _, where = name.partition(":")
    return rule.isdigit() and rule not in PAPERS and not where.startswith("round-")


def repeated(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: finding ids (``rule:where``) of the last two Stops that had a gate, and this round's contract."""
    loop = loop_of(evidence)
    red = [stop for stop in loop.stops if stop.passed is False]
    if len(red) < 2 or not loop.active:
        return
    twice = sorted(filter(_of_the_work, set(red[-1].findings) & set(red[-2].findings)))
    text = loop.contracts.get(loop.round, "").lower()
    if twice and not any(word in text for word in NARROW):
        where = f"{loop.directory}/round-{loop.round}-contract.md"
        what = f"the same blocker twice ({', '.join(twice[:4])}): this round wants a narrower contract"
        yield where, what, "make its type milestone or reset, with that blocker as its one objective"


def far_off(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: the op's class, the target, the direct figure of each attempt, and decision rows after it."""
    contract = contract_of(evidence)
    if contract.task.op not in TENSOR_CORE:
        return
    rows = epoch_rows(evidence)
    for ix, row in enumerate(rows):
        figure = row.vs_baseline if row.kind == "attempt" else None
        if figure is None or figure.speedup * policy.far_off > contract.target.speedup:
            continue
        if not any(facts.word(later) for later in rows[ix + 1 :]):
            what = f"{figure.speedup:.3g} of the baseline is more than {policy.far_off:g}x off the target"
            yield row.version, what, facts.decide(evidence, facts.PIVOT)


def plateau(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: point gains by round, decision rows, and whether the target is met with a confirmation."""
    rows = epoch_rows(evidence)
    met, why = target_met(evidence)
    if met:
        return
    decided = [ix for ix in range(len(rows)) if decides(evidence, policy, rows, ix)]
    last = gains(rows)[-policy.weak_rounds :]
    weak = [name for name, gain, _ in last if gain is None or gain < policy.weak_gain]
    if len(weak) == policy.weak_rounds and not any(ix > last[-1][2] for ix in decided):
        what = f"{policy.weak_rounds} weak rounds ({', '.join(weak)}) and no decision after them"
        pivot, go_on = f"{facts.PIVOT} {facts.REASON}", f"{facts.CONTINUE} {facts.EXPECTED}"
        first, second = (facts.STOP, pivot) if may_stop(evidence, policy) else (facts.PIVOT, "")
        others = " or ".join(f'"{words}"' for words in (second, go_on) if words)
        yield LINEAGE_PATH, what, f"{facts.decide(evidence, first)}  # or {others}"
    elif not stopped(evidence, policy):
        early = early_stop(evidence, policy)
        what = f"the end without its reason: {why}, and {early or 'no stop decision'}"
        yield LINEAGE_PATH, what, facts.way_on(evidence, may_stop=may_stop(evidence, policy))


def exhausted(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: a digest of the selected version that is at its roof, beside a stop decision that says "exhausted"."""
    rows = epoch_rows(evidence)
    said = [row for row in rows if facts.word(row) == facts.STOP and "exhausted" in row.reason.lower()]
    tree = facts.best_of(evidence).tree if said else ""
    mine = [d for d in evidence.digests if d.real and not d.faults and d.profile and d.profile.tree == tree]
    if said and not any(d.name == AT_LIMIT for d in mine):
        raise NotEvaluated(f"{said[-1].version} says exhausted; no digest shows {policy.near_peak:.0%} of the roof yet")
    yield from ()


def pull_requests(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: source ideas that cite a pull request: ``commit`` is the head that was read, ``at`` when.

    Rows stay for ever: another row of the same file of that pull request with both mends one without.
    """
    whole = {(idea.repo, idea.pr, idea.path) for idea in evidence.ideas if facts.COMMIT.match(idea.commit) and idea.at}
    for idea in evidence.ideas:
        if not idea.pr or (idea.repo, idea.pr, idea.path) in whole:
            continue
        what = f"{idea.repo} pull request {idea.pr}: no 40-digit head commit, or no time at which it was read"
        read = (
            f"--source-repo {shlex.quote(idea.repo)} --commit HEAD_SHA --path {shlex.quote(idea.path)} --pr {idea.pr}"
        )
        fix = f'kernelpilot ledger idea {read} --hypothesis TEXT --reread-reason "its head was not noted"'
        yield f"{IDEAS_PATH}: {idea.key}", what, fix


RULES: tuple[Rule, ...] = (
    Rule(id="3", title="candidates inside rounds", severity="repair", phase="always", check=inside_rounds),
    Rule(id="3", title="the loop's journal is sound", severity="block", phase="always", check=journal),
    Rule(id="3", title="the loop's files were left alone", severity="trend", phase="always", check=by_hand),
    Rule(id="3", title="an amendment is shown", severity="trend", phase="always", check=amended),
    Rule(id="28", title="a repeated blocker narrows the round", severity="trend", phase="always", check=repeated),
    Rule(id="29", title="far off: change the route", severity="trend", phase="always", check=far_off),
    Rule(id="30", title="plateau and stop rule", severity="block", phase="final", check=plateau),
    Rule(id="30", title="exhausted is shown", severity="block", phase="final", check=exhausted),
    Rule(id="32", title="open pull requests re-checked", severity="repair", phase="always", check=pull_requests),
)
