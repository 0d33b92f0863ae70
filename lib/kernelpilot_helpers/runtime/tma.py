"""Descriptors for the tensor memory accelerator (sm_90 and later), made by the driver from a torch tensor."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .launch import LaunchError, check, driver

BYTES, ALIGN = 128, 64
KEPT = 4096
TYPES = {
    "uint8": 0, "int8": 0, "bool": 0, "float8_e4m3fn": 0, "float8_e5m2": 0, "int16": 1, "uint16": 1, "uint32": 2,
    "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9,
}  # fmt: skip
"""torch's type to the driver's number (``CUtensorMapDataType`` in cuda.h); bytes of any kind are copied as uint8."""
SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
PROMOTIONS = {"none": 0, "64B": 1, "128B": 2, "256B": 3}


class TensorMap(ctypes.Structure):
    """A descriptor: pass it as ``const __grid_constant__ CUtensorMap``."""

    _fields_ = (("opaque", ctypes.c_uint64 * (BYTES // 8)),)


_made: dict[tuple[Any, ...], TensorMap] = {}


def tensor_map(
    tensor: Any, box: Sequence[int], *, swizzle: str = "none", l2: str = "128B", nan_fill: bool = False
) -> TensorMap:
    """A descriptor that moves boxes of ``box`` elements of ``tensor``; both in torch's order (innermost last).

    Elements outside of the tensor read as zero (``nan_fill``: as NaN). The same tensor memory and box give the same
    descriptor again without a call of the driver. Raises LaunchError for what the driver refuses: an address or a
    stride that is no multiple of 16 bytes, a box wider than 256 or than the swizzle.
    """
    key = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), tuple(box), swizzle, l2, nan_fill)
    known = _made.get(key)
    if known is not None:
        return known
    rank = len(box)
    dtype = str(tensor.dtype).removeprefix("torch.")
    if rank != tensor.dim() or not 1 <= rank <= 5:
        raise LaunchError(f"tensor_map: a box of {rank} sizes for a tensor of {tensor.dim()} axes (1 to 5)")
    if dtype not in TYPES or swizzle not in SWIZZLES or l2 not in PROMOTIONS:
        raise LaunchError(f"tensor_map: dtype {dtype}, swizzle {swizzle!r} or l2 {l2!r} is not one the driver knows")
    if tensor.stride(-1) != 1:
        raise LaunchError("tensor_map: the last axis must be contiguous")
    width = tensor.element_size()
    memory = ctypes.create_string_buffer(BYTES + ALIGN)
    found = TensorMap.from_buffer(memory, -ctypes.addressof(memory) % ALIGN)
    sizes = (ctypes.c_uint64 * rank)(*reversed(tensor.shape))
    steps = (ctypes.c_uint64 * max(1, rank - 1))(*(s * width for s in reversed(tensor.stride()[:-1])))
    boxes = (ctypes.c_uint32 * rank)(*reversed(box))
    ones = (ctypes.c_uint32 * rank)(*[1] * rank)
    call = driver().cuTensorMapEncodeTiled
    call.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, *[ctypes.c_void_p] * 5, *[ctypes.c_int] * 4]
    code = call(
        ctypes.addressof(found), TYPES[dtype], rank, tensor.data_ptr(), sizes, steps, boxes, ones,
        0, SWIZZLES[swizzle], PROMOTIONS[l2], int(nan_fill),
    )  # fmt: skip
    check(code, f"tensor_map of {dtype} {tuple(tensor.shape)}, box {tuple(box)}, swizzle {swizzle}")
    if len(_made) >= KEPT:
        _made.clear()
    _made[key] = found
    return found
