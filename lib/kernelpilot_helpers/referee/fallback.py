"""Where ncu cannot run: what the framework's profiler and the build say, in the form of a report, and no more."""

from __future__ import annotations

import math

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.attempt.profile import Why
from kernelpilot_helpers.executors.profile_stage import Kernel, Rehearsal, Usage
from kernelpilot_helpers.ncu.report import File, Launch, Report, Session, Value
from kernelpilot_helpers.runtime import inventory, usage

NAME = "rehearsal.json"
FORM = "fallback"
UNKNOWN = "(not known: the framework's profiler saw no kernel)"


def report(found: Rehearsal, why: Why) -> Report:
    """One launch for each kernel of one call: time, launch shape and static resources; no counter of the hardware."""
    data = msgspec.json.encode(found)
    file = File(name=NAME, bytes=len(data), sha256=records.sha256(data), form=FORM)
    built = {usage.readable(one.name): one for one in found.usage}
    launches = tuple(_launch(ix, one, found, built) for ix, one in enumerate(found.kernels)) or (_unknown(found),)
    return Report(
        files=(file,),
        launches=launches,
        session=Session(gpu=found.gpu, driver=found.driver, cc=_cc(found.arch)),
        notes=tuple(_notes(found, why, built)),
    )


def _cc(arch: str) -> str:
    digits = "".join(c for c in arch if c.isdigit())
    return f"{digits[:-1]}.{digits[-1]}" if len(digits) > 1 else ""


def _launch(ix: int, one: Kernel, found: Rehearsal, built: dict[str, Usage]) -> Launch:
    held = _own(one.name, built)
    numbers: dict[str, tuple[float | int, str]] = {"gpu__time_duration.sum": (one.ns, "ns")}
    if one.grid:
        numbers["launch__grid_size"] = math.prod(one.grid), ""
    if one.block:
        numbers["launch__block_size"] = math.prod(one.block), ""
    registers = one.registers or (held.registers if held else 0)
    if registers:
        numbers["launch__registers_per_thread"] = registers, ""
    if one.shared or (held and held.shared):
        numbers["launch__shared_mem_per_block"] = one.shared or (held.shared if held else 0), "byte"
    if found.sm_count:
        numbers["device__attribute_multiprocessor_count"] = found.sm_count, ""
    metrics = {name: Value(number=n, unit=unit, row=ix + 1) for name, (n, unit) in numbers.items()}
    return Launch(
        id=str(ix), kernel=one.name, grid=_shape(one.grid), block=_shape(one.block), device="0", cc=_cc(found.arch),
        stream="", process="0", metrics=metrics, function=function(one.name), place=f"launch {ix + 1}",
    )  # fmt: skip


def _unknown(found: Rehearsal) -> Launch:
    return Launch(
        id="0", kernel=UNKNOWN, grid="", block="", device="0", cc=_cc(found.arch), stream="", process="0", metrics={},
        place="launch 1",
    )  # fmt: skip


def _shape(sizes: tuple[int, ...]) -> str:
    return f"({', '.join(str(n) for n in sizes)})" if sizes else ""


def function(name: str) -> str:
    """The bare name that ncu's filter compares; empty where the full name does not show one.

    >>> function("void at::native::reduce_kernel<512, 1>(float*)"), function("rms_kernel"), function("Memset (Device)")
    ('reduce_kernel', 'rms_kernel', '')
    """
    path = inventory.path_of(name)
    return path[-1] if path and path[-1].isidentifier() else ""


def _own(name: str, built: dict[str, Usage]) -> Usage | None:
    bare = function(name)
    mine = [one for own, one in built.items() if own == name or own.partition("<")[0].rpartition("::")[2] == bare]
    return mine[0] if len(mine) == 1 and bare else None


def _notes(found: Rehearsal, why: Why, built: dict[str, Usage]) -> list[str]:
    out = [f"fallback, no report of ncu: {why.code}: {why.words}"]
    for name, one in sorted(built.items()):
        spills = f"{one.spill_stores} bytes spill stores, {one.spill_loads} bytes spill loads"
        out.append(f"built: {name}: {one.registers} registers, {spills}, {one.shared} bytes shared, {one.stack} stack")
    for kernel in found.kernels:
        blocks = math.prod(kernel.grid) if kernel.grid else 0
        if blocks and found.sm_count and blocks < found.sm_count:
            out.append(f"{function(kernel.name) or kernel.name}: {blocks} blocks on {found.sm_count} multiprocessors")
    return list(dict.fromkeys(out))
