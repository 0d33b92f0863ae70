"""The task audit: wrong outputs must fail, honest ones pass, and every input matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers.attempt.raw import Died, Mutant
from kernelpilot_helpers.correctness import AuditReport, Correct, audit, judge
from tests.correct_sim import BAD, EXPECT, GOOD, mutant, raw, stats

SOUND = (
    mutant("zeros", "must_fail", BAD),
    mutant("scaled", "must_fail", stats(rms=0.7)),
    mutant("last_row", "must_fail", stats(unwritten=1000)),
    mutant("baseline", "must_pass", GOOD),
    mutant("reversed", "must_pass", GOOD),
    mutant("react:x", "react", BAD),
)


def report(mutants: Sequence[Mutant], **changed: Any) -> AuditReport:
    return audit(raw(mutants=tuple(mutants), **changed), outputs=("out",))


def swapped(name: str, **changed: Any) -> list[Mutant]:
    return [msgspec.structs.replace(m, **changed) if m.name == name else m for m in SOUND]


def test_a_sound_task_passes_with_its_score() -> None:
    got = report([*SOUND, mutant("causal", "must_fail", None, applicable=False, note="no mask")])
    assert (got.refused, got.reasons, got.score) == (False, (), "3/3")
    assert got.not_applicable == ("causal (c0): no mask",)


@pytest.mark.parametrize(
    ("mutants", "reason"),
    [
        (swapped("scaled", outputs={"out": GOOD}), "audit.survivor: scaled (c0)"),
        (swapped("scaled", outputs={}), "audit.survivor: scaled (c0)"),
        (swapped("reversed", outputs={"out": BAD}), "audit.honest_failed: reversed (c0): out:"),
        (swapped("reversed", outputs={}), "audit.honest_failed: reversed (c0)"),
        (swapped("reversed", violations=("rows do not sum to 1",)), "audit.honest_failed: reversed (c0): check:"),
        (swapped("react:x", outputs={"out": stats(rms=0.0, max=0.0)}), "audit.no_reaction: react:x"),
        (swapped("react:x", outputs={"out": stats(rms=0.29, max=0.5)}), "audit.no_reaction: react:x"),
        (swapped("react:x", outputs={}), "audit.no_reaction: react:x"),
        (swapped("baseline", outputs={"out": stats(base_rms=5000.0)}), "audit.baseline_disagrees: out of c0"),
        (swapped("baseline", outputs={"out": stats(nonfinite_equal=False)}), "audit.baseline_disagrees: out of c0"),
        (swapped("baseline", applicable=False), "audit.missing: the baseline's out was not compared on case c0"),
        ([m for m in SOUND if m.kind != "must_fail"], "audit.missing: no wrong output was tried on case c0"),
        ([m for m in SOUND if m.kind != "react"], "audit.missing: no input was changed"),
        ([], "audit.missing"),
    ],
)
def test_an_unsound_task_is_refused_by_name(mutants: list[Mutant], reason: str) -> None:
    """Zeros pass the tolerance of some published tasks; here each such hole has a name."""
    got = report(mutants)
    assert got.refused
    assert any(r.startswith(reason) for r in got.reasons), got.reasons


def test_the_contracts_own_check_kills_a_mutant() -> None:
    got = report(swapped("scaled", outputs={"out": GOOD}, violations=("not sorted",)))
    assert (got.refused, got.score) == (False, "3/3")


def test_an_output_that_no_mutant_fails_is_a_hole() -> None:
    """Breaks if a second output rides on the first: every wrong residual would pass."""
    mutants = [msgspec.structs.replace(m, outputs={**m.outputs, "res": GOOD}) for m in SOUND]
    got = audit(raw(mutants=tuple(mutants)), outputs=("out", "res"))
    assert got.reasons == ("audit.survivor: every wrong res passes",)


def test_an_input_may_be_silent_in_one_case_but_not_in_all() -> None:
    silent = stats(rms=0.0, max=0.0)
    other = [msgspec.structs.replace(m, case_id="c1") for m in SOUND]
    got = report([*swapped("react:x", outputs={"out": silent}), *other])
    assert not got.refused


def test_a_case_that_was_to_be_audited_is_missing() -> None:
    got = audit(raw(mutants=SOUND), outputs=("out",), cases=("c0", "c9"))
    assert "audit.missing: no wrong output was tried on case c9" in got.reasons


def test_an_audit_that_died_is_refused() -> None:
    got = report(SOUND, died=Died(arm="", stage="oracle", log="MemoryError"))
    assert got.reasons == ("audit.died: arm oracle in oracle: MemoryError",)


def test_the_score_stands_beside_every_correct() -> None:
    got = judge(raw(mutants=SOUND[:3]), expectation=EXPECT)
    assert isinstance(got, Correct)
    assert got.mutation_score == "3/3"
