"""Launches against a driver that writes down what it was told: arguments, attributes, limits, named errors."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from kernelpilot_helpers.runtime import launch, tma
from kernelpilot_helpers.runtime.forge import BuildError
from tests.cubins import cubin

STREAM = 0x5EED
KINDS = {"i": ctypes.c_int32, "l": ctypes.c_int64, "f": ctypes.c_float, "d": ctypes.c_double, "p": ctypes.c_uint64}


class Driver:
    """Enough of libcuda: every launch is kept as plain values."""

    def __init__(self) -> None:
        self.signature = ""
        self.launches: list[dict[str, Any]] = []
        self.set: list[tuple[int, int]] = []
        self.static = 0
        self.refuse = 0
        self.maps: list[tuple[Any, ...]] = []
        self.cuTensorMapEncodeTiled = Encode(self)

    def cuModuleLoadData(self, handle: Any, _data: bytes) -> int:  # noqa: N802
        handle._obj.value = 7
        return 0

    def cuModuleGetFunction(self, function: Any, _module: Any, _name: bytes) -> int:  # noqa: N802
        function._obj.value = 0xF00
        return 0

    def cuFuncGetAttribute(self, value: Any, _which: int, _function: int) -> int:  # noqa: N802
        value._obj.value = self.static
        return 0

    def cuFuncSetAttribute(self, _function: int, which: int, value: int) -> int:  # noqa: N802
        self.set.append((which, value))
        return 0

    def cuGetErrorName(self, _code: int, name: Any) -> int:  # noqa: N802
        name._obj.value = b"CUDA_ERROR_INVALID_VALUE"
        return 0

    def cuLaunchKernelEx(self, config: int, function: int, params: int, extra: None) -> int:  # noqa: N802
        c = launch._Config.from_address(config)
        cells = (ctypes.c_void_p * len(self.signature)).from_address(params)
        attributes = [
            (a.kind, tuple(a.value.dims) if a.kind == launch.CLUSTER else a.value.flag)
            for a in (c.attributes[i] for i in range(c.count))
        ]
        self.launches.append({
            "grid": tuple(c.grid), "block": tuple(c.block), "shared": c.shared, "stream": c.stream,
            "attributes": attributes,
            "args": [KINDS[k].from_address(at).value for k, at in zip(self.signature, cells, strict=True)],
        })  # fmt: skip
        return self.refuse


class Encode:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __call__(self, at: int, dtype: int, rank: int, address: int, *rest: Any) -> int:
        assert at % 64 == 0
        self._driver.maps.append((dtype, rank, address, *(list(x) if hasattr(x, "_length_") else x for x in rest)))
        return self._driver.refuse


class Tensor:
    """What a launch needs of a torch tensor."""

    dtype = "torch.bfloat16"
    shape = (4, 64)

    def __init__(self, address: int, *, cuda: bool = True) -> None:
        self.is_cuda = cuda
        self._address = address

    def data_ptr(self) -> int:
        return self._address

    def dim(self) -> int:
        return 2

    def element_size(self) -> int:
        return 2

    def stride(self, axis: int | None = None) -> Any:
        return (64, 1) if axis is None else (64, 1)[axis]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver()
    for module in (launch, tma):
        monkeypatch.setattr(module, "driver", lambda: found)
    monkeypatch.setattr(launch, "_stream_reader", lambda: lambda: STREAM)
    monkeypatch.setattr(tma, "_made", {})
    return found


def kernel(*, load: bool = True) -> launch.Kernel:
    return launch.Module(cubin({"k": b"code"}, registers={}, frame={}), "k.cubin", load=load).kernel("k")


def test_arguments_arrive_in_order_and_type_at_every_launch(driver: Driver) -> None:
    """Breaks when a later launch reuses an earlier one's values, or an int is passed 64 bits wide."""
    run, driver.signature = kernel(), "pifld"
    run((3, 2), 128, (Tensor(0x7000_0000_1000), -5, 0.5, launch.i64(1 << 40), launch.f64(0.1)))
    run((3, 2), 128, (Tensor(0x7000_0000_2000), 6, 1.5, launch.i64(2), launch.f64(0.2)), stream=9)
    first, second = driver.launches
    assert first["args"] == [0x7000_0000_1000, -5, 0.5, 1 << 40, 0.1]
    assert second["args"] == [0x7000_0000_2000, 6, 1.5, 2, 0.2]
    assert (first["grid"], first["block"], first["shared"], first["attributes"]) == ((3, 2, 1), (128, 1, 1), 0, [])
    assert (first["stream"], second["stream"]) == (STREAM, 9)


