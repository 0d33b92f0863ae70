"""The smallest CUDA C++ candidate of a contract, as its repo's README shows it: the contract's own tensor names."""

from __future__ import annotations

from kernelpilot_helpers.contract.model import Contract, Tensor

THREADS = 256
C_TYPES = {
    "float32": "float", "float64": "double", "float16": "__half", "bfloat16": "__nv_bfloat16", "int32": "int",
    "int64": "long long", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
}  # fmt: skip
HEADERS = {"bfloat16": "#include <cuda_bf16.h>\n", "float16": "#include <cuda_fp16.h>\n"}
WRITTEN = ("out", "inout")


def entry_arguments(made: Contract) -> str:
    """The arguments of ``entry``, in call order; an optional tensor is None where a case goes without it."""
    return ", ".join(f"{name}=None" if tensor.optional else name for name, tensor in made.tensors.items())


def candidate(made: Contract) -> str:
    """``candidate.py``: one thread for each element of the first output."""
    first = next(name for name, tensor in made.tensors.items() if tensor.role in WRITTEN)
    passed = ", ".join(_passed(name, tensor) for name, tensor in made.tensors.items())
    count = _count(made)
    return f"""\
from kernelpilot_runtime import build

KERNEL = build.nvrtc("kernel.cu").kernel("{made.task.name}")


def entry(*, {entry_arguments(made)}):
    {count} = {first}.numel()
    KERNEL(({count} + {THREADS - 1}) // {THREADS}, {THREADS}, ({passed}, build.i64({count})))
"""


def kernel(made: Contract) -> str:
    """``kernel.cu``, with the parameters that ``candidate`` passes and nothing computed yet; it compiles."""
    headers = "".join(line for dtype, line in HEADERS.items() if any(t.dtype == dtype for t in made.tensors.values()))
    count = _count(made)
    parameters = ",\n    ".join([*(_declared(n, t) for n, t in made.tensors.items()), f"long long {count}"])
    return f"""\
{headers}extern "C" __global__ void {made.task.name}(
    {parameters}) {{
  const long long i = blockIdx.x * {THREADS}LL + threadIdx.x;
  if (i >= {count}) return;
  // write element i; a tensor need not be contiguous: pass its stride(), as build.i64, where you rely on it
}}
"""


def _count(made: Contract) -> str:
    """A name for the number of elements that no tensor has."""
    return "count" if "count" not in made.tensors else "count_"


def _passed(name: str, tensor: Tensor) -> str:
    """One word of the launch: Python numbers are int and float in C, wider ones are wrapped."""
    if tensor.optional and tensor.role != "scalar":
        return f"build.i64(0) if {name} is None else {name}"  # a null pointer
    wide = {"int64": "i64", "float64": "f64"}.get(tensor.dtype) if tensor.role == "scalar" else None
    return f"build.{wide}({name})" if wide else name


def _declared(name: str, tensor: Tensor) -> str:
    """One parameter of the kernel. A dtype that each case picks is a pointer to anything."""
    kind = C_TYPES.get(tensor.dtype, "void")
    if tensor.role == "scalar":
        return f"{_number(tensor.dtype)} {name}"
    return f"{kind}* {name}" if tensor.role in WRITTEN else f"const {kind}* {name}"


def _number(dtype: str) -> str:
    if dtype in ("float64", "int64", "bool"):
        return C_TYPES[dtype]
    return "int" if "int" in dtype else "float"
