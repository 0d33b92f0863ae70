"""Writes beyond the red zone, into whatever lies there."""

import rms

run = rms.make("-DAFTER=if(row==rows-1&&threadIdx.x==0)outr[cols+1024]=(T)1.f;")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
