"""Faults of the referee's audit and of the collector, each under the rule that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kernelpilot_helpers.contract import CASES_PATH, CONTRACT_PATH, LOCK_PATH
from kernelpilot_helpers.contract.lock import FOLDERS
from kernelpilot_helpers.contract.model import Contract, Lock
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.ledger import LINEAGE_PATH, OPTIMIZATIONS_PATH
from kernelpilot_helpers.ledger.rows import LABEL
from kernelpilot_helpers.policy import Policy
from kernelpilot_helpers.records import Fault

Found = tuple[str, str, str]


def rule_of(fault: Fault, evidence: Evidence) -> str:
    """Number of the rule that a fault belongs to, by its place.

    5 contract and W, 6 what the lock covers, 2 git itself, 12 lineage, 11 optimization ledger, 22 a verdict that its
    runs do not bear out, 25 the dispatcher's files, 10 all other evidence.
    """
    path = fault.where.split(": ")[0].rstrip("0123456789:") if ":" in fault.where else fault.where
    table: tuple[tuple[str, bool], ...] = (
        ("2", path.startswith(".git") and path != ".gitignore"),
        ("12", path.startswith(LINEAGE_PATH)),
        ("11", path.startswith(OPTIMIZATIONS_PATH)),
        ("6", path == LOCK_PATH or path in _locked(evidence) or path.startswith(FOLDERS)),
        ("5", path in (CONTRACT_PATH, CASES_PATH) or path.startswith(CONTRACT_PATH)),
        ("22", LABEL.match(path) is not None),
        ("25", path.startswith("dispatch")),
    )
    return next((number for number, here in table if here), "10")


def _locked(evidence: Evidence) -> frozenset[str]:
    if isinstance(evidence.lock, Lock):
        return frozenset(evidence.lock.files)
    if isinstance(evidence.contract, Contract):
        return frozenset({evidence.contract.reference.fn.partition(":")[0]})
    return frozenset()


def under(number: str) -> Callable[[Evidence, Policy], Iterator[Found]]:
    """The check that hands out the faults of one rule."""

    def check(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001 - every check has this form
        for fault in (*evidence.faults, *evidence.audit):
            if rule_of(fault, evidence) == number:
                yield fault.where, fault.what, fault.fix

    return check
