"""The stand-in for runtime/cuda.py: one device whose memory is files and whose tensors are the CPU's."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any

FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()  # noqa: PTH112
UUID = f"GPU-{uuid.uuid4()}"
"""Another one in each process: jobs of tests that run beside each other hold different locks."""
PREFIX = "CUDA_FAKE_"
"""Variables with this prefix reach the worker: the runtime lets CUDA_* through."""


class CudaError(Exception):
    """A driver call that failed."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.code = code
        self.name = name


def present() -> bool:
    """There is a device unless a test took it away."""
    return os.environ.get(PREFIX + "ABSENT") != "1"


def first_uuid() -> str:
    """The device's UUID, without opening it."""
    return UUID


class Block:
    """Shared memory as one flat uint8 tensor."""

    def __init__(self, path: str, nbytes: int, *, owned: bool) -> None:
        import torch

        fd = os.open(path, os.O_RDWR | (os.O_CREAT if owned else 0), 0o600)
        if owned:
            os.ftruncate(fd, max(nbytes, 1))
        self._map = mmap.mmap(fd, max(nbytes, 1))
        os.close(fd)
        self.nbytes = nbytes
        self.handle = path.encode().hex()
        self.tensor: Any = torch.frombuffer(self._map, dtype=torch.uint8)[:nbytes]
        self._owned = owned
        self._path = path

    def close(self) -> None:
        """Drop the name; the memory goes with its last view."""
        self.tensor = None
        if self._owned:
            with contextlib.suppress(OSError):
                os.unlink(self._path)  # noqa: PTH108


class Device:
    """The stand-in."""

    def __init__(self) -> None:
        self.torch_device = "cpu"
        self.machine: Any = None
        self.facts = {
            "gpu": "stand-in", "gpu_uuid": UUID, "arch": "sm_90a", "sm_count": 4,
            "l2_bytes": 1 << 20, "memory_bytes": 8 << 30, "dram_gbs": 1e4, "cuda": "13.0",
        }  # fmt: skip

    def allocate(self, nbytes: int) -> Block:
        """Memory that another process may attach."""
        return Block(os.path.join(FOLDER, f"kpfake-{os.urandom(8).hex()}"), nbytes, owned=True)  # noqa: PTH118

    def attach(self, handle: str, nbytes: int) -> Block:
        """The memory behind a handle."""
        return Block(bytes.fromhex(handle).decode(), nbytes, owned=False)

    def synchronize(self) -> None:
        """Nothing runs behind the caller's back here."""

    def free_bytes(self) -> int:
        """As much as a small GPU has."""
        return 8 << 30

    def reset_persisting_l2(self) -> None:
        """There is none."""

    def persisting(self) -> str:
        """Nothing ever is."""
        return ""

    @contextlib.contextmanager
    def stream(self) -> Iterator[int]:
        """There is one stream."""
        yield 0

    def delay(self, us: float) -> None:
        """Nothing can overtake anything."""


def open_device() -> Device:
    """The stand-in device."""
    return Device()
