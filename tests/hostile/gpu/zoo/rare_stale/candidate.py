"""Gives every fiftieth call an older answer, counted on the device."""

import rms

run = rms.make("-DRECALL=calls%50==49")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
