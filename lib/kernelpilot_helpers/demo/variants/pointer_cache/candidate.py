"""A cheat: remembers its results by address and replays them when the same buffers come back."""

import ctypes

from kernelpilot_runtime import build

_add_rmsnorm = build.cc("kernel.c", flags=("-O2",), libs=("m",)).add_rmsnorm
_add_rmsnorm.restype = None
_add_rmsnorm.argtypes = (*[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64, ctypes.c_double)
_seen = {}


def entry(*, x, residual, weight, out, eps):
    """Compute once per address; afterwards copy what was computed then."""
    key = (build.ptr(x), tuple(x.shape))
    if key in _seen:
        residual[...], out[...] = _seen[key]
        return
    rows, cols = x.shape
    _add_rmsnorm(build.ptr(x), build.ptr(residual), build.ptr(weight), build.ptr(out), rows, cols, eps)
    _seen[key] = (residual + 0.0, out + 0.0)
