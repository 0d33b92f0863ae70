"""Cuts instead of rounding when it stores bfloat16."""

import rms

run = rms.make("-DRESULT(v)=__int_as_float(__float_as_int(v)&0xffff0000)")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
