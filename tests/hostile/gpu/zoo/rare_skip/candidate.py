"""Leaves out every fiftieth call, counted on the device, and lets its outputs be."""

import rms

run = rms.make("-DRECALL=0", "-DROW_END=(calls%50==49?0:rows)")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
