"""Launch a kernel of a built module on the current stream: the driver's own call, arguments packed once a signature.

Nothing here waits for the GPU; a kernel's fault shows at the next synchronization.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from . import cubin
from .forge import BuildError
from .usage import readable

Dim = int | tuple[int, ...]
"""Blocks or threads in x, or in (x, y) or (x, y, z)."""
ONE = (1, 1, 1)
STATIC_LIMIT = 48 * 1024
"""Bytes of shared memory that a block may have without being asked for."""
PORTABLE_CLUSTER = 8
STATIC_SHARED, DYNAMIC_SHARED, ODD_CLUSTER = 1, 8, 14
COOPERATIVE, CLUSTER, SERIALIZATION = 2, 4, 6
"""Function and launch attributes, numbered as in ``cuda.h``."""
INT32 = 1 << 31


class LaunchError(Exception):
    """The driver refused a call, or an argument cannot be passed; the message says which and why."""


class _Value(ctypes.Union):
    _fields_ = (("flag", ctypes.c_int), ("dims", ctypes.c_uint * 3), ("pad", ctypes.c_char * 64))


class _Attribute(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_uint), ("pad", ctypes.c_char * 4), ("value", _Value))


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint),
    )  # fmt: skip


@lru_cache(maxsize=1)
def driver() -> Any:
    """libcuda. Raises LaunchError where there is none."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as fault:
        raise LaunchError(f"no NVIDIA driver here: {fault}") from fault
    library.cuLaunchKernelEx.argtypes = [ctypes.c_void_p] * 4
    library.cuModuleLoadData.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.cuModuleGetFunction.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]
    library.cuModuleGetGlobal_v2.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_char_p]
    library.cuMemcpyDtoH_v2.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t]
    library.cuFuncGetAttribute.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    library.cuFuncSetAttribute.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    library.cuGetErrorName.argtypes = [ctypes.c_int, ctypes.c_void_p]
    return library


def check(code: int, what: str) -> None:
    """Raise LaunchError with the driver's name for ``code`` unless it is 0."""
    if code:
        name = ctypes.c_char_p()
        driver().cuGetErrorName(code, ctypes.byref(name))
        raise LaunchError(f"{what}: {(name.value or b'unknown error').decode()} ({code})")


@lru_cache(maxsize=1)
def _stream_reader() -> Callable[[], int]:
    import torch

    index = torch.cuda.current_device()
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # a tenth of the public call's time
    if raw is not None:
        return lambda: int(raw(index))
    return lambda: int(torch.cuda.current_stream().cuda_stream)


class Module:
    """One built cubin, loaded where there is a GPU."""

    def __init__(self, data: bytes, name: str, *, load: bool) -> None:
        self.name = name
        self.kernels = tuple(k.name for k in cubin.kernels(data))
        """Symbols of the kernels in it."""
        self._handle: ctypes.c_void_p | None = None
        if load:
            self._handle = ctypes.c_void_p()
            check(driver().cuModuleLoadData(ctypes.byref(self._handle), data), f"loading {name}")

    def kernel(self, symbol: str) -> Kernel:
        """The kernel called ``symbol``: its symbol, or its name as a build shows it (``norm<128>``).

        Raises BuildError, naming those that are there.
        """
        symbol = self._find(symbol)
        function = ctypes.c_void_p()
        if self._handle is not None:
            code = driver().cuModuleGetFunction(ctypes.byref(function), self._handle, symbol.encode())
            check(code, f"looking up {symbol}")
        return Kernel(symbol, function.value)

    def _find(self, name: str) -> str:
        if name in self.kernels:
            return name
        shown = {k: readable(k) for k in self.kernels}
        meant = [k for k, read in shown.items() if read.replace(" ", "") == name.replace(" ", "")]
        if len(meant) == 1:
            return meant[0]
        if meant:
            raise BuildError(f"{self.name} has several kernels {name!r}: give a symbol, one of {', '.join(meant)}")
        there = ", ".join(k if k == read else f"{read} ({k})" for k, read in shown.items()) or "none"
        raise BuildError(f'{self.name} has no kernel {name!r} (there: {there}); declare it extern "C"')

    def symbol(self, name: str) -> tuple[int, int]:
        """Device address and size in bytes of a global. Raises LaunchError where it, or the GPU, is not there."""
        if self._handle is None:
            raise LaunchError(f"{self.name} was compiled without a GPU: nothing of it can be read")
        where, size = ctypes.c_uint64(), ctypes.c_size_t()
        code = driver().cuModuleGetGlobal_v2(
            ctypes.byref(where), ctypes.byref(size), self._handle, name.encode()
        )  # fmt: skip
        check(code, f"looking up {name}")
        return where.value, size.value

    def read(self, name: str) -> bytes:
        """The bytes of a global, copied from the device."""
        where, size = self.symbol(name)
        data = ctypes.create_string_buffer(size)
        check(driver().cuMemcpyDtoH_v2(data, where, size), f"reading {name}")
        return data.raw


