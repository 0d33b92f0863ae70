"""Where the ledger's numbers lead: on, a wider search, a forced decision, or the finish lane. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.audited import Found
from kernelpilot_helpers.gate.done import done, stopped, target_met
from kernelpilot_helpers.gate.final_facts import FINAL_PATH, FIX
from kernelpilot_helpers.gate.model import Course, NotEvaluated, Rule
from kernelpilot_helpers.gate.research import MARK, Study, study
from kernelpilot_helpers.gate.rules_research import unsearched
from kernelpilot_helpers.gate.weak import streak
from kernelpilot_helpers.ledger import LINEAGE_PATH
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
    if not met and not stop and count < policy.plateau_rounds:
        weak, begin = unsearched(evidence, policy)  # a decision ends a plateau, and owes the search all the same
    if met or stop:
        said = f"decided: {stop}" if stop else why
        return Course(kind="finish", weak=count, why=said, lines=_finish(evidence, policy))
    if len(weak) < min(policy.weak_rounds, policy.plateau_rounds):
        return Course(kind="on", weak=count, why=f"{count} weak round{'s' * (count != 1)} in a row at the end")
    said = f"{len(weak)} weak rounds in a row ({', '.join(weak[-SHOWN:])})"
    read = study(evidence, policy, begin)
    have, want, left_out = read.sources, read.want, read.left_out()
    noted = f"{have} of {want} new sources noted" + (f"; {left_out}" if left_out else "")
    if count >= policy.plateau_rounds:
        said = f"{said}, no decision; {noted}"
        return Course(kind="decide", weak=count, why=said, lines=facts.decisions(evidence), have=have, want=want)
    lines = _widen(evidence, read)
    return Course(kind="widen", weak=len(weak), why=f"{said}; {noted}", lines=lines, have=have, want=want)


def _widen(evidence: Evidence, read: Study) -> tuple[str, ...]:
    """The search as commands: what hands out sources comes first while anything is missing, the try is last."""
    order = "merged changes, then the same bottleneck in other repositories, then open changes, prose last"
    left, most = read.missing, read.want_hypotheses
    write = f"write at least {most} hypotheses that differ, each with its mechanism and the figure to reach as a number"
    hand_out = (
        f"{read.hand_out()}  # {order}",
        f"{MARK}  # note each of them; {left} more to go",
        *((f"{write}; {read.missing_hypotheses} more to go",) if read.missing_hypotheses else ()),
    )
    return (
        *(() if read.whole else hand_out),
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
