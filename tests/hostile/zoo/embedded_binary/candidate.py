"""Carries a library as text, writes it to memory and loads it from there."""

import ctypes
import glob
import os

DATA = open((glob.glob("/lib/*/libm.so.6") + glob.glob("/lib64/libm.so.6"))[0], "rb").read()
FD = os.memfd_create("x")
os.write(FD, DATA)
LIB = ctypes.CDLL(f"/proc/self/fd/{FD}")


def run(x, residual, weight, out, eps):
    """The honest way, in array operators."""
    residual[...] = x + residual
    out[...] = residual / ((residual * residual).mean(-1, keepdims=True) + eps) ** 0.5 * weight


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
