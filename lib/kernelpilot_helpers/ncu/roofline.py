"""Where a launch stands under the roofs of arithmetic and of DRAM: rates, intensity, ridge, share of the roof.

Every roof is one that the referee measured on this GPU or that the report itself states: no table of devices.
Source: counts of executed instructions and ``peak_sustained`` as in the roofline charts of Nsight Compute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from kernelpilot_helpers.ncu.report import Launch

Origin = Literal["", "measured", "reported"]
_COUNT = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
_PEAK = "sm__sass_thread_inst_executed_op_{}_pred_on.sum.peak_sustained"
_KINDS: Mapping[str, tuple[str, int]] = {
    # letter of the opcodes, values that one lane works on
    "fp32": ("f", 1),
    "fp64": ("d", 1),
    "fp16": ("h", 2),
}
_CLOCKS = ("smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second",
           "gpc__cycles_elapsed.avg.per_second")  # fmt: skip
_DRAM_CLOCK = "dram__cycles_elapsed.avg.per_second"
_TENSOR = re.compile(
    r"(sm__ops_path_tensor_op_(\w+?_src_(\w+?)(?:_dst_\w+?)?(?:_sparsity_(on|off))?))\.sum\.per_second"
)
_TENSOR_PEAK = ".sum.peak_sustained_elapsed.per_second"
_MATMUL = {"bf16": "bf16", "fp16": "f16", "tf32": "tf32", "int8": "int8", "fp8": "fp8"}


class Roofline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rates per second of one launch and the roofs above them; absent is None, and ``missing`` says why."""

    kind: str = ""
    """Arithmetic that comes closest to its roof: ``fp32``, ``fp64``, ``fp16`` or ``tensor hgmma_src_bf16_...``."""
    flops: float | None = None
    """Operations per second of that kind."""
    bytes: float | None = None
    """Bytes per second to and from DRAM."""
    intensity: float | None = None
    """Operations per byte."""
    ridge: float | None = None
    """Intensity at which both roofs meet."""
    flop_roof: float | None = None
    flop_origin: Origin = ""
    byte_roof: float | None = None
    byte_origin: Origin = ""
    roof: Literal["", "compute", "dram"] = ""
    """The lower roof at this intensity."""
    percent: float | None = None
    """Of that roof."""
    missing: str = ""
    """``not computable: ...`` with what the report lacks."""


def roofline(launch: Launch, *, measured: Mapping[str, float] | None = None) -> Roofline:
    """Place a launch under its roofs.

    ``measured`` are the referee's ceilings by name (``read@64MiB`` in GB/s, ``matmul@bf16`` in TFLOP/s); they are
    preferred to the report's own.
    """
    missing: list[str] = []
    moved = _number(launch, "dram__bytes.sum.per_second")
    if moved is None:
        moved = _sum(launch, "dram__bytes_read.sum.per_second", "dram__bytes_write.sum.per_second")
    if moved is None:
        missing.append("dram__bytes.sum.per_second")
    byte_roof, byte_origin = _byte_roof(launch, measured or {}, missing)
    best = max(_kinds(launch, measured or {}, missing), key=lambda k: (k[1] / k[2], k[0]), default=None)
    if best is None or moved is None or byte_roof is None:
        words = ", ".join(dict.fromkeys(missing)) or "counts of executed arithmetic"
        return Roofline(
            bytes=moved, byte_roof=byte_roof, byte_origin=byte_origin, missing=f"not computable: {words} missing"
        )
    kind, flops, flop_roof, flop_origin = best
    ridge = flop_roof / byte_roof
    intensity = flops / moved if moved > 0 else None
    bound: Literal["compute", "dram"] = "compute" if intensity is None or intensity >= ridge else "dram"
    percent = 100 * (flops / flop_roof if bound == "compute" else moved / byte_roof)
    return Roofline(
        kind=kind if flops > 0 else "",
        flops=flops,
        bytes=moved,
        intensity=intensity,
        ridge=ridge,
        flop_roof=flop_roof,
        flop_origin=flop_origin,
        byte_roof=byte_roof,
        byte_origin=byte_origin,
        roof=bound,
        percent=percent,
    )


def _byte_roof(launch: Launch, measured: Mapping[str, float], missing: list[str]) -> tuple[float | None, Origin]:
    rates = [rate for name, rate in measured.items() if name.startswith(("read@", "write@", "copy@")) and rate > 0]
    if rates:
        return max(rates) * 1e9, "measured"
    names = "dram__bytes.sum.peak_sustained", _DRAM_CLOCK
    width, clock = (_number(launch, name) for name in names)
    missing += [name for name, value in zip(names, (width, clock), strict=True) if not value]
    return (width * clock, "reported") if width and clock else (None, "")


def _kinds(
    launch: Launch, measured: Mapping[str, float], missing: list[str]
) -> Iterator[tuple[str, float, float, Origin]]:
    """(kind, operations a second, roof, where the roof is from) of each arithmetic that the report counts."""
    clock = next((v for v in (_number(launch, name) for name in _CLOCKS) if v), None)
    if clock is None:
        missing.append(_CLOCKS[-1])
    for kind, (letter, values) in _KINDS.items():
        parts = [_number(launch, _COUNT.format(letter + op)) for op in ("add", "mul", "fma")]
        peak = _number(launch, _PEAK.format(f"{letter}fma"))
        known = [part for part in parts if part is not None]
        if clock is None or len(known) < len(parts):
            if kind == "fp32":
                missing += [_COUNT.format(letter + op) for op, p in zip(("add", "mul", "fma"), parts, strict=True)
                            if p is None]  # fmt: skip
            continue
        achieved = (known[0] + known[1] + 2 * known[2]) * values * clock
        tera = measured.get("matmul@f32", 0.0) if kind == "fp32" else 0.0
        if tera > 0:
            yield kind, achieved, tera * 1e12, "measured"
        elif peak:
            yield kind, achieved, peak * 2 * values * clock, "reported"
        elif kind == "fp32":
            missing.append(_PEAK.format("ffma"))
    yield from _tensor(launch, measured)


def _tensor(launch: Launch, measured: Mapping[str, float]) -> Iterator[tuple[str, float, float, Origin]]:
    for name in launch.metrics:
        found = _TENSOR.fullmatch(name)  # by name first: values are decoded when they are asked for
        value = launch.metrics[name] if found else None
        if not found or value is None or value.number is None or value.number <= 0:
            continue
        tera = measured.get(f"matmul@{_MATMUL.get(found[3], found[3])}", 0.0)
        peak = _number(launch, found[1] + _TENSOR_PEAK)
        if tera > 0 and found[4] != "on":  # a sparse product passes the roof of the dense one
            yield f"tensor {found[2]}", value.number, tera * 1e12, "measured"
        elif peak:
            yield f"tensor {found[2]}", value.number, peak, "reported"


def _number(launch: Launch, name: str) -> float | None:
    value = launch.metrics.get(name)
    return value.number if value is not None and value.number is not None and value.number >= 0 else None


def _sum(launch: Launch, *names: str) -> float | None:
    parts = [_number(launch, name) for name in names]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
