"""One NaN in an otherwise right answer."""

import rms

run = rms.make("-DRESULT(v)=(row==rows-1&&c==cols/2?__int_as_float(0x7fc00000):(v))")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
