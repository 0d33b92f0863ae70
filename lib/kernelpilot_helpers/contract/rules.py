"""What a well-formed contract must also mean: names, axes, numerics, files. Each function lists its faults."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from kernelpilot_helpers.contract import expr
from kernelpilot_helpers.contract.model import (
    Axis,
    Baseline,
    Call,
    Framework,
    NumericsSpec,
    Objective,
    Reference,
    Target,
    Task,
    Timing,
)
from kernelpilot_helpers.contract.walk import show
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.policy import DEVICES, NUMERICS

ARCH = re.compile(r"sm_\d{2,3}[af]?")
SAMPLE = 1009
"""A size for checking expressions before any case exists."""


def identifier(name: str) -> bool:
    """Whether a name can be a Python keyword argument and a folder."""
    import keyword  # noqa: PLC0415 - one use

    return name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


def task_faults(task: Task) -> Iterator[str]:
    """The name is a folder below src/ and appears in commit messages."""
    if not identifier(task.name):
        yield f"task.name = {show(task.name)}: want a name of letters, digits and _ that does not start with a digit"


def device(target: Target) -> Literal["cpu", "gpu"]:
    """What kind of device a target is."""
    return "cpu" if target.gpu.lower() == "cpu" else "gpu"


def target_faults(target: Target) -> Iterator[str]:
    """A goal that can be met, on one device."""
    if not target.gpu.strip():
        yield f'target.gpu = {show(target.gpu)}: want a GPU\'s name, or "cpu"'
    if target.arch and not ARCH.fullmatch(target.arch):
        yield f'target.arch = {show(target.arch)}: want a name such as "sm_90a", or "" for what the machine has'
    if not (math.isfinite(target.speedup) and target.speedup > 1):
        yield f"target.speedup = {target.speedup}: want a ratio above 1 (1.10 is 10 % faster)"
    if target.count != 1:
        yield f"not supported yet: target.count = {target.count}"
    if not (math.isfinite(target.memory_gib) and target.memory_gib > 0):
        yield f"target.memory_gib = {target.memory_gib}: want a size above 0"


def axes_faults(axes: Mapping[str, Axis]) -> Iterator[str]:
    """Each axis says one thing, and an expression only uses axes above it."""
    if not axes:
        yield "axes = {}: want at least one axis"
    seen: dict[str, int] = {}
    for name, axis in axes.items():
        at = f"axes.{name}"
        if not identifier(name) or name in ("min", "max"):
            yield f"{at}: an axis is a name of letters, digits and _, other than min and max"
        ways = [w for w in ("var", "values", "expr") if getattr(axis, w) is not None]
        if len(ways) != 1:
            yield f"{at}: want exactly one of var, values, expr; got {', '.join(ways) or 'none'}"
        yield from _sizes_faults(at, axis)
        if axis.expr is not None:
            yield from expression_faults(axis.expr, seen, at=f"{at}.expr")
        seen[name] = SAMPLE


def _sizes_faults(at: str, axis: Axis) -> Iterator[str]:
    if axis.var is not None and not 1 <= axis.var[0] <= axis.var[1]:
        yield f"{at}.var = {list(axis.var)}: want [least, most] with 1 <= least <= most"
    if axis.values is not None:
        good = axis.values and len(set(axis.values)) == len(axis.values) and min(axis.values) >= 1
        if not good:
            yield f"{at}.values = {list(axis.values)}: want different sizes from 1"


def expression_faults(text: str | int, axes: Mapping[str, int], *, at: str, constraint: bool = False) -> Iterator[str]:
    """At most one fault: why the expression has no value."""
    try:
        expr.check(text, axes, at=at, constraint=constraint)
    except BadRecord as error:
        yield f"{at} = {error.what}"


def constraints_faults(constraints: tuple[str, ...], axes: Mapping[str, Axis]) -> Iterator[str]:
    """Constraints are comparisons of axes."""
    sizes = dict.fromkeys(axes, SAMPLE)
    for ix, text in enumerate(constraints):
        yield from expression_faults(text, sizes, at=f"constraints[{ix}]", constraint=True)


def function_fault(spec: str, *, below: str = "") -> str:
    """Why ``path/file.py:function`` cannot be called; empty when it can."""
    path, colon, name = spec.partition(":")
    pure = PurePosixPath(path)
    if not colon or not identifier(name) or pure.suffix != ".py":
        return "want file.py:function"
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or str(pure) != path:
        return "want a path inside the repo, without .."
    if below and pure.parts[0] != below:
        return f"want a file below {below}/"
    return ""


def reference_faults(reference: Reference) -> Iterator[str]:
    """R is a function in a file of the repo, outside what a candidate may write."""
    for key in ("fn", "check"):
        spec = getattr(reference, key)
        if key == "check" and not spec:
            continue
        fault = function_fault(spec)
        if not fault and spec.split("/")[0] in ("src", "baseline", "artifacts", "dispatch"):
            fault = "the reference lies outside src/, baseline/, artifacts/ and dispatch/"
        if fault:
            yield f"reference.{key} = {show(spec)}: {fault}"


def baseline_faults(baseline: tuple[Baseline, ...], target: Target | None = None) -> Iterator[str]:
    """One on the CPU, any number on a GPU, all below baseline/."""
    if not baseline:
        yield "baseline = []: want one baseline to beat"
    if len(baseline) > 1 and (target is None or device(target) == "cpu"):
        yield f"only on a GPU: baseline has {len(baseline)} entries ({', '.join(b.id for b in baseline)}); keep one"
    for name, count in Counter(item.id for item in baseline).items():
        if count > 1:
            yield f"baseline: {count} entries have the id {name!r}"
    for ix, item in enumerate(baseline):
        if not identifier(item.id):
            yield f"baseline[{ix}].id = {show(item.id)}: want a name of letters, digits and _"
        fault = function_fault(item.fn, below="baseline")
        if fault:
            yield f"baseline[{ix}].fn = {show(item.fn)}: {fault}"


def numerics_faults(numerics: NumericsSpec) -> Iterator[str]:
    """A contract may only be stricter than the policy."""
    for name in ("rms_ratio", "tile_ratio", "max_ratio", "bias_sigma"):
        value, limit = getattr(numerics, name), getattr(NUMERICS, name)
        if not 0 < value <= limit:
            yield f"numerics.{name} = {value}: may only tighten the policy's {limit}"


def call_faults(call: Call, target: Target | None = None) -> Iterator[str]:
    """entry is always there, and stages come in the order they run; a GPU's memory is torch's."""
    if call.framework == "numpy" and target is not None and device(target) == "gpu":
        yield f'call.framework = "numpy": {show(target.gpu)} holds torch tensors; want any or torch'
    order = ("prepare", "plan", "entry")
    if "entry" not in call.stages or list(call.stages) != [s for s in order if s in call.stages]:
        yield f'call.stages = {show(list(call.stages))}: want some of "prepare", "plan", then "entry"'
    if call.timed != ("entry",):
        yield f'call.timed = {show(list(call.timed))}: want ["entry"]'


UNCAPTURED = 'a chain of calls is one CUDA graph, and call.graph = "never" forbids capture'


def timing_faults(timing: Timing, call: Call | None) -> Iterator[str]:
    """What is measured only by replaying a graph cannot be asked of a candidate that may never be captured."""
    if call is None or call.graph != "never":
        return
    for regime, figure in timing.decide.items():
        if figure == "chained":
            yield f'timing.decide.{regime} = "chained": {UNCAPTURED}'
    if "chained" in timing.report:
        yield f'timing.report = {show(list(timing.report))}: without "chained": {UNCAPTURED}'


def objective_faults(objective: Objective, target: Target | None) -> Iterator[str]:
    """Weights belong to a total; the margin may only be tighter than the device's."""
    if objective.weights and objective.metric != "total_time":
        yield f'objective.weights = {show(objective.weights)}: only with metric = "total_time"'
    margin = objective.noninferiority_pct
    if margin is None or target is None:
        return
    limit = 100 * DEVICES[device(target)].noninferiority
    if not 0 < margin <= limit:
        yield f"objective.noninferiority_pct = {margin}: may only tighten the device's {limit:g}"


def framework_faults(frameworks: tuple[Framework, ...]) -> Iterator[str]:
    """Different names, each a word of local.toml; sources inside the checkout."""
    for name, count in Counter(one.name for one in frameworks).items():
        if count > 1:
            yield f"framework: {count} entries have the name {name!r}"
    for ix, one in enumerate(frameworks):
        if not identifier(one.name):
            yield f"framework[{ix}].name = {show(one.name)}: want a name of letters, digits and _"
        for path in one.sources:
            pure = PurePosixPath(path)
            if not path or pure.is_absolute() or ".." in pure.parts or "\\" in path or str(pure) != path:
                yield f"framework[{ix}].sources = {show(path)}: want a path inside the checkout, without .."


def builtins_of(record: msgspec.Struct) -> dict[str, object]:
    """A record as plain values without None, which TOML cannot hold."""
    plain = msgspec.to_builtins(record)
    return {k: v for k, v in plain.items() if v is not None}
