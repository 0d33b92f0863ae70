"""``job.json`` as the runtime sees it: plain frozen records made with the standard library alone."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

ITEMSIZE = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
MANTISSA = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
"""Stored bits of the significand (IEEE 754; bfloat16: the upper half of binary32)."""
MIN_EXPONENT = {"float64": -1022, "float32": -126, "float16": -14, "bfloat16": -126}
MAX_EXPONENT = {"float64": 1023, "float32": 127, "float16": 15, "bfloat16": 127}


class JobError(Exception):
    """The job asks for something that this runtime cannot do; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One tensor of one case: sizes, strides and offset in elements, alignment in bytes."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    align: int
    gen: str
    value: Any
    residency: str = "cold"
    """GPU only: ``hot`` or ``cold``, where the tensor is when a timed call begins."""

    @property
    def is_float(self) -> bool:
        """Floating outputs are measured in ulp, all others exactly."""
        return self.dtype in MANTISSA

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return ITEMSIZE[self.dtype]

    @functools.cached_property
    def span(self) -> int:
        """Elements of memory from the first to the last one, gaps included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def numel(self) -> int:
        """Elements that belong to the tensor."""
        return math.prod(self.shape)

    @property
    def cols(self) -> int:
        """Size of the last axis (1 for a tensor without axes)."""
        return self.shape[-1] if self.shape else 1


@dataclass(frozen=True, kw_only=True)
class Case:
    """One workload case. ``key`` is what candidates see of it."""

    case_id: str
    axes: dict[str, int]
    flags: dict[str, Any]
    timed: bool
    tensors: tuple[Tensor, ...]
    figure: str = "pipelined"
    """What one time of this case means; it decides."""

    def by_role(self, *roles: str) -> tuple[Tensor, ...]:
        """Tensors of these roles, in the order listed."""
        return tuple(t for t in self.tensors if t.role in roles)

    def tensor(self, name: str) -> Tensor:
        """The tensor of this name."""
        return next(t for t in self.tensors if t.name == name)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the reference reads besides scalars."""
        return self.by_role("in", "inout", "static")

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """What a call writes, in the order the reference returns it."""
        return self.by_role("out", "inout")

    @property
    def scalars(self) -> dict[str, Any]:
        """Name to Python number."""
        return {t.name: t.value for t in self.tensors if t.role == "scalar"}


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One program under test; ``source`` is relative to the job directory."""

    name: str
    source: str
    entry: str
    build_key: str
    is_baseline: bool


def _parse_tensor(raw: dict[str, Any]) -> Tensor:
    return Tensor(
        name=raw["name"],
        role=raw["role"],
        dtype=raw["dtype"],
        shape=tuple(raw["shape"]),
        stride=tuple(raw["stride"]),
        offset=raw.get("offset", 0),
        align=raw.get("align", 64),
        gen=raw.get("gen", "normal(0,1)"),
        value=raw.get("value"),
        residency=raw.get("residency", "cold"),
    )


def parse_case(raw: dict[str, Any]) -> Case:
    """One case of ``job.json``; raises JobError for a dtype that the runtime does not know."""
    tensors = []
    for t in raw["tensors"]:
        if t["role"] != "scalar" and t["dtype"] not in ITEMSIZE:
            raise JobError(f"case {raw['case_id']}: tensor {t['name']}: dtype {t['dtype']} is not supported")
        tensors.append(_parse_tensor(t))
    return Case(
        case_id=raw["case_id"],
        axes=raw["axes"],
        flags=raw["flags"],
        timed=raw["timed"],
        tensors=tuple(tensors),
        figure=raw.get("figure", "pipelined"),
    )


def parse_arm(raw: dict[str, Any]) -> Arm:
    """One arm of ``job.json``."""
    return Arm(
        name=raw["name"], source=raw["source"], entry=raw["entry"], build_key=raw["build_key"],
        is_baseline=raw["is_baseline"],
    )  # fmt: skip
