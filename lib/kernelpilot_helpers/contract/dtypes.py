"""Element types and content generators: their names, and which goes with which."""

from __future__ import annotations

import math
import re

SHORT = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16",
    "i32": "int32", "i64": "int64", "i8": "int8", "u8": "uint8",
}  # fmt: skip
RANGES = {
    "int32": (-(2**31), 2**31), "int64": (-(2**53), 2**53), "int8": (-128, 128), "uint8": (0, 256), "bool": (0, 2),
}  # fmt: skip
"""Half-open ranges of the integer types; int64 content stays exact in float64."""
BYTES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
FLOATS = ("float32", "float64", "float16", "bfloat16")
SUPPORTED = (*FLOATS, *RANGES)
LATER = re.compile(r"(fp?|float|f)(8|4|6)\w*|u?int(4|16|2)\w*|[iu](4|16)|complex\d*|tf32|nvfp4|mxfp\w*")
DEFAULT = {
    "int32": "integers(-1000,1001)", "int64": "integers(-1000,1001)", "int8": "integers(-127,128)",
    "uint8": "integers(0,256)", "bool": "integers(0,2)",
}  # fmt: skip
FLAG = re.compile(r"flag:([A-Za-z_]\w*)")

_GEN = re.compile(r"(\w+)\(([^()]*)\)")
_LATER_GEN = ("zipf", "one_hot", "trace")
_CONSTANT = ("const", "zeros", "ones", "fill")


def normalise(name: str) -> str:
    """Long name of a dtype; anything else is given back as it is.

    >>> normalise("bf16")
    'bfloat16'
    """
    return SHORT.get(name, name)


def flag_of(dtype: str) -> str | None:
    """Flag that picks the dtype per case (``flag:out_dtype``), or None."""
    found = FLAG.fullmatch(dtype)
    return found.group(1) if found else None


def dtype_fault(name: str) -> str:
    """Why a dtype cannot be used; empty when it can. Starts with "not supported yet" for a known one."""
    if normalise(name) in SUPPORTED:
        return ""
    if LATER.fullmatch(name):
        return "not supported yet"
    return f"want {', '.join(SUPPORTED)} or flag:NAME"


def default_gen(dtype: str) -> str:
    """Generator of a tensor whose contract names none."""
    return DEFAULT.get(dtype, "normal(0,1)")


def call_of(text: str) -> tuple[str, tuple[str, ...]]:
    """``name(a,b)`` as name and argument texts; name is empty when the text has another form.

    >>> call_of("normal(0, 1)")
    ('normal', ('0', '1'))
    """
    found = _GEN.fullmatch(text.strip())
    if not found:
        return "", ()
    inside = found.group(2).strip()
    return found.group(1), tuple(a.strip() for a in inside.split(",")) if inside else ()


def canonical(text: str) -> str:
    """A generator without spaces."""
    name, args = call_of(text)
    return f"{name}({','.join(args)})"


def _numbers(args: tuple[str, ...], *, whole: bool) -> list[float]:
    try:
        values = [float(int(a)) if whole else float(a) for a in args]
    except ValueError:
        return []
    return values if all(map(math.isfinite, values)) else []


def gen_fault(text: str, dtype: str) -> str:
    """Why a tensor of ``dtype`` cannot be filled by this generator; empty when it can."""
    name, args = call_of(text)
    if name in _CONSTANT or text.strip() in _CONSTANT:
        return "a constant input hides unwritten outputs; use normal, uniform or integers"
    if name in _LATER_GEN or text.startswith("py:"):
        return "not supported yet"
    if name not in ("normal", "uniform", "integers"):
        return "want normal(mu,sigma), uniform(a,b) or integers(lo,hi)"
    values = _numbers(args, whole=name == "integers")
    if len(values) != 2:
        return f"{name} wants two finite {'whole ' if name == 'integers' else ''}numbers"
    return _range_fault(name, values, dtype)


def _range_fault(name: str, values: list[float], dtype: str) -> str:
    low, high = values
    if name == "normal" and high <= 0:
        return "sigma must be above 0: a constant input hides unwritten outputs"
    if name == "uniform" and low >= high:
        return "want a < b"
    if name == "integers" and high - low < 2:
        return "want lo + 2 <= hi (hi is not drawn): a constant input hides unwritten outputs"
    if dtype not in RANGES:
        return ""
    if name != "integers":
        return f"a tensor of {dtype} wants integers(lo,hi)"
    least, most = RANGES[dtype]
    if low < least or high > most:
        return f"outside {dtype}, which holds integers({least},{most})"
    return ""


def scalar_of(text: str, dtype: str) -> float | int | bool | None:
    """Value of ``const(v)`` in ``dtype``; None when it has no such value."""
    name, args = call_of(text)
    if name != "const" or len(args) != 1:
        return None
    if dtype == "bool":
        return {"true": True, "false": False}.get(args[0])
    values = _numbers(args, whole=dtype in RANGES)
    if not values:
        return None
    return int(values[0]) if dtype in RANGES else values[0]