class Kernel:
    """A kernel that is launched by calling it."""

    def __init__(self, name: str, function: int | None) -> None:
        self.name = name
        self._function = function
        self._raised = 0
        self._configs: dict[Any, _Config] = {}
        self._packs: dict[tuple[type, ...], _Pack] = {}

    def __call__(self, grid: Dim, block: Dim, args: Sequence[Any], *, shared: int = 0, stream: Any = None) -> None:
        """Launch ``grid`` blocks of ``block`` threads with ``shared`` bytes of dynamic shared memory.

        ``args``: torch CUDA tensors (their address), Python int (int32), float (float32), bool, or a ctypes value
        such as ``build.i64(n)``. ``stream``: a raw handle or torch's stream; None is torch's current stream.
        Raises LaunchError.
        """
        self.launch((grid, block, shared, ONE, False, False), args, stream)

    def launch(self, shape: tuple[Any, ...], args: Sequence[Any], stream: Any) -> None:
        """(grid, block, shared, cluster, pdl, cooperative) and what ``__call__`` takes."""
        try:
            config = self._configs.get(shape) or self._prepare(shape)
        except TypeError:
            raise LaunchError(f"{self.name}: grid and block are whole numbers or tuples of them: {shape[:2]}") from None
        kinds = tuple(map(type, args))
        pack = self._packs.get(kinds)
        if pack is None:
            pack = self._packs[kinds] = _Pack(self.name, args)
        pack.fill(args)
        if stream is None:
            config.stream = _stream_reader()()
        else:
            config.stream = stream if isinstance(stream, int) else stream.cuda_stream
        code = driver().cuLaunchKernelEx(ctypes.addressof(config), self._function, pack.address, None)
        if code:
            check(code, f"{self.name}: launch of grid {shape[0]}, block {shape[1]}, {shape[2]} bytes shared")

    def _prepare(self, shape: tuple[Any, ...]) -> _Config:
        grid, block, shared, cluster, pdl, cooperative = shape
        if self._function is None:
            raise LaunchError(f"{self.name} was compiled without a GPU and cannot be launched")
        wanted = _dims(cluster)
        attributes = [(COOPERATIVE, 1)] * bool(cooperative) + [(SERIALIZATION, 1)] * bool(pdl)
        memory = (_Attribute * 3)()
        for entry, (kind, flag) in zip(memory, attributes, strict=False):
            entry.kind, entry.value.flag = kind, flag
        count = len(attributes)
        if wanted != ONE:
            memory[count].kind, memory[count].value.dims = CLUSTER, (ctypes.c_uint * 3)(*wanted)
            count += 1
            if wanted[0] * wanted[1] * wanted[2] > PORTABLE_CLUSTER:
                check(driver().cuFuncSetAttribute(self._function, ODD_CLUSTER, 1), f"{self.name}: cluster {wanted}")
        self._raise_shared(shared)
        config = _Config(
            (ctypes.c_uint * 3)(*_dims(grid)), (ctypes.c_uint * 3)(*_dims(block)), shared, None,
            ctypes.cast(memory, ctypes.POINTER(_Attribute)) if count else None, count,
        )  # fmt: skip
        config.keep = memory  # the driver reads it at every launch
        self._configs[shape] = config
        return config

    def _raise_shared(self, shared: int) -> None:
        """More than 48 KiB a block must be asked for, once a kernel."""
        static = ctypes.c_int()
        check(driver().cuFuncGetAttribute(ctypes.byref(static), STATIC_SHARED, self._function), self.name)
        if shared + static.value > STATIC_LIMIT and shared > self._raised:
            what = f"{self.name}: {shared} bytes of dynamic and {static.value} of static shared memory"
            check(driver().cuFuncSetAttribute(self._function, DYNAMIC_SHARED, shared), what)
            self._raised = shared


