"""Rules whose inputs do not exist yet: they are listed as not evaluated, which is not a pass of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate.audited import Found
from kernelpilot_helpers.gate.course import course
from kernelpilot_helpers.gate.model import NotEvaluated, Rule, Severity
from kernelpilot_helpers.policy import Policy

LATER: tuple[tuple[str, str, Severity, str], ...] = (
    ("20", "do not reread", "repair", "rereading is refused when an idea is noted; readings are not recorded yet"),
)


def _never(why: str) -> Callable[[Evidence, Policy], Iterator[Found]]:
    def check(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001 - every check has this form
        raise NotEvaluated(why)
        yield  # pragma: no cover - a generator, as every check

    return check


def expansion(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: the sources that the corpus listed, which nothing records yet; those noted by hand are counted."""
    why, found = "the corpus does not record which sources it listed yet", course(evidence, policy)
    raise NotEvaluated(f"{why}; {found.have} of {found.want} are noted by hand" if found.want else why)
    yield  # pragma: no cover - a generator, as every check


RULES: tuple[Rule, ...] = (
    *(
        Rule(id=number, title=title, severity=severity, phase="always", check=_never(why))
        for number, title, severity, why in LATER
    ),
    Rule(id="19", title="research expansion", severity="block", phase="always", check=expansion),
)
