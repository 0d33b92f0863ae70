"""What ran on the GPU: names as a profiler gives them, and which kernels an arm may call its own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from kernelpilot_helpers.runtime import inventory

CUBIN = b"\x7fELF\0.text._Z3rmsILi256EEvPKfPf\0_ZN4mine7softmaxIfLi4EEEvPT_\0.text.plain_kernel\0"
TRITON = b"\x7fELF\0.text.add_rmsnorm_kernel\0.nv.info.add_rmsnorm_kernel\0"


def has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "triton" / "ab12").mkdir(parents=True)
    (tmp_path / "kernel.cubin").write_bytes(CUBIN)
    (tmp_path / "triton" / "ab12" / "k.cubin").write_bytes(TRITON)
    (tmp_path / "notes.txt").write_bytes(b"_Z4evilv nvjet_tst_128x128")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("void rms<256>(float const*, float*)", True),
        ("void mine::softmax<float, 4>(float*)", True),
        ("plain_kernel", True),
        ("add_rmsnorm_kernel", True),
        ("_Z3rmsILi256EEvPKfPf", True),
        # the same identifier in somebody else's namespace
        ("void theirs::softmax<float, 4>(float*)", False),
        # part of a longer word
        ("rms_kernel", False),
        ("rmsnorm_kernel", False),
        ("void rm<256>(float const*)", False),
        ("evil()", False),
        ("Memcpy DtoD (Device -> Device)", False),
        ("Memset (Device)", False),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32", False),
    ],
)
def test_a_kernel_is_own_when_a_built_file_defines_it(built: Path, name: str, own: bool) -> None:
    """Breaks when a library kernel counts as the candidate's work, or a candidate's as a library's."""
    assert inventory.ours([name], built) == {name: own}


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
        "nvjet_tst_128x128_64x6_1x2_h_bz_coopA_NNT",
        "sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize64x64x64",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(cutlass_80_tensorop_bf16_s16816gemm::Params)",
    ],
)
def test_a_decoy_of_a_librarys_name_owns_nothing(tmp_path: Path, name: str) -> None:
    """Breaks when a candidate may take over a vendor's kernel by compiling one of the same name."""
    path = inventory.path_of(name)
    mangled = b"".join(b"%d%s" % (len(p), p.encode()) for p in path)
    (tmp_path / "decoy.so").write_bytes(b"\0_ZN" + mangled + b"IiEEvv\0" + path[-1].encode() + b"\0")
    assert inventory.ours([name], tmp_path) == {name: False}


@pytest.mark.parametrize(
    "name",
    [
        "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi",
        "_ZN2at6native12_GLOBAL__N_15indexIfEEvPT_",
        "_ZN7cutlass7Kernel2I36cutlass_80_tensorop_bf16_s16816gemmEEvN5ParamsE",
        "nvjet_tst_128x128_64x6_1x2_h_bz_coopA_NNT",
        "memset",
        "memcpy",
        "graph",
        "host function",
    ],
)
def test_a_graphs_word_for_the_librarys_work_owns_nothing(tmp_path: Path, name: str) -> None:
    """Breaks when a mangled name of the framework, or a kernel called memset, is taken for the candidate's own."""
    (tmp_path / "decoy.so").write_bytes(b"\0" + name.encode() + b"\0")
    assert inventory.ours([name], tmp_path) == {name: False}


@pytest.mark.parametrize(
    "name",
    [
        "_ZN4mine39_GLOBAL__N__d364098d_7_tmpl_cu_acc5a52f6hiddenIfEEvPT_",
        "_ZN55_GLOBAL__N__1234abcd_9_kernel_cu_00000000_11111111_99997softmaxEPf",
        "_Z6scaledIN3c108BFloat16EEvPT_",
        "_ZL9file_onlyPf",
        "add_rmsnorm_kernel",
    ],
)
def test_a_graphs_word_for_an_own_kernel_is_found(tmp_path: Path, name: str) -> None:
    """Breaks when an honest candidate needs the profiler, which takes seconds."""
    (tmp_path / "k.so").write_bytes(b"\0" + name.encode() + b"\0")
    assert inventory.ours([name, name + "x"], tmp_path) == {name: True, name + "x": False}


