"""``raw.json``: what the runtime saw. Ticks, error statistics and events; never a verdict or a tolerance.

Errors are in *ulp*: the spacing of the output's dtype at ``max(|ref|, |ref(|inputs|)|)``, element by element, so
that cancellation does not turn honest rounding into a large relative error. Integer outputs use the unit 1.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = "kernelpilot.raw"
VERSION = 1


class KernelUsage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Static resources of one GPU kernel, from ptxas or the cubin; bytes, and registers a thread."""

    name: str
    registers: int
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    """Static shared memory."""
    stack: int = 0
    sass_sha256: str = ""
    """Of the kernel's machine code alone; equal means the same instructions."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One built library. ``normal_sha256`` is the file's hash with the embedded build id blanked."""

    path: str
    sha256: str
    normal_sha256: str
    build_id: str
    command: tuple[str, ...]
    compiler: str
    usage: tuple[KernelUsage, ...] = ()
    """GPU only: what ptxas said of each kernel."""


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
    """call, repeat, element, bitwise, timed; GPU: graph (captured on other content), late (producer on the stream)."""
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
    figure: str = "pipelined"
    method: Literal["", "graph", "events"] = ""
    """GPU only: replay of a captured graph, or event pairs around calls that could not be captured."""
    mhz: tuple[int, ...] = ()
    """GPU only: SM clock read right after each block, so that times can be held against cycles."""
    cpu_ns: tuple[int, ...] = ()
    """Processor time the kernel charged the worker from each block's command to the next command; may be absent."""
    groups: int = 0
    """GPU only: timed spans a block; the cache is flushed before each."""
    stamp_ns: tuple[int, ...] = ()
    """GPU only: what ``ns`` would be by stamps of the GPU's own timer around the spans, which the oracle reads: more,
    by the gaps between a stamp and a span's mark. Absent where stamps were missing."""
    flush_ns: tuple[int, ...] = ()
    """GPU only, a block: from the stamps before the flushes to those before the spans."""


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something seen around a call: ``kind`` is a reason code such as ``cheat.thread`` or ``memory.redzone``."""

    arm: str
    kind: str
    case_id: str = ""
    detail: str = ""
    pair: int | None = None


class KernelUse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kernel, copy or fill that ran during one watched call (profiler's activity records)."""

    arm: str
    case_id: str
    name: str
    count: int
    ns: int
    """Summed over ``count``; 0 where the name was read off the captured graph."""
    ours: bool
    """Its code lies in an artefact that this arm built."""


class FigureTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reported figure of one (arm, case): microseconds a call, beside what decides."""

    arm: str
    case_id: str
    figure: str
    """pipelined, isolated, chained, host, sustained, span (profiler's first start to last end), floor (an empty
    kernel of the same launch shape), touch (a kernel that only moves the same bytes), prepare, plan."""
    us: float
    joules: float | None = None
    """``sustained`` only, a call."""
    note: str = ""


class Residency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a case's tensors were when timed calls began: what was asked for and what was reached."""

    case_id: str
    tensor: str
    asked: str
    reached: str
    """hot, cold or partial."""
    how: str
    """In words: flushed before the group, touched after the flush, too large for the cache, ..."""


class GpuLook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Clocks, temperature and power over one stretch of a job, read through NVML and never changed."""

    phase: str
    pair: int | None = None
    sm_mhz: tuple[int, int, int]
    """Least, median, most."""
    mem_mhz: int
    temp_c: tuple[int, int]
    power_w: tuple[float, float]
    reasons: tuple[str, ...]
    """Throttle reasons seen at least once: power_cap, hw_thermal, sw_thermal, hw_slowdown, ..."""


class Sanitized(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of compute-sanitizer over one case of arm B."""

    tool: Literal["memcheck", "racecheck", "initcheck"]
    case_id: str
    errors: int | None
    """None where the tool did not finish; ``note`` says why."""
    seconds: float
    note: str = ""


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
    """python, framework version, machine, cpu, cores, boot_id, compiler, clock_ns, started and seconds; GPU: gpu,
    gpu_uuid, driver, arch, sm_count, l2_bytes, dram_gbs (by the memory clock and bus width), cuda, nvcc, triton."""
    builds: tuple[Build, ...] = ()
    checks: tuple[Check, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    samples: tuple[Samples, ...] = ()
    events: tuple[Event, ...] = ()
    inventory: tuple[KernelUse, ...] = ()
    figures: tuple[FigureTime, ...] = ()
    residency: tuple[Residency, ...] = ()
    gpu: tuple[GpuLook, ...] = ()
    sanitizer: tuple[Sanitized, ...] = ()
    ceilings: dict[str, float] = {}
    """GB/s for read, write and copy at several sizes (``copy@64MiB``), TFLOP/s (TOP/s) for matmul by dtype."""
    died: Died | None = None
