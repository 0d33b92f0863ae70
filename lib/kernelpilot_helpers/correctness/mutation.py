"""The task audit: do the limits catch wrong outputs, spare honest ones, and does every input matter?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kernelpilot_helpers.attempt.raw import Mutant, Raw
from kernelpilot_helpers.policy import NUMERICS, Numerics

from . import traces
from .limits import Shape, faults

BASELINE = "baseline"


class AuditReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the audit found. ``score`` is ``killed/applicable`` over must-fail mutants; one per (name, case)."""

    score: str
    killed: int
    applicable: int
    survivors: tuple[str, ...]
    must_pass_failures: tuple[str, ...]
    react_failures: tuple[str, ...]
    not_applicable: tuple[str, ...]
    refused: bool
    reasons: tuple[str, ...]
    """``code: text``, empty iff not refused."""


def _label(mutant: Mutant) -> str:
    return f"{mutant.name} ({mutant.case_id})"


def _failing(mutant: Mutant, numerics: Numerics, shapes: Mapping[str, Mapping[str, Shape]]) -> dict[str, str]:
    """Output -> first fault. The contract's own check counts under the name ``check``."""
    known = shapes.get(mutant.case_id, {})
    found = {out: faults(stats, numerics, shape=known.get(out)) for out, stats in mutant.outputs.items()}
    named = {out: broken[0].text for out, broken in found.items() if broken}
    return {**named, "check": mutant.violations[0]} if mutant.violations else named


def _kill_table(raw: Raw, numerics: Numerics, shapes: Mapping[str, Mapping[str, Shape]]) -> dict[int, dict[str, str]]:
    return {ix: _failing(m, numerics, shapes) for ix, m in enumerate(raw.mutants) if m.applicable}


def score(raw: Raw, *, numerics: Numerics = NUMERICS, shapes: Mapping[str, Mapping[str, Shape]] | None = None) -> str:
    """``killed/applicable`` of the must-fail mutants in this record, empty where there are none."""
    tried = [m for m in raw.mutants if m.applicable and m.kind == "must_fail"]
    failing = [bool(_failing(m, numerics, shapes or {})) for m in tried]
    return f"{sum(failing)}/{len(failing)}" if failing else ""


def _baseline_faults(honest: Sequence[Mutant], numerics: Numerics) -> Iterator[str]:
    for mutant in honest:
        for out, stats in mutant.outputs.items():
            if mutant.name == BASELINE and not stats.nonfinite_equal:
                yield f"audit.baseline_disagrees: {out} of {mutant.case_id}: NaN or infinity differ"
            if not stats.exact and not stats.base_rms <= numerics.baseline_rms_max_ulp:
                text = f"rms {stats.base_rms:.3g} ulp from the reference (limit {numerics.baseline_rms_max_ulp:g})"
                yield f"audit.baseline_disagrees: {out} of {mutant.case_id}: {text}"


def _gaps(raw: Raw, outputs: Sequence[str], cases: Sequence[str]) -> Iterator[str]:
    if raw.died is not None:
        yield f"audit.died: arm {raw.died.arm or 'oracle'} in {raw.died.stage}: {traces.last_words(raw.died.log)}"
        return  # what is missing after a death is missing because of it
    usable = [m for m in raw.mutants if m.applicable]
    for case in cases or sorted({m.case_id for m in raw.mutants}) or ("",):
        here = [m for m in usable if m.case_id == case]
        if not any(m.kind == "must_fail" for m in here):
            yield f"audit.missing: no wrong output was tried on case {case or '(none)'}"
        compared = {out for m in here if m.kind == "must_pass" and m.name == BASELINE for out in m.outputs}
        if lost := [out for out in outputs if out not in compared]:
            yield f"audit.missing: the baseline's {', '.join(lost)} was not compared on case {case or '(none)'}"
    if not any(m.kind == "react" for m in usable):
        yield "audit.missing: no input was changed to see whether the output follows"


def _deaf(mutants: Sequence[tuple[Mutant, Mapping[str, str]]]) -> list[str]:
    """Inputs whose change stays within the limits in every case: whoever ignores them would be called correct."""
    heard: defaultdict[str, bool] = defaultdict(bool)
    for mutant, failing in mutants:
        heard[mutant.name] |= bool(failing)
    return [name for name, ok in heard.items() if not ok]


def _first(failing: Mapping[str, str]) -> str:
    return next((f"{out}: {text}" for out, text in failing.items()), "nothing was compared")


def audit(
    raw: Raw,
    *,
    numerics: Numerics = NUMERICS,
    outputs: Sequence[str],
    cases: Sequence[str] = (),
    shapes: Mapping[str, Mapping[str, Shape]] | None = None,
) -> AuditReport:
    """Judge the mutants of one raw record.

    ``outputs`` must each be compared for the baseline and failed by a mutant; ``cases`` (when empty, all that carry
    mutants) must each have been tried; ``shapes`` as in ``Expectation``.
    """
    table = _kill_table(raw, numerics, shapes or {})
    usable = {kind: [ix for ix in table if raw.mutants[ix].kind == kind] for kind in ("must_fail", "must_pass")}
    survivors = [_label(raw.mutants[ix]) for ix in usable["must_fail"] if not table[ix]]
    caught = {out for ix in usable["must_fail"] for out in table[ix]}
    unseen = [out for out in outputs if usable["must_fail"] and out not in caught and "check" not in caught]
    honest = [(raw.mutants[ix], table[ix]) for ix in usable["must_pass"]]
    rejected = [(m, failing) for m, failing in honest if failing or not m.outputs]
    deaf = _deaf([(raw.mutants[ix], table[ix]) for ix in table if raw.mutants[ix].kind == "react"])
    reasons = (
        *_gaps(raw, outputs, cases),
        *dict.fromkeys(_baseline_faults([m for m, _ in honest], numerics)),
        *(f"audit.survivor: {name}" for name in survivors),
        *(f"audit.survivor: every wrong {out} passes" for out in unseen),
        *(f"audit.honest_failed: {_label(m)}: {_first(failing)}" for m, failing in rejected),
        *(f"audit.no_reaction: {name}" for name in deaf),
    )
    killed = len(usable["must_fail"]) - len(survivors)
    return AuditReport(
        score=f"{killed}/{len(usable['must_fail'])}",
        killed=killed,
        applicable=len(usable["must_fail"]),
        survivors=tuple(survivors),
        must_pass_failures=tuple(_label(m) for m, _ in rejected),
        react_failures=tuple(deaf),
        not_applicable=tuple(f"{_label(m)}: {m.note}" for m in raw.mutants if not m.applicable),
        refused=bool(reasons),
        reasons=reasons,
    )
