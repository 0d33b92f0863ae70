"""Whether the task's end is reached, and if not, everything that is still to be made with its command."""

from __future__ import annotations

from kernelpilot_helpers import autotune
from kernelpilot_helpers.autotune import MAP_PATH
from kernelpilot_helpers.contract.model import Lock
from kernelpilot_helpers.dispatcher import TABLE_PATH
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.model import Done, NotEvaluated
from kernelpilot_helpers.gate.weak import before, decides
from kernelpilot_helpers.policy import POLICY, Policy


def target_met(evidence: Evidence) -> tuple[bool, str]:
    """Whether the selected version of this epoch has a confirmed direct figure at the target, and the words for it.

    Raises NotEvaluated without contract, lock or baseline row.
    """
    best, target = facts.best_of(evidence), facts.contract_of(evidence).target.speedup
    figure = best.vs_baseline
    if best.kind == "baseline":
        return False, f"no version was shown to be faster than the baseline (target {target:g}x)"
    if figure is None:
        return False, f"{best.version} has no direct figure against the baseline (target {target:g}x)"
    words = f"{best.version} is {figure.speedup:.3g}x the baseline"
    if wrong := facts.found_wrong(evidence, best):
        return False, f"{words}, and does not hold: {wrong}"
    if best.confirmed_by is None or figure.ci_low <= 1:
        return False, f"{words}, not confirmed (target {target:g}x)"
    if figure.speedup < target:
        return False, f"{words}, short of the target {target:g}x"
    return True, f"{words}, confirmed by {best.confirmed_by} (target {target:g}x)"


def stopped(evidence: Evidence, policy: Policy = POLICY) -> str:
    """The reason of the stop decision that stands: the newest decision of this epoch; empty without one.

    It counts once honest attempts gained little: ``policy.weak_rounds`` weak rounds in a row stand before it.
    """
    reason, counts, _ = _newest_stop(evidence, policy)
    return reason if counts else ""


def early_stop(evidence: Evidence, policy: Policy = POLICY) -> str:
    """Why the newest decision, a stop, does not count; empty when it does, or is none."""
    reason, counts, weak = _newest_stop(evidence, policy)
    if not reason or counts:
        return ""
    have = f"{weak} of {policy.weak_rounds} weak rounds in a row"
    return f"the decision {reason!r} does not count: {have} stand before it"


def _newest_stop(evidence: Evidence, policy: Policy) -> tuple[str, bool, int]:
    """(reason, whether it counts, weak rounds before it) of the newest decision, when that is a stop."""
    rows = facts.epoch_rows(evidence)
    last = max((ix for ix, row in enumerate(rows) if facts.word(row)), default=-1)
    if last < 0 or facts.word(rows[last]) != facts.STOP:
        return "", False, 0
    return rows[last].reason, decides(evidence, policy, rows, last), before(evidence, policy, rows[:last])


def may_stop(evidence: Evidence, policy: Policy = POLICY) -> bool:
    """Whether a stop decision written now would count."""
    return before(evidence, policy, facts.epoch_rows(evidence)) >= policy.weak_rounds


def done(evidence: Evidence, policy: Policy = POLICY) -> Done:
    """Target met or a stop decision, and then the finish lane: a performance map and a dispatcher that hold."""
    try:
        met, why = target_met(evidence)
        stop, early = stopped(evidence, policy), early_stop(evidence, policy)
    except NotEvaluated as wall:
        return Done(met=False, why=str(wall), missing=("a locked contract: kernelpilot next",))
    missing: list[str] = []
    if not met and not stop:
        missing.append(_no_target(evidence, policy, early))
    missing += lane(evidence)
    reason = why if met or not (stop or early) else f"{why}; {early or f'decided: {stop}'}"
    return Done(met=not missing, why=reason, missing=tuple(missing))


def _no_target(evidence: Evidence, policy: Policy, early: str) -> str:
    if not may_stop(evidence, policy):
        lacks = f"the target, or {policy.weak_rounds} weak rounds in a row before the stop" if early else "the target"
        return f"{lacks}: {facts.way_on(evidence, may_stop=False)}"
    return f"the target: {facts.ATTEMPT.format(name='NAME')}  # or a decision: {facts.decide(evidence, facts.STOP)}"


def lane(evidence: Evidence) -> list[str]:
    """What the finish lane lacks; nothing when no version of this epoch is IMPROVED: then only a stop ends the task."""
    tuning = evidence.tuning
    out: list[str] = []
    if isinstance(evidence.lock, Lock) and not autotune.selected(evidence.rows, evidence.lock.epoch):
        return out  # nothing was ever faster: there is no choice to make between versions
    if tuning.map is None or tuning.map_faults:
        what = f"does not hold ({tuning.map_faults[0].what})" if tuning.map_faults else "is not there"
        out.append(f"{MAP_PATH} {what}: kernelpilot tune")
    if tuning.table is None or tuning.dispatch_faults:
        what = f"does not hold ({tuning.dispatch_faults[0].what})" if tuning.dispatch_faults else "is not there"
        out.append(f"{TABLE_PATH} {what}: kernelpilot dispatch")
    return out
