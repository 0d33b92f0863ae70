"""What ptxas and a cubin say of kernels, against figures written out by hand."""

from __future__ import annotations

import hashlib

import pytest

from kernelpilot_helpers.runtime import cubin, usage
from tests.cubins import cubin as make

LOG = """ptxas info    : 65 bytes gmem
ptxas info    : Compiling entry function '_Z4normILi128EEvPf' for 'sm_90a'
ptxas info    : Function properties for _Z6helperv
    8 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads
ptxas info    : Function properties for _Z4normILi128EEvPf
ptxas         .     256 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 79 registers, used 1 barriers, 256 bytes cumulative stack size, 1024 bytes smem, 392 bytes cmem[0]
ptxas info    : Compiling entry function 'add' for 'sm_90a'
ptxas info    : Function properties for add
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
"""
CODE = {"_Z4normILi128EEvPf": b"\x01" * 32, "add": b"\x02" * 16}
BUILT = make(CODE, registers={"add": 10, "_Z4normILi128EEvPf": 79}, frame={"_Z4normILi128EEvPf": 256})


def test_a_log_is_read_kernel_by_kernel_and_helpers_are_left_out() -> None:
    """Breaks when a device function's spills are booked to the kernel that calls it."""
    assert usage.parse(LOG) == {
        "_Z4normILi128EEvPf": {
            "registers": 79, "shared": 1024, "stack": 256, "spill_stores": 24, "spill_loads": 32,
        },
        "add": {"registers": 10, "shared": 0, "stack": 0, "spill_stores": 0, "spill_loads": 0},
    }  # fmt: skip


def test_a_cubin_names_its_kernels_and_their_code_without_any_tool() -> None:
    """Breaks when kernels of a Triton cubin, which has no log, lose their registers or take another's."""
    norm, add = usage.of_build(BUILT, "")
    assert (norm["name"], norm["registers"], norm["stack"]) == ("norm<128>", 79, 256)
    assert (add["name"], add["registers"], add["stack"]) == ("add", 10, 0)
    assert add["sass_sha256"] == hashlib.sha256(b"\x02" * 16).hexdigest()


def test_the_log_completes_what_the_cubin_says() -> None:
    """Breaks when spills, which only the log knows, are lost."""
    norm, add = usage.of_build(BUILT, LOG)
    assert (norm["spill_stores"], norm["spill_loads"], norm["shared"]) == (24, 32, 1024)
    assert add["shared"] == 0


def test_machine_code_is_compared_without_the_build_id() -> None:
    """Breaks when the stamp of an arm makes equal kernels differ."""
    one, two = (make(CODE, registers={}, frame={}, extra=i * 64 + b"\0") for i in (b"a", b"b"))
    assert one != two
    assert [k.sass_sha256 for k in cubin.kernels(one)] == [k.sass_sha256 for k in cubin.kernels(two)]
    assert (cubin.build_id(one), cubin.build_id(two)) == ("a" * 64, "b" * 64)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x7fELF", BUILT[:100], BUILT[:-70], b"#!/bin/sh\n" * 50, BUILT.replace(b"\x7fELF\x02", b"\x7fELF\x01")],
)
def test_what_is_no_cubin_has_no_kernels(data: bytes) -> None:
    """Breaks when a cut or foreign file ends the job with a traceback."""
    assert usage.of_build(data, "") == []


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("add", "add"),
        ("_Z3addPf", "add"),
        ("_ZN4deep5innerEPf", "deep::inner"),
        ("_Z2mmILi128ELi64ELb1EEvPf", "mm<128, 64, 1>"),
        ("_Z5shiftILin3EEvPf", "shift<-3>"),
        ("_Z2mmIfEvPT_", "_Z2mmIfEvPT_"),
        ("_ZN36_GLOBAL__N__416baeb8_9_kernel_cu_add1qEPi", "(anonymous)::q"),
    ],
)
def test_plain_names_of_symbols(symbol: str, name: str) -> None:
    """Breaks when a template's arguments are dropped, so that two kernels share a name."""
    assert usage.readable(symbol) == name
