"""The ``[tensors]`` table: roles, dtypes, shapes and content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelpilot_helpers.contract import dtypes
from kernelpilot_helpers.contract.model import Axis, Tensor
from kernelpilot_helpers.contract.rules import SAMPLE, expression_faults, identifier
from kernelpilot_helpers.contract.walk import show

OUTPUTS = ("out", "inout")
RESERVED = ("state", "case", "static", "host", "self")


def flags_of(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Every flag that a case must or may set, and what for: ``dtype``, ``scalar`` or ``optional``."""
    out: dict[str, str] = {}
    for name, tensor in tensors.items():
        picked = dtypes.flag_of(tensor.dtype)
        if picked:
            out[picked] = "dtype"
        call, args = dtypes.call_of(tensor.gen)
        if tensor.role == "scalar" and call == "flag" and args:
            out[args[0]] = "scalar"
        if tensor.optional:
            out[name] = "optional"
    return out


def tensors_faults(
    tensors: Mapping[str, Tensor], axes: Mapping[str, Axis] | None, *, complete: bool = True
) -> Iterator[str]:
    """Every fault of every tensor; shapes are left out while the axes themselves are at fault.

    ``complete`` is False while other tensors could not be read: what is missing cannot be told then.
    """
    if complete and not any(t.role in OUTPUTS for t in tensors.values()):
        yield "tensors: want at least one of role out or inout"
    if complete and not any(t.role in ("in", "inout", "static") for t in tensors.values()):
        yield "tensors: want at least one of role in, inout or static"
    for name, tensor in tensors.items():
        at = f"tensors.{name}"
        if not identifier(name) or name in RESERVED:
            yield f"{at}: a tensor is a name of letters, digits and _, other than {', '.join(RESERVED)}"
        if axes is not None and name in axes:
            yield f"{at}: an axis has that name too"
        yield from _dtype_faults(at, tensor)
        yield from (_scalar_faults(at, tensor) if tensor.role == "scalar" else _array_faults(at, tensor))
        if axes is not None:
            yield from _shape_faults(at, tensor, axes)


def _dtype_faults(at: str, tensor: Tensor) -> Iterator[str]:
    if dtypes.flag_of(tensor.dtype):
        return
    fault = dtypes.dtype_fault(tensor.dtype)
    if fault == "not supported yet":
        yield f"not supported yet: {at}.dtype = {show(tensor.dtype)}"
    elif fault:
        yield f"{at}.dtype = {show(tensor.dtype)}: {fault}"


def _scalar_faults(at: str, tensor: Tensor) -> Iterator[str]:
    if tensor.shape or tensor.stride or tensor.offset:
        yield f"{at}: a scalar has no shape, stride or offset"
    if tensor.optional:
        yield f"{at}.optional = true: a scalar is always passed"
    if tensor.residency is not None:
        yield f"{at}.residency = {show(tensor.residency)}: a scalar lies in no cache"
    if dtypes.flag_of(tensor.dtype):
        yield f"{at}.dtype = {show(tensor.dtype)}: a scalar's dtype is the same in every case"
    name, args = dtypes.call_of(tensor.gen)
    if name == "flag" and len(args) == 1 and identifier(args[0]):
        return
    if dtypes.scalar_of(tensor.gen, dtypes.normalise(tensor.dtype)) is None:
        yield f"{at}.gen = {show(tensor.gen)}: want const(v) of its dtype, or flag(name)"


def _array_faults(at: str, tensor: Tensor) -> Iterator[str]:
    if not tensor.shape:
        yield f"{at}.shape = []: want sizes (a number is role scalar)"
    if tensor.stride and len(tensor.stride) != len(tensor.shape):
        yield f"{at}.stride = {show(list(tensor.stride))}: want {len(tensor.shape)} entries, one for each size"
    if tensor.align < 1 or tensor.align & (tensor.align - 1) or tensor.align > 4096:
        yield f"{at}.align = {tensor.align}: want a power of two up to 4096 (bytes)"
    if tensor.optional and tensor.role in OUTPUTS:
        yield f"{at}.optional = true: an output is always written"
    if tensor.role == "out" and tensor.gen:
        yield f"{at}.gen = {show(tensor.gen)}: an output is filled with poison, not with content"
    elif tensor.gen:
        fault = dtypes.gen_fault(tensor.gen, dtypes.normalise(tensor.dtype))
        if fault == "not supported yet":
            yield f"not supported yet: {at}.gen = {show(tensor.gen)}"
        elif fault:
            yield f"{at}.gen = {show(tensor.gen)}: {fault}"


def _shape_faults(at: str, tensor: Tensor, axes: Mapping[str, Axis]) -> Iterator[str]:
    sizes = dict.fromkeys(axes, SAMPLE)
    for key in ("shape", "stride"):
        for ix, item in enumerate(getattr(tensor, key)):
            yield from expression_faults(item, sizes, at=f"{at}.{key}[{ix}]")
    yield from expression_faults(tensor.offset, sizes, at=f"{at}.offset")
