"""``job.json``: what the tool asks the task's Python to build, check and time. Plain data, shapes resolved.

The runtime reads this file with the standard library alone, so every expression of the contract is already a
number here, and no tolerance is. Seeds are a count: the oracle draws them itself and no file holds one.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = "kernelpilot.job"
VERSION = 1

Role = Literal["in", "out", "inout", "static", "scalar"]
Phase = Literal["audit", "verify", "time", "figures", "sanitize", "ceilings"]
"""``figures``: the reported figures besides the deciding one; ``ceilings``: what this GPU can do at best (no arms)."""
Figure = Literal["pipelined", "isolated", "chained", "host", "sustained"]
"""What one time means (docs/formats/bench.md); host and sustained are reported, they decide nothing."""


class TensorSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tensor of one case, resolved: sizes in elements, ``offset`` in elements, ``align`` in bytes."""

    name: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """Elements; a contiguous tensor has the C-order strides spelled out."""
    offset: int = 0
    align: int = 64
    gen: str = "normal(0,1)"
    value: float | int | bool | None = None
    """Only for role ``scalar``: what the call receives."""
    residency: Literal["hot", "cold"] = "cold"
    """GPU only: whether the second-level cache holds the tensor when a timed call begins."""


class JobCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One workload case with every axis concrete."""

    case_id: str
    axes: dict[str, int]
    flags: dict[str, Any]
    tensors: tuple[TensorSpec, ...]
    required: bool
    edge: bool
    held_out: bool
    timed: bool
    """Edge and held-out cases are verified, not timed, unless the contract says so."""
    figure: Figure = "pipelined"
    """The figure that decides this case; the CPU knows only the first."""


class Arm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program under test. ``A`` incumbent, ``B`` candidate, ``Z`` baseline when A is not the baseline."""

    name: Literal["A", "B", "Z"]
    source: str
    """Directory below the job directory; a copy made by ``git archive``, never the worktree."""
    entry: str
    """``file.py:function``."""
    build_key: str
    """sha256 of source tree, flags, architecture and tool versions (hex)."""
    is_baseline: bool


class TimeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to time. ``first_pair`` continues the alternation of start order over several jobs."""

    pairs: int
    first_pair: int = 0
    blocks: int = 24
    sample_us: float = 300.0
    """A block holds as many calls as the baseline needs to last at least this long (GPU: event resolution)."""
    zygote_pairs: int = 2
    recheck_share: float = 0.10


class VerifySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often to verify: seeds per case, and how often each call is repeated on other content."""

    seeds: int = 3
    calls: int = 3


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wall-clock limits in seconds, and the arena budget in bytes per arm."""

    build_s: float = 120.0
    call_s: float = 20.0
    wall_s: float = 600.0
    arena_bytes: int = 256 * 1024 * 1024
    sanitize_s: float = 60.0
    """GPU only: one sanitizer run."""
    lock_s: float = 900.0
    """GPU only: how long to wait for another job's hold on the same GPU."""


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole request. ``contract`` carries what the runtime may show to ``reference.check``."""

    format: Literal["kernelpilot.job"] = "kernelpilot.job"
    version: int = VERSION
    job_id: str
    device: Literal["cpu", "gpu"] = "cpu"
    framework: Literal["any", "numpy", "torch"] = "any"
    arch: str = ""
    """GPU only: what to compile for, like ``sm_90a``; empty: what the machine has."""
    phases: tuple[Phase, ...]
    reference: str = "oracle/reference.py:ref"
    reference_check: str = ""
    deterministic: bool = True
    library_calls: bool = False
    """False: the worker records library operations seen during one probe call."""
    graph: Literal["must", "may", "never"] = "may"
    """GPU only: whether a candidate must be capturable into a CUDA graph; ``never`` times calls by event pairs."""
    report: tuple[Figure, ...] = ()
    """Figures measured in phase ``figures``."""
    stages: tuple[str, ...] = ("entry",)
    cases: tuple[JobCase, ...]
    arms: tuple[Arm, ...]
    stop_if_identical: bool = False
    """After the builds: when A and B are the same program, neither verify nor time anything."""
    stop_if_wrong: bool = False
    """After verification: when B is plainly wrong (an offence, an unwritten or non-finite output, errors far beyond
    ``where_limit``), time nothing; nearly wrong is for the judge to say."""
    time: TimeSpec | None = None
    verify: VerifySpec | None = None
    limits: Limits = Limits()
    where_limit: tuple[float, float] = (2.0, 2.0)
    """(factor, slack): an element is *bad* in ``raw.Where`` beyond factor x the baseline's worst + slack ulp."""
    crash_at: str | None = None