def test_attributes_of_a_launch(driver: Driver) -> None:
    """Breaks when an attribute is dropped or its number is another's."""
    run = kernel()
    launch.launch_ex(run, 16, 64, (), cluster=(2, 2), pdl=True, cooperative=True)
    launch.launch_ex(run, 16, 64, (), cluster=16)
    assert driver.launches[0]["attributes"] == [(2, 1), (6, 1), (4, (2, 2, 1))]
    assert driver.launches[1]["attributes"] == [(4, (16, 1, 1))]
    assert driver.set == [(14, 1)]


def test_shared_memory_above_48_kib_is_asked_for_once(driver: Driver) -> None:
    """Breaks when a large block is refused by the driver, or each launch pays for the asking."""
    run, driver.static = kernel(), 1024
    for shared in (47 * 1024, 48 * 1024, 48 * 1024, 64 * 1024, 50 * 1024):
        run(1, 1, (), shared=shared)
    assert driver.set == [(8, 48 * 1024), (8, 64 * 1024)]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((None,), r"k: args\[0\] is None: give a tensor"),
        ((1, Tensor(1, cuda=False)), r"args\[1\] is a tensor in host memory"),
        ((1 << 31,), r"args\[0\] = 2147483648 does not fit int32.*build.i64"),
        (("x",), r"args\[0\] is a str"),
    ],
)
def test_arguments_that_cannot_be_passed_are_named(driver: Driver, args: tuple[Any, ...], text: str) -> None:
    """Breaks when garbage reaches the kernel instead of an error."""
    with pytest.raises(launch.LaunchError, match=text):
        kernel()(1, 1, args)
    assert driver.launches == []


def test_a_refused_launch_names_the_drivers_error_and_the_shape(driver: Driver) -> None:
    """Breaks when a launch error is lost."""
    driver.refuse = 1
    with pytest.raises(launch.LaunchError, match=r"k: launch of grid 1, block 2048.*CUDA_ERROR_INVALID_VALUE \(1\)"):
        kernel()(1, 2048, ())


@pytest.mark.parametrize("grid", [0, (1, 0), (1, 1, 1, 1), [1, 1], "x"])
def test_a_grid_that_is_none_is_refused(driver: Driver, grid: Any) -> None:
    """Breaks when a wrong shape reaches the driver."""
    with pytest.raises(launch.LaunchError):
        kernel()(grid, 1, ())
    assert driver.launches == []


def test_without_a_gpu_kernels_are_known_and_not_launched() -> None:
    """Breaks when a build on a machine without a GPU needs the driver, or a wrong name is found only on the GPU."""
    with pytest.raises(launch.LaunchError, match="compiled without a GPU"):
        kernel(load=False)(1, 1, ())
    module = launch.Module(cubin({"k": b"code"}, registers={}, frame={}), "k.cubin", load=False)
    with pytest.raises(BuildError, match=r"no kernel 'q' \(there: k\)"):
        module.kernel("q")


def test_a_descriptor_is_given_innermost_first_and_made_once(driver: Driver) -> None:
    """Breaks when sizes, byte strides or the box go to the driver in torch's order."""
    one = tma.tensor_map(Tensor(0x1000), (2, 32), swizzle="64B")
    assert tma.tensor_map(Tensor(0x1000), (2, 32), swizzle="64B") is one
    assert tma.tensor_map(Tensor(0x2000), (2, 32), swizzle="64B") is not one
    assert driver.maps[0] == (9, 2, 0x1000, [64, 4], [128], [32, 2], [1, 1], 0, 2, 2, 0)
    with pytest.raises(launch.LaunchError, match="a box of 1 sizes for a tensor of 2 axes"):
        tma.tensor_map(Tensor(0x1000), (2,))
