"""Writes two bytes behind the output."""

import ctypes
import rms


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    rms.ops(x, residual, weight, out, eps)
    ctypes.memset(out.data_ptr() + out.numel() * out.element_size(), 1, 2)