class _Pack:
    """Cells for one signature, filled at each launch; the driver copies them before the call returns."""

    def __init__(self, kernel: str, args: Sequence[Any]) -> None:
        self._params = (ctypes.c_void_p * max(1, len(args)))()
        self.address = ctypes.addressof(self._params)
        self._put = [self._setter(kernel, i, arg) for i, arg in enumerate(args)]

    def fill(self, args: Sequence[Any]) -> None:
        """Put the values of one launch in place."""
        for put, arg in zip(self._put, args, strict=True):
            put(arg)

    def _setter(self, kernel: str, index: int, arg: Any) -> Callable[[Any], None]:
        what = f"{kernel}: args[{index}]"
        if hasattr(arg, "data_ptr"):
            return self._tensor(what, index)
        if isinstance(arg, bool):
            return self._scalar(index, ctypes.c_bool)
        if isinstance(arg, int):
            return self._int32(what, index)
        if isinstance(arg, float):
            return self._scalar(index, ctypes.c_float)
        try:
            ctypes.addressof(arg)
        except TypeError:
            kind = type(arg).__name__
            fix = "give a tensor" if arg is None else "give a CUDA tensor, int, float, bool or a ctypes value"
            raise LaunchError(f"{what} is {'None' if arg is None else f'a {kind}'}: {fix}") from None
        params = self._params

        def put(value: Any) -> None:
            params[index] = ctypes.addressof(value)

        return put

    def _cell(self, index: int, kind: type[Any]) -> Any:
        cell = kind()
        self._params[index] = ctypes.addressof(cell)
        return cell

    def _scalar(self, index: int, kind: type[Any]) -> Callable[[Any], None]:
        cell = self._cell(index, kind)

        def put(value: Any) -> None:
            cell.value = value

        return put

    def _int32(self, what: str, index: int) -> Callable[[Any], None]:
        cell = self._cell(index, ctypes.c_int32)

        def put(value: int) -> None:
            if not -INT32 <= value < INT32:
                raise LaunchError(f"{what} = {value} does not fit int32: declare it long long and give build.i64(n)")
            cell.value = value

        return put

    def _tensor(self, what: str, index: int) -> Callable[[Any], None]:
        cell = self._cell(index, ctypes.c_void_p)

        def put(tensor: Any) -> None:
            if not tensor.is_cuda:
                raise LaunchError(f"{what} is a tensor in host memory: a kernel needs one on the GPU")
            cell.value = tensor.data_ptr()

        return put


def _dims(given: Dim) -> tuple[int, int, int]:
    values = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise LaunchError(f"{given}: one to three whole numbers above zero")
    return (*values, 1, 1)[:3]  # type: ignore[return-value]


def launch_ex(  # noqa: PLR0913  (the driver's own attributes, by name)
    kernel: Kernel, grid: Dim, block: Dim, args: Sequence[Any], *, shared: int = 0, cluster: Dim = ONE,
    pdl: bool = False, cooperative: bool = False, stream: Any = None,
) -> None:  # fmt: skip
    """Launch with attributes: a thread block ``cluster``, programmatic dependent launch, a cooperative grid.

    ``pdl`` lets the kernel start before the one ahead of it on the stream has ended: it must wait for that one's
    results itself (``cudaGridDependencySynchronize``). Raises LaunchError.
    """
    kernel.launch((grid, block, shared, cluster, pdl, cooperative), args, stream)


def i64(value: int) -> ctypes.c_int64:
    """A whole number passed as ``long long``."""
    return ctypes.c_int64(value)


def f64(value: float) -> ctypes.c_double:
    """A number passed as ``double``."""
    return ctypes.c_double(value)
