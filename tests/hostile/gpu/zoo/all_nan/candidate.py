"""NaN everywhere: a comparison that forgives NaN would pass it."""

import rms

run = rms.make("-DRESULT(v)=__int_as_float(0x7fc00000)")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
