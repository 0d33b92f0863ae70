"""Writes one element before the residual."""

import rms

run = rms.make("-DAFTER=if(row==0&&threadIdx.x==0)rr[-1]=(T)1.f;")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
