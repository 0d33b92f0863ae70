"""What a kernel is by its name and by the opcodes that it executed: its kind, language, and means already in use."""

from __future__ import annotations

import re

from kernelpilot_helpers.ncu.report import Launch

OPCODES = "sass__inst_executed_per_opcode"
ASYNC = ("LDGSTS",)
BULK = ("UTMALDG", "UTMASTG", "UBLKCP", "UTMAREDG")
MMA = ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA", "UTCHMMA", "UTCIMMA",
       "UTCQMMA", "UTCOMMA", "UTCMMA")  # fmt: skip
WARPGROUP = ("HGMMA", "IGMMA", "QGMMA", "BGMMA")
TCGEN = ("UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA", "UTCMMA")
SETMAXREG = ("USETMAXREG", "SETMAXREG")
_KINDS = (
    ("attention", r"flash|fmha|sdpa|attention|attn|mha_|mla_"),
    ("gemv", r"gemv|matvec|mat_vec|gemm?v\d?[nt]?_"),
    ("conv", r"conv\d?d?|fprop|dgrad|wgrad|implicit_?gemm|cudnn.*conv"),
    ("gemm", r"gemm|matmul|mat_?mul|nvjet|cutlass.*kernel|cublas|_mm_|(?:^|_)mma(?:_|$)|linear|grouped_mm"),
    ("softmax", r"softmax"),
    ("norm", r"norm|rms"),
    ("reduction", r"reduce|reduction|(?:^|_)sum(?:_|$)|argmax|topk|scan|cumsum"),
    ("gather", r"gather|scatter|embedding|index|permute|transpose"),
    ("elementwise", r"elementwise|vectorized|(?:^|_)(?:add|mul|copy|fill|cast|gelu|silu)(?:_|$|\d)|memcpy|vec_?add"),
    ("stencil", r"stencil|jacobi|laplace"),
)  # fmt: skip
_LANGUAGES = (
    ("triton", r"triton_|_kernel_0d1d|__triton"),
    ("cutlass", r"cutlass|cute::|cutlass3x"),
    ("cublas", r"nvjet|cublas|xmma_|(?:ampere|turing|volta|sm\d\d_xmma|hopper|maxwell)_\w*gemm|magma"),
    ("cudnn", r"cudnn"),
    ("flash-attention", r"flash_?(?:fwd|bwd|attn|attention)|FlashAttn"),
    ("pytorch", r"at::|c10::|at_cuda"),
    ("thunderkittens", r"kittens"),
    ("cub", r"cub::|thrust::"),
    ("tilelang", r"tilelang|tl_|main_kernel$"),
)
_TYPES = (
    ("fp8", r"fp8|e4m3|e5m2|float8"), ("fp4", r"fp4|e2m1|nvf4|mxf4"), ("int8", r"int8|s8|i8|imma|igemm|i16{3}"),
    ("bf16", r"bf16|bfloat16|_tst_"), ("fp16", r"fp16|half|f16|hgemm|_hsh_|hmma"), ("fp64", r"double|fp64|dgemm|f64"),
    ("tf32", r"tf32"), ("fp32", r"float|fp32|sgemm|f32"),
)  # fmt: skip


def opcodes(launch: Launch, names: tuple[str, ...]) -> bool | None:
    """Whether one of the opcodes was executed; None where the file does not count them.

    >>> from kernelpilot_helpers.ncu.report import Launch, Series
    >>> one = Launch(id="0", kernel="k", grid="", block="", device="0", cc="", stream="", process="", metrics={},
    ...     series={OPCODES: Series(keys=("LDGSTS", "FFMA"), values=(4, 0))})
    >>> opcodes(one, ASYNC), opcodes(one, MMA)
    (True, False)
    """
    series = launch.series.get(OPCODES)
    if series is None or not series.keys:
        return None
    ran = [str(k).split(".", 1)[0] for k, v in zip(series.keys, series.values, strict=False) if v]
    return any(name in names for name in ran)


def _first(table: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for name, pattern in table if re.search(pattern, text, re.IGNORECASE)), "")


def kind(kernel: str) -> str:
    """What a kernel computes, guessed from its name; empty where the name does not say.

    >>> kind("nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT"), kind("gemv2T_kernel_val"), kind("k(int)")
    ('gemm', 'gemv', '')
    """
    return _first(_KINDS, kernel)


def language(kernel: str) -> str:
    """The language or library that a kernel was written in, guessed from its name; empty where it does not say."""
    return _first(_LANGUAGES, kernel)


def dtype(kernel: str) -> str:
    """The element type that a kernel's name speaks of."""
    return _first(_TYPES, kernel)


def arch(launch: Launch) -> str:
    """``sm_90``; empty where the compute capability is not known."""
    return "sm_" + launch.cc.replace(".", "") if re.fullmatch(r"\d{1,2}\.\d", launch.cc) else ""


def predates_tensor_cores(launch: Launch) -> bool:
    """Whether the GPU is known to be older than tensor cores, bulk and asynchronous copies.

    >>> from kernelpilot_helpers.ncu.report import Launch
    >>> old = Launch(id="0", kernel="k", grid="", block="", device="0", cc="6.1", stream="", process="", metrics={})
    >>> predates_tensor_cores(old)
    True
    """
    return re.fullmatch(r"[1-6]\.\d", launch.cc) is not None


def has_tensor_cores(launch: Launch) -> bool:
    """Whether the GPU has tensor cores: sm_70 on, but not the GeForce 16 series, which shares sm_75."""
    cc = re.fullmatch(r"(\d{1,2})\.(\d)", launch.cc)
    if cc is None or int(cc[1]) < 7:
        return False
    named = launch.metrics.get("device__attribute_display_name")
    return launch.cc != "7.5" or (named is not None and bool(named.text) and "GTX 16" not in named.text)
