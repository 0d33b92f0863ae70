"""Axes, shapes and strides of one case as numbers. Everything is in elements."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kernelpilot_helpers.contract import expr
from kernelpilot_helpers.contract.model import Axis, Case, Contract, Tensor
from kernelpilot_helpers.errors import BadRecord

FIX = "edit the case's axes, or the contract's"
ELEMENTS_MAX = 2**40


def in_axis(axis: Axis, size: int) -> bool:
    """Whether a var or values axis admits a size."""
    if axis.var is not None:
        return axis.var[0] <= size <= axis.var[1]
    return axis.values is None or size in axis.values


def _given(name: str, axis: Axis, given: Mapping[str, int]) -> tuple[int | None, str]:
    if name not in given:
        return None, f"axes.{name} is missing"
    if not in_axis(axis, given[name]):
        span = f"{axis.var[0]} to {axis.var[1]}" if axis.var else f"one of {', '.join(map(str, axis.values or ()))}"
        return given[name], f"axes.{name} = {given[name]}: the contract allows {span}"
    return given[name], ""


def axis_faults(axes: Mapping[str, Axis], given: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
    """Sizes of all axes, expressions included, and what is wrong with the given ones."""
    sizes: dict[str, int] = {}
    faults = [f"axes.{name} is not an axis of the contract ({', '.join(axes)})" for name in given if name not in axes]
    for name, axis in axes.items():
        if axis.expr is None:
            size, fault = _given(name, axis, given)
            faults += [fault] if fault else []
        else:
            try:
                size = expr.evaluate(axis.expr, sizes, at=f"axes.{name}.expr")
            except BadRecord as error:
                size = None
                if not faults:
                    faults.append(f"axes.{name}: {error.what}")
            if size is not None and given.get(name, size) != size:
                faults.append(f"axes.{name} = {given[name]}: the contract computes {size}")
        if size is not None:
            sizes[name] = size
            if size < 1:
                faults.append(f"axes.{name} = {size}: a size is at least 1")
    return sizes, faults


def constraint_faults(constraints: tuple[str, ...], sizes: Mapping[str, int]) -> list[str]:
    """Constraints that these sizes break."""
    out = []
    for ix, text in enumerate(constraints):
        try:
            if not expr.holds(text, sizes, at=f"constraints[{ix}]"):
                out.append(f"breaks the constraint {text!r}")
        except BadRecord as error:
            out.append(f"constraints[{ix}]: {error.what}")
    return out


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """C-order strides.

    >>> contiguous((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[ix + 1 :]) for ix in range(len(shape)))


def _overlaps(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    reach = 0
    for step, size in sorted((s, n) for s, n in zip(stride, shape, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def layout(
    name: str, tensor: Tensor, case: Case, sizes: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(shape, stride, offset) of one tensor in one case. Raises BadRecord when they cannot be."""
    at = f"tensors.{name}"
    shape = tuple(expr.evaluate(s, sizes, at=f"{at}.shape") for s in tensor.shape)
    if any(n < 1 for n in shape) or math.prod(shape) > ELEMENTS_MAX:
        raise BadRecord(f"shape {list(shape)}: every size is at least 1, and 2**40 elements at most", where=at, fix=FIX)
    stride = case.strides.get(name) or tuple(expr.evaluate(s, sizes, at=f"{at}.stride") for s in tensor.stride)
    stride = stride or contiguous(shape)
    if len(stride) != len(shape):
        raise BadRecord(f"stride {list(stride)} for shape {list(shape)}", where=at, fix=FIX)
    if any(s < 1 for s in stride) or _overlaps(shape, stride):
        raise BadRecord(f"stride {list(stride)} makes elements of shape {list(shape)} overlap", where=at, fix=FIX)
    own = case.offsets.get(name)
    offset = expr.evaluate(tensor.offset, sizes, at=f"{at}.offset") if own is None else own
    if offset < 0:
        raise BadRecord(f"offset {offset} is below 0", where=at, fix=FIX)
    return shape, stride, offset


def sizes_of(contract: Contract, case: Case) -> dict[str, int]:
    """Every axis of a case. Raises BadRecord naming each fault."""
    sizes, faults = axis_faults(contract.axes, case.axes)
    if not faults:
        faults += constraint_faults(contract.constraints, sizes)
    if faults:
        raise BadRecord("; ".join(faults), where=case.case_id, fix=FIX)
    return sizes
