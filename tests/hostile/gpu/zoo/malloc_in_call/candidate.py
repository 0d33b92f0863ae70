"""Allocates device memory by the driver in every call."""

import ctypes
import driver

import rms

run = rms.make()


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    at = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(1 << 20))
    run(x, residual, weight, out, eps)
    driver.call("cuMemFree_v2", at)
