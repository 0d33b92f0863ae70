"""numpy and torch behind one small face: how memory is viewed, how random numbers are made."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from .spec import JobError

KEPT_BYTES = 16 << 30
"""What torch may keep of the device for later: arms need memory there, too."""


class Frame(Protocol):
    """One framework. ``xp`` is its module: the functions used on it have one meaning in both."""

    name: str
    version: str
    xp: Any
    grain: int
    """Windows of random content start at multiples of so many bytes, or of their elements where these are larger."""

    def buffer(self, nbytes: int) -> Any:
        """Writable raw bytes in this frame's memory."""
        ...

    def window(self, buffer: Any, low: int, high: int) -> Any:
        """Bytes ``low`` to ``high`` of a buffer, not copied."""
        ...

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

    def calm(self) -> AbstractContextManager[Any]:
        """Arithmetic on infinities and NaN inside it warns of nothing."""
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

    grain = 1

    def __init__(self) -> None:
        import numpy as np

        self.xp: Any = np
        self.name, self.version = "numpy", np.__version__
        self._rng: Any = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))

    def buffer(self, nbytes: int) -> Any:
        """See Frame."""
        return bytearray(nbytes)

    def window(self, buffer: Any, low: int, high: int) -> Any:
        """See Frame."""
        return memoryview(buffer)[low:high]

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
        with self.calm():
            return self.xp.array(tensor, dtype=self._dtype(dtype), order="C")

    def copy(self, tensor: Any) -> Any:
        """See Frame."""
        return self.xp.array(tensor, order="C")

    def calm(self) -> AbstractContextManager[Any]:
        """See Frame."""
        return self.xp.errstate(all="ignore")  # type: ignore[no-any-return]

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

    grain = 1

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.xp: Any = torch
        self.name, self.version = "torch", torch.__version__
        self._rng: Any = torch.Generator()
        self._rng.manual_seed(int.from_bytes(os.urandom(7), "little"))

    def buffer(self, nbytes: int) -> Any:
        """See Frame."""
        return bytearray(nbytes)

    def window(self, buffer: Any, low: int, high: int) -> Any:
        """See Frame."""
        return memoryview(buffer)[low:high]

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

    def calm(self) -> AbstractContextManager[Any]:
        """See Frame."""
        return nullcontext()

    def normal(self, n: int) -> Any:
        """See Frame."""
        return self.xp.randn(n, generator=self._rng)

    def uniform(self, n: int) -> Any:
        """See Frame."""
        return self.xp.rand(n, generator=self._rng)

    def integers(self, n: int, low: int, high: int) -> Any:
        """See Frame."""
        return self.xp.randint(low, high, (n,), generator=self._rng)


class CudaFrame(TorchFrame):
    """torch tensors in the memory of one device: ``view`` takes flat uint8 tensors, not host buffers."""

    grain = 16
    """A copy of a window can then move 16 bytes at a time."""

    def __init__(self, device: Any, *, default: bool = True) -> None:
        """``device`` is a ``cuda.Device``.

        ``default`` makes it torch's default device in this whole process, so that tensors made from lists (here, in
        the contract's reference) lie there too. Not for a process that runs a candidate: it slows every call of
        torch and shows.
        """
        super().__init__()
        self.device = device
        self._where: str = device.torch_device
        self._rng = None  # made at first use: a process that draws nothing touches no generator of the device
        if default and self._where != "cpu":
            self.xp.set_default_device(self._where)

    def trim(self, kept: int = KEPT_BYTES) -> None:
        """Give back what torch keeps of the device for itself where that is more than ``kept`` bytes."""
        if self._where != "cpu" and self.xp.cuda.memory_reserved() > kept:
            self.xp.cuda.empty_cache()

    def _generator(self) -> Any:
        if self._rng is None:
            self._rng = self.xp.Generator(device=self._where)
            self._rng.manual_seed(int.from_bytes(os.urandom(7), "little"))
        return self._rng

    def buffer(self, nbytes: int) -> Any:
        """See Frame; the bytes are not set."""
        return self.xp.empty(nbytes, dtype=self.xp.uint8, device=self._where)

    def window(self, buffer: Any, low: int, high: int) -> Any:
        """See Frame."""
        return buffer[low:high]

    def view(self, buffer: Any, start: int, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
        """See Frame."""
        kind = self._dtype(dtype)
        span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        if span == 0:
            return self.xp.empty(shape, dtype=kind, device=self._where)
        return buffer[start : start + span * kind.itemsize].view(kind).as_strided(shape, stride)

    def cast(self, tensor: Any, dtype: str) -> Any:
        """See Frame."""
        made = self.xp.as_tensor(tensor).to(device=self._where, dtype=self._dtype(dtype), copy=True)
        return made.contiguous()

    def normal(self, n: int) -> Any:
        """See Frame."""
        return self.xp.randn(n, generator=self._generator(), device=self._where, dtype=self.xp.float32)

    def uniform(self, n: int) -> Any:
        """See Frame."""
        return self.xp.rand(n, generator=self._generator(), device=self._where, dtype=self.xp.float32)

    def integers(self, n: int, low: int, high: int) -> Any:
        """See Frame."""
        return self.xp.randint(low, high, (n,), generator=self._generator(), device=self._where)


def out_of_memory(fault: BaseException) -> bool:
    """Whether ``fault`` is the device's memory being full, as torch or the driver says it."""
    return type(fault).__name__ == "OutOfMemoryError" or getattr(fault, "name", "") == "CUDA_ERROR_OUT_OF_MEMORY"


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
