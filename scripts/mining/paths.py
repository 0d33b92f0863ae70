"""What a path and the text behind it say: kernel (in which language), test, benchmark, tuning table, other hardware."""

from __future__ import annotations

import re

from mining.repos import Source

CUDA = (".cu", ".cuh", ".ptx")
CPP = (".h", ".hpp", ".hh", ".inl", ".inc", ".cpp", ".cc", ".cxx", ".jinja", ".td")
CODE = (*CUDA, *CPP, ".py")
DEVICE = re.compile(
    rb"__global__|__device__|CUTE_DEVICE|CUTE_HOST_DEVICE|CUTLASS_DEVICE|CUTLASS_HOST_DEVICE|CUTLASS_GLOBAL|"
    rb"_CCCL_DEVICE|_CCCL_HOST_DEVICE|asm volatile|__CUDA_ARCH__|<<<"
)
HOST = re.compile(
    rb"\bcutlass::|\bcute::|\bcudaStream_t\b|\bcudaLaunch|\bCUtensorMap\b|#include [<\"](?:cutlass|cute|cuda_|cuda\.h)"
)
"""C++ that prepares or launches kernels; it counts where its changed lines name a mechanism."""
PYTHON_MARKS = {
    "triton": re.compile(rb"^[ \t]*@(?:triton\.)?(?:jit|heuristics|autotune)\b|^[ \t]*@triton\.", re.M),
    "gluon": re.compile(rb"^[ \t]*@gluon\.jit\b", re.M),
    "cute-dsl": re.compile(
        rb"^[ \t]*@(?:cute\.(?:kernel|jit)|dsl_user_op|cutlass_dsl\.)|^[ \t]*import cutlass\b", re.M
    ),
    "tilelang": re.compile(rb"^[ \t]*@(?:T|tl|tilelang)\.(?:prim_func|jit|macro|autotune)\b|^[ \t]*@tilelang\b", re.M),
    "cutile": re.compile(rb"^[ \t]*@ct\.(?:kernel|function)\b", re.M),
}
PLAIN_JIT = re.compile(rb"^[ \t]*(?:import triton\b|from triton\b|import triton\.)", re.M)
TEST = re.compile(r"(^|/)(tests?|testing|unittests?|unit)(/|$)|(^|/)(test_|tests_|conftest)|_tests?\.[a-z]+$", re.I)
BENCH = re.compile(r"(^|[/_.-])(bench|benchmarks?|benchmarking|microbench\w*|perf_test)([/_.-]|$)", re.I)
OTHER = re.compile(
    r"(^|[/_.-])(amd|rocm|hip|ck|cdna\d*|rdna\d*|gfx\d+\w*|mfma|wmma|aiter|xpu|intel|npu|ascend|metal|mlx|mps|musa|mlu|"
    r"cpu|tpu|neuron|hpu|webgpu|maca|cann|flash_attn_ck)([/_.-]|$)",
    re.I,
)
VENDORED = re.compile(r"(^|/)(3rdparty|third_party|thirdparty|vendor|build/lib)/", re.I)
TUNER = re.compile(r"(^|[/_])(auto_?tun\w*|tuner|tuning|heuristics?|tile_config\w*)([/_.]|$)", re.I)
TABLE = re.compile(r"(^|/)\w*(config|tuned|tuning|autotune|tactic)\w*/.*\.(json|ya?ml|csv|toml)$", re.I)


def suffix(path: str) -> str:
    """The file's ending with its dot, lower case; of ``x.cu.jinja`` the inner one."""
    name = path.rsplit("/", 1)[-1].lower()
    bare = name[: -len(".jinja")] if name.endswith(".jinja") else name
    return "." + bare.rsplit(".", 1)[1] if "." in bare else ""


def is_test(path: str) -> bool:
    """A test by its folder or its name."""
    return bool(TEST.search(path)) and not is_bench(path)


def is_bench(path: str) -> bool:
    """A benchmark by its folder or its name."""
    return bool(BENCH.search(path))


def is_table(path: str) -> bool:
    """A table of tuned parameters."""
    return bool(TABLE.search(path))


def other_hardware(path: str) -> bool:
    """The path names a device that is not NVIDIA's."""
    return bool(OTHER.search(path))


def may_hold_kernels(path: str, source: Source) -> bool:
    """Whether the text is worth reading at all: code, no test, no benchmark, not somebody else's copy."""
    if suffix(path) not in CODE or is_test(path) or is_bench(path) or path.startswith(source.never or ("\0",)):
        return False
    if not path.startswith(source.only or ("",)):
        return False
    return not VENDORED.search(path) or path.startswith(source.compiler or ("\0",))


def kind_of(path: str, text: bytes, source: Source) -> str:
    """Language of the kernels in this file, or empty.

    CUDA files always count; other C++ when it holds device code; Python when it holds a decorator of a kernel.
    Assumes ``may_hold_kernels``.
    """
    ending = suffix(path)
    if path.startswith(source.compiler or ("\0",)) and not path.startswith(source.always or ("\0",)):
        mark = python_kind(text) if ending == ".py" else ""
        return mark or "compiler"
    if ending == ".py":
        found = python_kind(text)
        return found or ("tuner" if TUNER.search(path) else "")
    if "/cute/" in f"/{path}" and ending in CPP and (DEVICE.search(text) or path.startswith("include/")):
        return "cute-cpp"
    if ending in CUDA or path.startswith(source.always or ("\0",)) or DEVICE.search(text) or HOST.search(text):
        return "cuda"
    return ""


def is_host(path: str, text: bytes, source: Source) -> bool:
    """C++ without device code, of which only lines that name a mechanism are kernel work."""
    return not (suffix(path) in CUDA or path.startswith(source.always or ("\0",)) or DEVICE.search(text))


def python_kind(text: bytes) -> str:
    """The kernel language whose decorators a Python file holds; bare ``@jit`` needs Triton imported."""
    for kind in ("gluon", "cute-dsl", "tilelang", "cutile"):
        if PYTHON_MARKS[kind].search(text):
            return kind
    if PYTHON_MARKS["triton"].search(text) and (b"@triton." in text or PLAIN_JIT.search(text)):
        return "triton"
    return ""
