"""The acceptance criteria of every kernel plan, in the contract's and the policy's own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from string import Template

from kernelpilot_helpers.contract import Case, Contract, device, timed
from kernelpilot_helpers.contract.cases import EDGE_PREFIX
from kernelpilot_helpers.plan.model import Criterion
from kernelpilot_helpers.policy import DEVICES, POLICY


def pct(share: float) -> str:
    """A fraction as a percentage.

    >>> pct(0.05)
    '5 %'
    """
    return f"{share * 100:g} %"


def regimes(cases: Sequence[Case]) -> list[str]:
    """Regimes of the timed cases, sorted."""
    return sorted({c.regime for c in cases if timed(c)})


def language(made: Contract) -> str:
    """What the contract says about the implementation language."""
    if made.policy.language == "any":
        return "the implementation system of the baseline, unless a measurement argues for another"
    return made.policy.language


def _source(made: Contract) -> str:
    if made.policy.source == "from_scratch":
        return (
            "The contract asks for a kernel from scratch: baseline code serves comparison only and seeds no candidate."
        )
    return (
        "This contract allows derived work. Should the user ask for a kernel from scratch, baseline code serves "
        "comparison only from then on and seeds no candidate."
    )


def _dispatch(cases: Sequence[Case]) -> str:
    kinds = regimes(cases)
    if len(kinds) == 1:
        return f"W has one regime ({kinds[0]}): the dispatcher is trivial, and that decision is recorded."
    return (
        f"A map over W's regimes ({', '.join(kinds)}) shows which version wins where, and the dispatcher follows it, "
        "with a fallback for shapes outside W."
    )


def _facts(made: Contract, cases: Sequence[Case]) -> dict[str, str]:
    margin = made.objective.noninferiority_pct
    return {
        "language": language(made),
        "licences": ", ".join(made.policy.licences),
        "source": _source(made),
        "task": made.task.name,
        "gpu": made.target.gpu,
        "speedup": f"{made.target.speedup:g}",
        "cases": str(sum(not c.case_id.startswith(EDGE_PREFIX) for c in cases)),
        "timed": str(sum(timed(c) for c in cases)),
        "seeds": str(POLICY.verify_seeds),
        "margin": pct(DEVICES[device(made.target)].noninferiority if margin is None else margin / 100),
        "profile_band": pct(POLICY.profile_band),
        "weak_rounds": str(POLICY.weak_rounds),
        "weak_gain": pct(POLICY.weak_gain),
        "far_off": f"{POLICY.far_off:g}",
        "research_sources": str(POLICY.research_sources),
        "hypotheses": str(POLICY.research_hypotheses),
        "call_s": f"{POLICY.call_s:g}",
        "near_peak": pct(POLICY.near_peak),
        "max_rounds": str(POLICY.max_rounds),
        "dispatch": _dispatch(cases),
    }


@cache
def _blocks() -> tuple[str, ...]:
    # Read with the package, once: text that ships with the code is no input of the function.
    text = (Path(__file__).parent / "criteria.txt").read_text(encoding="utf-8")
    return tuple(block for block in text.split("\n\n") if block.strip())


def criteria(made: Contract, cases: Sequence[Case]) -> tuple[Criterion, ...]:
    """One criterion a topic, numbered from AC-1 in the order of ``TOPICS``; generated edges are not counted."""
    facts = _facts(made, cases)
    return tuple(_criterion(f"AC-{ix}", block, facts) for ix, block in enumerate(_blocks(), start=1))


def _criterion(name: str, block: str, facts: dict[str, str]) -> Criterion:
    head, *lines = block.strip().splitlines()
    words = [line for line in lines if line[:2] not in ("+ ", "- ")]
    return Criterion(
        id=name,
        topic=head.strip("[]"),
        text=Template(" ".join(words)).substitute(facts),
        positive=tuple(Template(line[2:]).substitute(facts) for line in lines if line.startswith("+ ")),
        negative=tuple(Template(line[2:]).substitute(facts) for line in lines if line.startswith("- ")),
    )
