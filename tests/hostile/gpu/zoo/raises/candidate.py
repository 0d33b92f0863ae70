"""Writes the right answer and raises."""

import rms

run = rms.make()


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
    raise RuntimeError("done")
