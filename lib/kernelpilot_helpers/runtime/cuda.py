"""The GPU through its driver library alone: memory that two processes share, the arm's stream, facts of the device.

Everything is bound when the Device is made, which is before a candidate's code is imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import uuid
from collections.abc import Iterator
from typing import Any

from .forge import arch_name

LIBRARY = "libcuda.so.1"
PAGE = 2 << 20
"""Handles are given out for whole pages: the driver packs smaller allocations together and would share neighbours."""
NON_BLOCKING = 1
LAZY_PEER_ACCESS = 1
LIMIT_PERSISTING_L2 = 6
ACCESS_WINDOW = 1
"""CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW."""
SM_COUNT, MEMORY_KHZ, BUS_BITS, L2_BYTES, MAJOR, MINOR = 16, 36, 37, 38, 75, 76
"""Numbers of CUdevice_attribute (cuda.h)."""


class CudaError(Exception):
    """A driver call that failed: ``name`` as in cuda.h."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.code = code
        self.name = name


class _Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


class _Window(ctypes.Structure):
    """CUaccessPolicyWindow in the 64 bytes of CUstreamAttrValue."""

    _fields_ = [
        ("base", ctypes.c_void_p), ("size", ctypes.c_size_t), ("ratio", ctypes.c_float), ("hit", ctypes.c_int),
        ("miss", ctypes.c_int), ("rest", ctypes.c_char * 36),
    ]  # fmt: skip


class Driver:
    """The driver's functions by name; a result other than 0 raises CudaError."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self._bound: dict[str, Any] = {}

    def has(self, name: str) -> bool:
        """Whether this driver exports ``name``."""
        return hasattr(self._library, name)

    def bind(self, name: str, *types: Any) -> None:
        """Declare the argument types of ``name``; integers that are pointers must not be cut to 32 bits."""
        function = getattr(self._library, name)
        function.argtypes = types
        self._bound[name] = function

    def call(self, name: str, *arguments: Any) -> None:
        """Call ``name``. Raises CudaError."""
        code = (self._bound.get(name) or getattr(self._library, name))(*arguments)
        if code:
            raise CudaError(name, code, self.error_name(code))

    def code(self, name: str, *arguments: Any) -> int:
        """The result of ``name``, whatever it is."""
        return int((self._bound.get(name) or getattr(self._library, name))(*arguments))

    def error_name(self, code: int) -> str:
        """The constant's name of an error."""
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        return (text.value or b"CUDA_ERROR").decode()