def test_mangled_names_are_taken_apart() -> None:
    assert inventory.mangled_path("_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi") == (
        "at", "native", "vectorized_elementwise_kernel",
    )  # fmt: skip
    assert inventory.mangled_path("_ZN4mine12_GLOBAL__N_16hiddenEPf") == ("mine", "hidden")
    assert inventory.mangled_path("_ZL4tilePf") == ("tile",)
    assert inventory.mangled_path("_Z3rmsILi256EEvPKfPf") == ("rms",)
    assert inventory.mangled_path("plain_kernel") == ()


def test_an_own_kernel_may_take_the_frameworks_types(tmp_path: Path) -> None:
    """Breaks when an argument type of the framework makes an honest kernel a library's."""
    (tmp_path / "k.so").write_bytes(b"\0_Z6scaledIN3c108BFloat16EEvPT_\0")
    name = "void scaled<c10::BFloat16>(c10::BFloat16*, at::PhiloxCudaState)"
    assert inventory.ours([name], tmp_path) == {name: True}


def test_unnamed_namespaces_and_templated_classes_are_found_as_the_compiler_writes_them(tmp_path: Path) -> None:
    """Breaks when an honest kernel of a library-like style counts as somebody else's."""
    (tmp_path / "k.so").write_bytes(
        b"\0_ZN4mine39_GLOBAL__N__d364098d_7_tmpl_cu_acc5a52f6hiddenIfEEvPT_\0_ZN4mine4TileILi4EE3runIfEEvPT_\0"
    )
    names = ["void mine::(anonymous namespace)::hidden<float>(float*)", "void mine::Tile<4>::run<float>(float*)"]
    (tmp_path / "l.so").write_bytes(b"\0_Z13rmsnormalizedPf\0")
    assert inventory.ours(["rms(float*)", "rmsnormalized(float*)"], tmp_path) == {
        "rms(float*)": False, "rmsnormalized(float*)": True,
    }  # fmt: skip
    other = "void yours::Tile<4>::run<float>(float*)"
    assert inventory.ours([*names, other], tmp_path) == {names[0]: True, names[1]: True, other: False}


def test_the_names_of_real_profiles_are_taken_apart() -> None:
    assert inventory.path_of("void at::native::(anonymous namespace)::index<float, (int)4>(float*)") == (
        "at", "native", "index",
    )  # fmt: skip
    assert inventory.path_of("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, 7>(X)") == (
        "internal", "gemvx", "kernel",
    )  # fmt: skip
    assert inventory.path_of("rms(float*) [clone .kd]") == ("rms",)
    assert inventory.path_of("Memcpy HtoD (Pinned -> Device)") == ()
    assert inventory.path_of("") == ()


def test_records_are_summed_and_the_span_covers_gaps_between_streams() -> None:
    records = [("b", 1000, 50), ("a", 1020, 10), ("a", 1100, 20)]
    assert inventory.gather(records) == ([["b", 1, 50], ["a", 2, 30]], 120)
    assert inventory.gather([]) == ([], 0)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch in this Python")
@pytest.mark.skipif(has_gpu(), reason="this machine has a GPU: nothing to refuse")
def test_without_activity_records_it_says_so() -> None:
    class Device:
        torch_device = "cpu"

        def synchronize(self) -> None: ...

    with pytest.raises(inventory.Unwatched, match=r"no GPU activity|no profiler"):
        inventory.watch(Device(), lambda: None)


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu(), reason="no GPU here")
def test_a_watched_call_names_its_kernels() -> None:
    import torch

    from kernelpilot_helpers.runtime import cuda

    device = cuda.open_device()
    x = torch.ones(1 << 20, device="cuda")
    kernels, span = inventory.watch(device, lambda: x.add_(1.0))
    assert [k[1] for k in kernels] == [1] and "elementwise" in kernels[0][0] and span == kernels[0][2] > 0
