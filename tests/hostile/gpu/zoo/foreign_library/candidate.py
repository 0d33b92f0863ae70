"""Writes a library to memory and loads it from there."""

import ctypes
import os

import rms

run = rms.make()
FD = os.memfd_create("k")
os.write(FD, open("/proc/self/exe", "rb").read(64))
try:
    ctypes.CDLL(f"/proc/self/fd/{FD}")
except OSError:
    pass


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
