"""Adds the squares in half precision."""

import rms

run = rms.make("-DSUM_T=__half")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
