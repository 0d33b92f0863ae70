"""numpy and torch behind one small face: how memory is viewed, how random numbers are made."""

from __future__ import annotations

import os
from typing import Any, Protocol

from .spec import JobError


class Frame(Protocol):
    """One framework. ``xp`` is its module: the functions used on it have one meaning in both."""

    name: str
    version: str
    xp: Any

    def view(self, buffer: Any, start: int, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
        """A tensor on ``buffer`` from byte ``start``; strides in elements; writable where the buffer is."""
        ...

    def f64(self, tensor: Any) -> Any:
        """A fresh contiguous float64 copy."""
        ...

    def cast(self, tensor: Any, dtype: str) -> Any:
        """A fresh contiguous copy in ``dtype``, rounded to nearest even where it narrows."""
        ...

    def copy(self, tensor: Any) -> Any:
        """A fresh contiguous copy."""
        ...

    def normal(self, n: int) -> Any:
        """``n`` standard normal numbers (float32) from the system's entropy."""
        ...

    def uniform(self, n: int) -> Any:
        """``n`` numbers in [0, 1) (float32) from the system's entropy."""
        ...

    def integers(self, n: int, low: int, high: int) -> Any:
        """``n`` whole numbers in [low, high) (int64) from the system's entropy."""
        ...


class NumpyFrame:
    """numpy arrays."""

    def __init__(self) -> None:
        import numpy as np

        self.xp: Any = np
        self.name, self.version = "numpy", np.__version__
        self._rng: Any = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))

    def _dtype(self, dtype: str) -> Any:
        if dtype == "bfloat16":
            raise JobError("bfloat16 needs torch: numpy has no such dtype")
        return self.xp.dtype(dtype)

    def view(self, buffer: Any, start: int, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
        """See Frame."""
        kind = self._dtype(dtype)
        steps = tuple(s * kind.itemsize for s in stride)
        return self.xp.ndarray(shape, kind, buffer, start, steps)

    def f64(self, tensor: Any) -> Any:
        """See Frame."""
        return self.xp.array(tensor, dtype=self.xp.float64, order="C")

    def cast(self, tensor: Any, dtype: str) -> Any:
        """See Frame."""
        with self.xp.errstate(all="ignore"):
            return self.xp.array(tensor, dtype=self._dtype(dtype), order="C")

    def copy(self, tensor: Any) -> Any:
        """See Frame."""
        return self.xp.array(tensor, order="C")

    def normal(self, n: int) -> Any:
        """See Frame."""
        return self._rng.standard_normal(n, dtype=self.xp.float32)

    def uniform(self, n: int) -> Any:
        """See Frame."""
        return self._rng.random(n, dtype=self.xp.float32)

    def integers(self, n: int, low: int, high: int) -> Any:
        """See Frame."""
        return self._rng.integers(low, high, n)


class TorchFrame:
    """torch tensors on the CPU; works where numpy is absent."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.xp: Any = torch
        self.name, self.version = "torch", torch.__version__
        self._rng: Any = torch.Generator()
        self._rng.manual_seed(int.from_bytes(os.urandom(7), "little"))

    def _dtype(self, dtype: str) -> Any:
        return getattr(self.xp, dtype)

    def view(self, buffer: Any, start: int, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
        """See Frame."""
        span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        if span == 0:
            return self.xp.empty(shape, dtype=self._dtype(dtype))
        flat = self.xp.frombuffer(buffer, dtype=self._dtype(dtype), count=span, offset=start)
        return flat.as_strided(shape, stride)

    def f64(self, tensor: Any) -> Any:
        """See Frame."""
        return self.cast(tensor, "float64")

    def cast(self, tensor: Any, dtype: str) -> Any:
        """See Frame."""
        return self.xp.as_tensor(tensor).to(self._dtype(dtype), copy=True).contiguous()

    def copy(self, tensor: Any) -> Any:
        """See Frame."""
        return tensor.clone(memory_format=self.xp.contiguous_format)

    def normal(self, n: int) -> Any:
        """See Frame."""
        return self.xp.randn(n, generator=self._rng)

    def uniform(self, n: int) -> Any:
        """See Frame."""
        return self.xp.rand(n, generator=self._rng)

    def integers(self, n: int, low: int, high: int) -> Any:
        """See Frame."""
        return self.xp.randint(low, high, (n,), generator=self._rng)


def pick(framework: str) -> str:
    """``numpy`` or ``torch``: what ``framework`` says; ``any`` takes numpy where both are there (it starts faster).

    Raises JobError where the wanted one cannot be imported.
    """
    import importlib.util

    wanted = ("numpy", "torch") if framework == "any" else (framework,)
    for name in wanted:
        if importlib.util.find_spec(name):
            return name
    raise JobError(f"this Python has no {' or '.join(wanted)}: install one into it")


def make(name: str) -> Frame:
    """The frame called ``name``; importing torch takes about a second."""
    return TorchFrame() if name == "torch" else NumpyFrame()