def present() -> bool:
    """Whether there is a driver with at least one GPU; makes no context."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    count = ctypes.c_int()
    return library.cuInit(0) == 0 and library.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def first_uuid() -> str:
    """The UUID of the first visible GPU; makes no context. Raises CudaError."""
    driver, number = Driver(), ctypes.c_int()
    driver.call("cuInit", 0)
    driver.call("cuDeviceGet", ctypes.byref(number), 0)
    return _uuid_of(driver, number)


def _uuid_of(driver: Driver, number: ctypes.c_int) -> str:
    raw = (ctypes.c_ubyte * 16)()
    driver.call("cuDeviceGetUuid_v2" if driver.has("cuDeviceGetUuid_v2") else "cuDeviceGetUuid", raw, number)
    return f"GPU-{uuid.UUID(bytes=bytes(raw))}"


class _Raw:
    """What torch reads to wrap memory that it did not allocate."""

    def __init__(self, pointer: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,), "typestr": "|u1", "data": (pointer, False), "strides": None, "version": 3,
        }  # fmt: skip


class Block:
    """Device memory as one flat uint8 tensor. ``handle`` names it to another process."""

    def __init__(self, device: Device, pointer: int, nbytes: int, *, handle: str, owned: bool) -> None:
        import torch

        self.pointer = pointer
        self.nbytes = nbytes
        self.handle = handle
        self.tensor: Any = torch.as_tensor(_Raw(pointer, nbytes), device=device.torch_device)
        self._device = device
        self._owned = owned

    def close(self) -> None:
        """Give the memory back; views of it must not be used afterwards."""
        if self.pointer:
            pointer, self.pointer, self.tensor = self.pointer, 0, None
            name = "cuMemFree_v2" if self._owned else "cuIpcCloseMemHandle"
            with contextlib.suppress(CudaError):  # a context that died has freed it
                self._device.driver.call(name, ctypes.c_uint64(pointer))


class Device:
    """The first visible GPU in this process."""

    def __init__(self) -> None:
        self.driver = driver = Driver()
        driver.bind("cuMemAlloc_v2", ctypes.c_void_p, ctypes.c_size_t)
        driver.bind("cuIpcOpenMemHandle_v2", ctypes.c_void_p, _Handle, ctypes.c_uint)
        if driver.has("cuStreamGetAttribute"):
            driver.bind("cuStreamGetAttribute", ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        driver.bind("cuCtxGetLimit", ctypes.c_void_p, ctypes.c_int)
        driver.call("cuInit", 0)
        self._number = ctypes.c_int()
        driver.call("cuDeviceGet", ctypes.byref(self._number), 0)
        context = ctypes.c_void_p()
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._number)
        driver.call("cuCtxSetCurrent", context)
        import torch

        self.torch_device = "cuda"
        torch.zeros(1, device="cuda")  # torch joins the primary context
        self._torch = torch.cuda
        self._sleep = torch.cuda._sleep
        self._stream: Any = None
        self.machine: Any = None
        """Our own kernels in this process, once something is captured or played."""
        self.facts = self._facts()

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        code = self.driver.code("cuDeviceGetAttribute", ctypes.byref(value), number, self._number)
        return 0 if code else value.value

    def _facts(self) -> dict[str, Any]:
        driver, text = self.driver, ctypes.create_string_buffer(256)
        driver.call("cuDeviceGetName", text, 256, self._number)
        name = text.value.decode(errors="replace")
        total, version = ctypes.c_size_t(), ctypes.c_int()
        driver.call("cuDeviceTotalMem_v2", ctypes.byref(total), self._number)
        driver.call("cuDriverGetVersion", ctypes.byref(version))
        major, minor = self._attribute(MAJOR), self._attribute(MINOR)
        peak = 2.0 * self._attribute(MEMORY_KHZ) * 1e3 * self._attribute(BUS_BITS) / 8 / 1e9
        return {
            "gpu": name,
            "gpu_uuid": _uuid_of(driver, self._number),
            "arch": arch_name(major, minor),
            "sm_count": self._attribute(SM_COUNT),
            "l2_bytes": self._attribute(L2_BYTES),
            "memory_bytes": total.value,
            "dram_gbs": round(peak, 1),
            "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
        }

    def allocate(self, nbytes: int) -> Block:
        """Memory that one other process may attach by ``handle``. Raises CudaError."""
        size = max(-(-nbytes // PAGE), 1) * PAGE
        pointer, handle = ctypes.c_uint64(), _Handle()
        self.driver.call("cuMemAlloc_v2", ctypes.byref(pointer), size)
        self.driver.call("cuIpcGetMemHandle", ctypes.byref(handle), pointer)
        raw = ctypes.string_at(ctypes.byref(handle), ctypes.sizeof(handle))
        return Block(self, pointer.value, nbytes, handle=raw.hex(), owned=True)

    def attach(self, handle: str, nbytes: int) -> Block:
        """The memory that another process allocated. Raises CudaError."""
        pointer = ctypes.c_uint64()
        raw = _Handle.from_buffer_copy(bytes.fromhex(handle))
        self.driver.call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), raw, LAZY_PEER_ACCESS)
        return Block(self, pointer.value, nbytes, handle=handle, owned=False)

    def synchronize(self) -> None:
        """Wait for everything that this process has given to the GPU, on any stream. Raises CudaError."""
        self.driver.call("cuCtxSynchronize")

    def free_bytes(self) -> int:
        """Free memory of the device."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def reset_persisting_l2(self) -> None:
        """Nothing stays in the second-level cache by request; devices without the feature have nothing to reset."""
        self.driver.code("cuCtxResetPersistingL2Cache")
        self.driver.code("cuCtxSetLimit", LIMIT_PERSISTING_L2, ctypes.c_size_t(0))

    def persisting(self) -> str:
        """What is asked to stay in the second-level cache, in words; empty where nothing is."""
        limit, window = ctypes.c_size_t(), _Window()
        self.driver.code("cuCtxGetLimit", ctypes.byref(limit), LIMIT_PERSISTING_L2)
        if limit.value:
            return f"{limit.value} bytes of the second-level cache are set aside for data that stays"
        stream = ctypes.c_void_p(int(self.own_stream().cuda_stream))
        self.driver.code("cuStreamGetAttribute", stream, ACCESS_WINDOW, ctypes.byref(window))
        return f"the stream has an access policy window of {window.size} bytes" if window.size else ""

    def own_stream(self) -> Any:
        """The arm's own non-blocking stream as torch's object; made once."""
        if self._stream is None:
            raw = ctypes.c_void_p()
            self.driver.call("cuStreamCreate", ctypes.byref(raw), NON_BLOCKING)
            self._stream = self._torch.ExternalStream(raw.value)
        return self._stream

    @contextlib.contextmanager
    def stream(self) -> Iterator[int]:
        """Make the arm's own stream torch's current one; the raw handle is given."""
        own = self.own_stream()
        with self._torch.stream(own):
            yield int(own.cuda_stream)

    def take_stream_back(self) -> None:
        """Make the arm's own stream current again, whatever a candidate left behind."""
        self._torch.set_stream(self.own_stream())

    def delay(self, us: float) -> None:
        """Keep the current stream busy for about so long (at 2 GHz)."""
        self._sleep(int(us * 2000))


def open_device() -> Device:
    """The device of this process; the context is made here. Raises CudaError."""
    return Device()
