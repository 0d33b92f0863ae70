"""Reads the partial sums without waiting for the warps that write them."""

import rms

run = rms.make("-DSYNC=if(warp==7)__nanosleep(2000)")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
