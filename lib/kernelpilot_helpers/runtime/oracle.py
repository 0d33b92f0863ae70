"""The reference, run in the oracle's process only: float64 on copies of the stored inputs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .frames import Frame, out_of_memory
from .spec import Case, JobError
from .stats import Want, matrix, unit_of

QUANTIZED = "int8"
"""Integers of this type are quantized numbers; the others are indices, and have no other sign."""


def load_function(folder: Path, entry: str, name: str) -> Callable[..., Any]:
    """``file.py:function`` below ``folder``; its own folder is importable while it loads.

    Raises JobError where the file or the function is missing.
    """
    file, _, attribute = entry.partition(":")
    path = folder / file
    if not path.is_file():
        raise JobError(f"{file}: no such file")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    function = getattr(module, attribute, None)
    if not callable(function):
        raise JobError(f"{file}: no function {attribute!r}")
    return function  # type: ignore[no-any-return]


class Oracle:
    """Calls ``ref`` and ``check`` of the contract."""

    def __init__(self, frame: Frame, folder: Path, reference: str, check: str) -> None:
        self.frame = frame
        self._ref = load_function(folder, reference, "kernelpilot_reference")
        self._check = load_function(folder, check, "kernelpilot_reference_check") if check else None

    @property
    def checks(self) -> bool:
        """Whether the contract has a check of its own."""
        return self._check is not None

    def call(self, case: Case, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs of ``ref`` by name, as it returned them; ``inputs`` are handed over as they are.

        Raises JobError where their number or a shape is not what the case says, or the device's memory is too small.
        """
        try:
            got = self._ref(**inputs, **case.scalars)
        except RuntimeError as fault:
            if not out_of_memory(fault):
                raise
            raise JobError(f"gpu.memory: the reference, in float64, on case {case.case_id}: {fault}") from fault
        values = tuple(got) if isinstance(got, tuple | list) else (got,)
        if len(values) != len(case.outputs):
            raise JobError(f"the reference returned {len(values)} tensors, the case has {len(case.outputs)}")
        for tensor, value in zip(case.outputs, values, strict=True):
            if tuple(value.shape) != tensor.shape:
                raise JobError(
                    f"the reference returned shape {tuple(value.shape)} for {tensor.name}, not {tensor.shape}"
                )
        return {t.name: v for t, v in zip(case.outputs, values, strict=True)}

    def wide(self, case: Case, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Fresh copies of ``inputs``: floating ones in float64, the others as they are."""
        f = self.frame
        return {t.name: f.f64(inputs[t.name]) if t.is_float else f.copy(inputs[t.name]) for t in case.inputs}

    def want(self, case: Case, inputs: Mapping[str, Any]) -> dict[str, Want]:
        """What each output should hold, with its unit in the last place.

        The unit is taken at max(|ref|, |ref(|inputs|)|), so that cancellation does not shrink it; where quantized
        inputs stand in a product, which may have either sign, at that product's other sign too.
        """
        xp = self.frame.xp
        refs = self.call(case, self.wide(case, inputs))
        signs = (False, True) if any(t.dtype == QUANTIZED for t in case.inputs) else (False,)
        above = [self._of_absolutes(case, inputs, turned=t) for t in signs if any(o.is_float for o in case.outputs)]
        wants = {}
        for tensor in case.outputs:
            ref = self.frame.f64(refs.pop(tensor.name)).reshape(matrix(tensor.shape))
            unit = None
            if tensor.is_float:
                size = xp.abs(ref)
                for others in above:
                    if tensor.name in others:
                        size = self._larger(size, xp.abs(self.frame.f64(others.pop(tensor.name)).reshape(ref.shape)))
                unit = unit_of(self.frame, tensor.dtype, size)
            wants[tensor.name] = Want(ref=ref, unit=unit, dtype=tensor.dtype, exact=not tensor.is_float)
        return wants

    def _larger(self, size: Any, other: Any) -> Any:
        """The larger of both where the second one is a number."""
        xp = self.frame.xp
        larger = xp.maximum(size, other)
        return larger if bool(xp.isfinite(larger.sum())) else xp.where(xp.isfinite(other), larger, size)

    def _of_absolutes(self, case: Case, inputs: Mapping[str, Any], *, turned: bool) -> dict[str, Any]:
        """What ``ref`` gives on |inputs|; nothing where it is not defined on them: |ref| alone gives the unit then.

        ``turned``: with the other sign of the first quantized input (measured on an H200: a bias that cancels an
        int8 product left one element of an honest GEMM 70 ulp off).
        """
        xp = self.frame.xp
        sizes = {n: xp.abs(v) if case.tensor(n).is_float else v for n, v in self.wide(case, inputs).items()}
        if turned:
            name = next(t.name for t in case.inputs if t.dtype == QUANTIZED)
            sizes[name] = -xp.clip(sizes[name], -127, 127)  # -128 has no other sign
        try:
            return self.call(case, sizes)
        except (ArithmeticError, ValueError, RuntimeError):
            return {}

    def violations(self, case: Case, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> list[str]:
        """What the contract's own ``check(inputs, outputs, ref)`` says; empty where there is none."""
        if self._check is None:
            return []
        refs = self.call(case, self.wide(case, inputs))
        copies = {name: self.frame.copy(value) for name, value in inputs.items()}
        return [str(v) for v in self._check(copies, dict(outputs), refs)]
