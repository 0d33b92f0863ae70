"""K, R and W as records: what ``contract.toml`` and ``workloads/cases.jsonl`` say, after strict parsing.

Fields of the full schema that this version cannot run are not here: the parser refuses them by name.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = "kernelpilot.contract"
VERSION = 1
CASES_FORMAT = "kernelpilot.cases"
CASES_VERSION = 1


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """K's name. ``name`` is an identifier: it is a folder below ``src/``."""

    name: str
    op: Literal["gemm", "attention", "norm", "act", "moe", "quant", "sampling", "scan", "comm", "grad", "other"]
    api: str = ""
    summary: str = ""


Figure = Literal["pipelined", "isolated", "chained", "host", "sustained"]


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where it must be fast, and by how much. ``gpu = "cpu"`` selects the embedded default device."""

    gpu: str
    arch: str = ""
    """``sm_90`` or ``sm_90a``; empty: whatever the machine has."""
    count: int = 1
    memory_gib: float = 4.0
    """GPU only: what the tensors of all arms together may take."""
    speedup: float = 1.10
    over: Literal["baseline"] = "baseline"


class Axis(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One size: a range, a set of values, or an expression of other axes. Exactly one field is given."""

    var: tuple[int, int] | None = None
    values: tuple[int, ...] | None = None
    expr: str | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a candidate is called; ``framework`` "any" means tensors of whichever the task's Python has."""

    style: Literal["dps"] = "dps"
    stages: tuple[Literal["prepare", "plan", "entry"], ...] = ("entry",)
    timed: tuple[Literal["entry"], ...] = ("entry",)
    framework: Literal["any", "numpy", "torch"] = "any"
    graph: Literal["must", "may", "never"] | None = None
    """GPU only: capture into a CUDA graph; None means ``may`` there."""


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """R: evaluated in float64 by the oracle; ``rounding`` lists legal rounding points in words."""

    fn: str = "reference.py:ref"
    compute: Literal["fp64"] = "fp64"
    check: str = ""
    rounding: tuple[str, ...] = ()


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must be beaten: a function in ``baseline/``."""

    id: str
    fn: str = "baseline/candidate.py:entry"
    requires: tuple[str, ...] = ()


class NumericsSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"class_": "class"}):
    """Error limits; absent ones are the policy's, present ones may only be tighter."""

    class_: Literal["exact_int32", "fp32_accumulate", "lowp_partials", "lowp_inputs"] = "fp32_accumulate"
    rms_ratio: float = 1.5
    tile_ratio: float = 3.0
    max_ratio: float = 2.0
    bias_sigma: float = 4.0
    deterministic: bool = True


class Timing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which figure decides per regime. On the CPU only ``isolated`` and ``pipelined`` exist."""

    decide: dict[str, Literal["isolated", "pipelined", "chained"]] = {}
    report: tuple[Figure, ...] = ("pipelined",)


class Objective(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How cases weigh: equally in a geomean, or by their ``calls`` in the total time."""

    metric: Literal["geomean", "total_time"] = "geomean"
    weights: Literal["", "case.calls"] = ""
    noninferiority_pct: float | None = None
    """None: the device policy's margin."""


class SourcePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a candidate may be made of."""

    language: str = "any"
    source: Literal["derived", "from_scratch"] = "derived"
    library_calls: bool = False
    licences: tuple[str, ...] = ("Apache-2.0", "BSD-3-Clause", "MIT")


class Framework(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checkout of somebody's project that the baseline comes from. Where it lies is a fact of each machine."""

    name: str
    in_place: bool = False
    """Whether work may edit it; else it stays as it was when the contract was locked."""
    sources: tuple[str, ...] = ()
    """Files and folders of it that hold the baseline's code, relative to its root."""


class Tensor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One argument of ``entry``. Shapes and strides are axis names, numbers or expressions, in elements."""

    role: Literal["in", "out", "inout", "static", "scalar"]
    dtype: str
    shape: tuple[str | int, ...] = ()
    stride: tuple[str | int, ...] = ()
    offset: str | int = 0
    align: int = 64
    optional: bool = False
    gen: str = ""
    """normal(mu,sigma), uniform(a,b), integers(lo,hi); for a scalar ``const(v)`` or ``flag(name)``."""
    residency: Literal["hot", "cold"] | None = None
    """GPU only: whether the second-level cache holds it when a timed call begins; None means ``cold`` there."""


class Contract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole contract. Tensor order is call order and, for outputs, the order of the reference's results."""

    format: Literal["kernelpilot.contract"] = "kernelpilot.contract"
    version: int = VERSION
    task: Task
    target: Target
    axes: dict[str, Axis]
    constraints: tuple[str, ...] = ()
    call: Call = Call()
    reference: Reference = Reference()
    baseline: tuple[Baseline, ...]
    numerics: NumericsSpec = NumericsSpec()
    timing: Timing = Timing()
    objective: Objective = Objective()
    policy: SourcePolicy = SourcePolicy()
    framework: tuple[Framework, ...] = ()
    tensors: dict[str, Tensor]


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a case comes from."""

    kind: Literal["explicit", "model", "trace"] = "explicit"
    ref: str = ""
    sampling: str = ""


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of W. ``calls`` = launches per model step, so that a weighted total is microseconds saved."""

    case_id: str
    axes: dict[str, int]
    flags: dict[str, Any] = {}
    strides: dict[str, tuple[int, ...]] = {}
    offsets: dict[str, int] = {}
    """Elements before a tensor's first one, in place of the contract's."""
    gen: dict[str, str] = {}
    regime: str = "default"
    decide: Literal["", "isolated", "pipelined", "chained"] = ""
    calls: int = 1
    required: bool = True
    edge: bool = False
    held_out: bool = False
    padded_from: int | None = None
    source: Source = Source()


class Checkout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A framework's checkout as it was found."""

    head: str
    """Commit id."""
    status: str
    """sha256 over what ``git status`` lists, untracked files included, and over the bytes of each of those files."""
    edited: int = 0
    """How many files that list names; 0: as committed."""
    place: str = ""
    """sha256 of where it lay on the machine: tells that another copy is looked at, and not where."""


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``artifacts/contract.lock.json``: what may not change without ``kernelpilot lock --amend --why``."""

    format: Literal["kernelpilot.lock"] = "kernelpilot.lock"
    version: int = 1
    epoch: int
    """1 for the first lock; results of different epochs are not comparable."""
    files: dict[str, str]
    """Repo-relative path -> sha256: contract.toml, reference, cases, every file of baseline/, tests, benchmarks."""
    locked_at: str
    why: str
    previous: str = ""
    """sha256 of the lock file that this one amends."""
    mutation_score: str
    """killed/applicable of the task audit."""
    survivors: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    frameworks: dict[str, Checkout] = {}
    """Name of a framework of the contract -> its checkout when this was locked."""
