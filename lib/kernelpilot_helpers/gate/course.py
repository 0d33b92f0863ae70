"""Where the ledger's numbers lead: on, a wider search, a forced decision, or the finish lane. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.audited import Found
from kernelpilot_helpers.gate.done import done, stopped, target_met
from kernelpilot_helpers.gate.final_facts import FINAL_PATH, FIX
from kernelpilot_helpers.gate.final_rules import DIGEST_PATH
from kernelpilot_helpers.gate.model import Course, NotEvaluated, Rule
from kernelpilot_helpers.gate.weak import streak
from kernelpilot_helpers.ledger import LINEAGE_PATH, SOURCE_IDEAS_PATH, Row
from kernelpilot_helpers.policy import Policy

IDEA = "kernelpilot ledger idea --source-repo OWNER/NAME --commit HEAD_SHA --path PATH --symbol NAME --hypothesis TEXT"
SHOWN = 6
"""Rounds named in one line."""


def course(evidence: Evidence, policy: Policy) -> Course:
    """Where the numbers lead. Without contract, lock or baseline row it is ``on``, and ``why`` says what is missing.

    A round is weak when its best correct attempt gained less than ``policy.weak_gain`` by its point figure, whatever
    the verdict. A target that is met, or a stop decision that counts, comes before any count of weak rounds.
    """
    try:
        return _course(evidence, policy)
    except NotEvaluated as why:
        return Course(kind="on", weak=0, why=str(why))


def _course(evidence: Evidence, policy: Policy) -> Course:
    met, why = target_met(evidence)
    weak, begin = streak(evidence, policy)
    stop = "" if met else stopped(evidence, policy)
    count = len(weak)
    if met or stop:
        said = f"decided: {stop}" if stop else why
        return Course(kind="finish", weak=count, why=said, lines=_finish(evidence, policy))
    if count < min(policy.weak_rounds, policy.plateau_rounds):
        return Course(kind="on", weak=count, why=f"{count} weak round{'s' * (count != 1)} in a row at the end")
    said = f"{count} weak rounds in a row ({', '.join(weak[-SHOWN:])})"
    have, want = _new_sources(evidence, begin), policy.research_sources
    noted = f"{have} of {want} new sources noted"
    if count >= policy.plateau_rounds:
        said = f"{said}, no decision; {noted}"
        return Course(kind="decide", weak=count, why=said, lines=facts.decisions(evidence), have=have, want=want)
    lines = _widen(evidence, policy, have)
    return Course(kind="widen", weak=count, why=f"{said}; {noted}", lines=lines, have=have, want=want)


def _new_sources(evidence: Evidence, begin: Row | None) -> int:
    """Source keys noted first after a row, each counted once.

    Order is that of the history: ``kernelpilot ledger idea`` commits each idea, and a row names the HEAD it was
    written at. An idea that no commit holds yet is the newest; where a row's HEAD is not in the history nothing can
    be shown to come after it, and nothing counts.
    """
    keys = [idea.key for idea in evidence.ideas]
    if begin is None:
        return len(set(keys))
    at = facts.places(evidence)
    here = at.get(begin.at_head)
    if here is None:
        return 0
    held = max((n for commit, n in evidence.git.ideas_held.items() if at.get(commit, here + 1) <= here), default=0)
    return len(set(keys[held:]) - set(keys[:held]))


def _widen(evidence: Evidence, policy: Policy, have: int) -> tuple[str, ...]:
    left, most = policy.research_sources - have, policy.research_hypotheses
    order = "merged changes, then the same bottleneck in other repositories, then open changes, prose last"
    read = (
        f"read code that {SOURCE_IDEAS_PATH} does not list: {order}",
        f"{IDEA}  # note each of them; {left} more to go",
    )
    return (
        *(read if left > 0 else ()),
        f"write at least {most} hypotheses into {DIGEST_PATH}, each with its mechanism and the figure that should move",
        f"kernelpilot attempt {facts.variants(evidence)}/NAME --source KEY --motivation HYPOTHESIS  # try one of them",
    )


def _finish(evidence: Evidence, policy: Policy) -> tuple[str, ...]:
    """What is still to be made, in its order; the inventory is written from all the rest."""
    final = () if FINAL_PATH in evidence.files else (f"{FINAL_PATH} is not there: {FIX}",)
    return (*done(evidence, policy).missing, *final)


def no_decision(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: point gains by round, decision rows, and whether the target is met: the round may not end undecided."""
    found = _course(evidence, policy)
    if found.kind == "decide":
        pivot, go_on, stop = facts.decisions(evidence)
        what = f"plateau: {found.weak} weak rounds in a row and no decision"
        yield LINEAGE_PATH, what, f"{pivot}  # or: {go_on}  # or: {stop}"


RULES: tuple[Rule, ...] = (
    Rule(id="30", title="a plateau is decided", severity="block", phase="always", check=no_decision),
)
