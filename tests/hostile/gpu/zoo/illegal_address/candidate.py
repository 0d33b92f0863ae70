"""Writes to an address that is nobody's."""

import rms

run = rms.make("-DAFTER=*(volatile int*)16=1;")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
