"""The rule table over one evidence: every finding at once, in the order in which one mends them. Pure."""

from __future__ import annotations

from kernelpilot_helpers.evidence.model import MISSING, Evidence
from kernelpilot_helpers.gate import (
    course,
    rules_lineage,
    rules_loop,
    rules_measure,
    rules_profile,
    rules_repo,
    rules_research,
    rules_source,
)
from kernelpilot_helpers.gate.done import done
from kernelpilot_helpers.gate.final_rules import FINAL_RULES
from kernelpilot_helpers.gate.model import Course, Done, Finding, NotEvaluated, Report, Rule
from kernelpilot_helpers.gate.tuning_rules import TUNING_RULES
from kernelpilot_helpers.policy import Policy
from kernelpilot_helpers.records import Fault

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *rules_repo.RULES,
            *rules_source.RULES,
            *rules_lineage.RULES,
            *rules_measure.RULES,
            *rules_profile.RULES,
            *rules_loop.RULES,
            *course.RULES,
            *rules_research.RULES,
            *TUNING_RULES,
            *FINAL_RULES,
        ),
        key=lambda rule: int(rule.id),
    )
)
ORDER = {"block": 0, "repair": 1, "trend": 2}
BUG = "kernelpilot gate --json  # attach it to a report: this is a bug of ours"


def decide(evidence: Evidence, policy: Policy, *, final: bool) -> Report:
    """Every rule over the evidence; ``final`` adds those that only hold at the end. Pass: no block and no repair."""
    only = _first_things(evidence)
    findings: list[Finding] = []
    missing: list[str] = []
    for rule in RULES:
        if rule.phase == "final" and not final:
            continue
        if only and rule.id != only[0]:
            missing.append(f"{rule.id}: {only[1]}")
            continue
        try:
            for where, what, fix in rule.check(evidence, policy):  # kept one by one: a rule may find, then miss input
                findings.append(Finding(rule=rule.id, severity=rule.severity, where=where, what=what, fix=fix))
        except NotEvaluated as why:
            missing.append(f"{rule.id}: {why}")
        except Exception as error:  # noqa: BLE001 - a rule that fails is a finding, never a silence
            what = f"this rule could not be checked: {type(error).__name__}: {error}"
            findings.append(Finding(rule=rule.id, severity="block", where=rule.title, what=what, fix=BUG))
    ordered = sorted(dict.fromkeys(findings), key=lambda f: (ORDER[f.severity], int(f.rule)))
    return Report(
        passed=all(f.severity == "trend" for f in ordered),
        done=done(evidence, policy),
        findings=tuple(ordered),
        not_evaluated=tuple(dict.fromkeys(missing)),
        course=course.course(evidence, policy),
    )


def _first_things(evidence: Evidence) -> tuple[str, str] | None:
    """(the one rule to check, why no other) while there is nothing yet that the others could be about."""
    held = any("contract.toml" in commit.paths for commit in evidence.git.commits)
    if isinstance(evidence.contract, Fault) and evidence.contract.what == MISSING and not held:
        return "5", "there is no contract"
    if isinstance(evidence.lock, Fault) and evidence.lock.what == MISSING and not rules_repo.was_locked(evidence):
        return "5", "the contract is not locked"
    return None


def refused(where: str, what: str, fix: str) -> Report:
    """The report of a gate that met a wall before it had evidence: one block of rule 0, and nothing evaluated."""
    wall = Finding(rule="0", severity="block", where=where, what=what, fix=fix)
    why = "the evidence could not be collected"
    return Report(
        passed=False,
        done=Done(met=False, why=why),
        findings=(wall,),
        not_evaluated=tuple(dict.fromkeys(f"{rule.id}: {why}" for rule in RULES)),
        course=Course(kind="on", weak=0, why=why),
    )
