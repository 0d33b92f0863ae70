"""Launches a kernel that does nothing."""

import rms

run = rms.make("-DROW_END=0")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
