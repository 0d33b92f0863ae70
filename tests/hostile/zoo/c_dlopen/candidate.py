"""Loads a foreign library from inside its own kernel."""

import ctypes
import glob
import shutil


from kernelpilot_runtime import build

LIB = build.cc("kernel.c", flags=("-O2",), libs=("m", "dl"))
KERNEL = LIB.kernel
KERNEL.restype = None
KERNEL.argtypes = (*[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64, ctypes.c_double)
SO = shutil.copy((glob.glob("/lib/*/libm.so.6") + glob.glob("/lib64/libm.so.6"))[0], "mine.bin")


def run(x, residual, weight, out, eps):
    """The C kernel."""
    p = build.ptr
    KERNEL(p(x), p(residual), p(weight), p(out), x.shape[0], x.shape[1], eps)


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    LIB.load(b"./" + SO.encode())
    run(x, residual, weight, out, eps)
