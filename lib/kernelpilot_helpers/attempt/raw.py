"""``raw.json``: what the runtime saw. Ticks, error statistics and events; never a verdict or a tolerance.

Errors are in *ulp*: the spacing of the output's dtype at ``max(|ref|, |ref(|inputs|)|)``, element by element, so
that cancellation does not turn honest rounding into a large relative error. Integer outputs use the unit 1.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = "kernelpilot.raw"
VERSION = 1


class Artifact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One built library. ``normal_sha256`` is the file's hash with the embedded build id blanked."""

    path: str
    sha256: str
    normal_sha256: str
    build_id: str
    command: tuple[str, ...]
    compiler: str


class Build(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What building and loading one arm gave. ``binary_id`` equal in two arms means the same program."""

    arm: str
    build_key: str
    ok: bool
    binary_id: str
    """sha256 over the artefacts' normal hashes and the comment-free code of every Python file."""
    artifacts: tuple[Artifact, ...] = ()
    loaded: tuple[tuple[str, str], ...] = ()
    """(path, sha256) of each library the worker really mapped from the build directory."""
    build_id_ok: bool = True
    """The id read back from every loaded library equals the build key."""
    seconds: float
    log: str = ""


class Stats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Error of one output on one call, in ulp; the baseline's own error on the same inputs beside it."""

    n: int
    rms: float
    max: float
    bias: float
    """Signed mean."""
    bias_se: float
    """Standard error of the mean of the row means (rows are the independent units)."""
    base_rms: float
    base_max: float
    base_bias: float
    row_ratio: float
    """Worst row's rms over max(baseline's row, baseline's whole, 0.29)."""
    row_ix: int
    col_ratio: float
    col_ix: int
    tile_ratio: float
    tile_ix: tuple[int, int]
    nonfinite_equal: bool
    unwritten: int
    """Elements that still hold the poison the arena was filled with."""
    exact: bool
    """Integer or boolean output: the unit is 1 and nothing may differ."""


class Where(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which elements are bad: the output seen as a matrix (all leading axes are rows)."""

    rows_total: int
    cols_total: int
    bad: int
    bad_rows: tuple[tuple[int, int], ...]
    """Up to 8 half-open runs of rows that hold a bad element."""
    bad_cols: tuple[tuple[int, int], ...]
    n_bad_rows: int
    n_bad_cols: int
    sample: tuple[tuple[int, int, float, float], ...] = ()
    """(row, column, got, want); a non-finite value is written as 1e308 with its sign."""


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One output compared with the reference on one call."""

    arm: str
    case_id: str
    seed_ix: int
    regime: str
    """normal, small, large, heavy_tail, sparse, or gen (the contract's own generator)."""
    probe: str
    """call, repeat, element, bitwise, timed."""
    call_ix: int
    """Which call of this process on this case, from 0."""
    output: str
    stats: Stats | None
    """None where the outputs could not be compared; ``note`` says why."""
    where: Where | None = None
    note: str = ""
    pair: int | None = None


class Mutant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One deliberately wrong (or legally different) output judged in place of a candidate's."""

    name: str
    kind: Literal["must_fail", "must_pass", "react"]
    case_id: str
    applicable: bool
    note: str = ""
    outputs: dict[str, Stats] = {}
    violations: tuple[str, ...] = ()
    """What the contract's own ``reference.check`` said."""


class Samples(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All timed blocks of one (pair, case, arm): nanoseconds a block by the worker's and the parent's clock."""

    pair: int
    first_arm: str
    case_id: str
    arm: str
    calls: int
    ns: tuple[int, ...]
    wall_ns: tuple[int, ...]
    cpu_ns: tuple[int, ...] = ()
    """Processor time the kernel charged the worker from each block's command to the next command; may be absent."""


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something seen around a call: ``kind`` is a reason code such as ``cheat.thread`` or ``memory.redzone``."""

    arm: str
    kind: str
    case_id: str = ""
    detail: str = ""
    pair: int | None = None


class Died(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An arm that could not go on. ``stage``: build, load, prepare, call, protocol, oracle."""

    arm: str
    stage: str
    case_id: str = ""
    signal: str | None = None
    timeout: bool = False
    exit: int | None = None
    log: str = ""


class Raw(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole answer."""

    format: Literal["kernelpilot.raw"] = "kernelpilot.raw"
    version: int = VERSION
    job_id: str
    job_sha256: str
    framework: str
    env: dict[str, Any]
    """python, framework version, machine, cpu, cores, boot_id, compiler, clock_ns, started and seconds."""
    builds: tuple[Build, ...] = ()
    checks: tuple[Check, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    samples: tuple[Samples, ...] = ()
    events: tuple[Event, ...] = ()
    died: Died | None = None
