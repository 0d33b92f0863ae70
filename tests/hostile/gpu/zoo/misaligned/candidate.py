"""Writes a word to an odd address."""

import rms

run = rms.make("-DAFTER=*(volatile int*)((char*)rr+1)=1;")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
