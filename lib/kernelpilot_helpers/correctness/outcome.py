"""The three answers about correctness, what they cite, and what must have been seen for any of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal, TypeAlias

import msgspec

from kernelpilot_helpers.attempt.job import Job, JobCase

from .limits import Shape

Blame = Literal["candidate", "incumbent", "harness"]


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault: ``code`` is a stable dotted name such as ``wrong.tolerance``, ``text`` says it to a person."""

    code: str
    text: str
    case_id: str = ""
    output: str = ""
    arm: str = ""


class Worst(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Worst error of one output of one case over all its checks; None where no finite figure exists."""

    case_id: str
    output: str
    rms_ratio: float | None
    """rms over max(the baseline's rms, 0.29 ulp); 1.0 is as good as the baseline."""
    group_ratio: float | None
    """Worst row, column or tile, in the same unit."""
    max_ulp: float | None
    bias_ulp: float | None


class Correct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag=True):
    """Every case, output and seed asked for was compared, and nothing failed."""

    worst: tuple[Worst, ...]
    checks: int
    mutation_score: str = ""
    """``killed/applicable`` of the task audit where this job ran one, else empty."""
    notes: tuple[str, ...] = ()


class Wrong(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag=True):
    """The candidate ran and its answer, or the way it got it, is not acceptable. ``reason`` is ``code: text``."""

    reason: str
    findings: tuple[Finding, ...]


class Broken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag=True):
    """No answer to judge. Only ``blame == "candidate"`` is a verdict on the candidate."""

    stage: str
    reason: str
    blame: Blame
    findings: tuple[Finding, ...] = ()
    log: str = ""


Outcome: TypeAlias = Correct | Wrong | Broken


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the job asked for; a part of it that is absent from the raw record is never a pass."""

    cases: tuple[str, ...]
    outputs: tuple[str, ...]
    seeds: int
    """Seeds per case of the verify phase; 0 when this job does not verify."""
    library_calls: bool = False
    timed_cases: tuple[str, ...] = ()
    """Cases whose timed blocks must have been rechecked; empty when this job does not time."""
    edge_cases: tuple[str, ...] = ()
    shapes: dict[str, dict[str, Shape]] = {}
    """case id -> output -> (rows, columns), all leading axes being rows."""
    axes: dict[str, dict[str, int]] = {}
    """case id -> axis name -> size, to name a place by its axis."""
    gpu: bool = False
    """Each verified case must have been replayed from a graph and called late, each timed one has an inventory."""
    graph: bool = True
    """GPU: False where the contract says that no call is captured."""
    sanitized: bool = False
    """GPU: this job ran the sanitizer."""

    def outputs_of(self, case_id: str) -> tuple[str, ...]:
        """Outputs that this case has (an optional output is absent from some cases)."""
        return tuple(self.shapes[case_id]) if case_id in self.shapes else self.outputs

    def shape(self, case_id: str, output: str) -> Shape | None:
        """(rows, columns) of an output, or None where the caller did not say."""
        return self.shapes.get(case_id, {}).get(output)


def matrix(shape: tuple[int, ...]) -> Shape:
    """The (rows, columns) view of a tensor shape: the last axis is the columns.

    >>> matrix((2, 3, 5)), matrix((7,)), matrix(())
    ((6, 5), (1, 7), (1, 1))
    """
    return (prod(shape[:-1]), shape[-1]) if shape else (1, 1)


def _outputs(case: JobCase) -> Mapping[str, Shape]:
    return {t.name: matrix(t.shape) for t in case.tensors if t.role in ("out", "inout")}


def expect(job: Job) -> Expectation:
    """What a raw record of ``job`` must hold, read off the job itself."""
    shapes = {c.case_id: dict(_outputs(c)) for c in job.cases}
    names = tuple(dict.fromkeys(name for outs in shapes.values() for name in outs))
    verifies = "verify" in job.phases and job.verify is not None
    return Expectation(
        cases=tuple(c.case_id for c in job.cases),
        outputs=names,
        seeds=job.verify.seeds if verifies and job.verify else 0,
        library_calls=job.library_calls,
        timed_cases=tuple(c.case_id for c in job.cases if c.timed) if "time" in job.phases else (),
        edge_cases=tuple(c.case_id for c in job.cases if c.edge or c.held_out),
        shapes=shapes,
        axes={c.case_id: dict(c.axes) for c in job.cases},
        gpu=job.device == "gpu",
        graph=job.graph != "never",
        sanitized="sanitize" in job.phases,
    )
