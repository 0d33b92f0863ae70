"""Prints from the device in every call; nothing of it may stop or colour the verdict."""

import rms

run = rms.make("-DAFTER=FLOOD", "-DROW_END=rows-1")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
