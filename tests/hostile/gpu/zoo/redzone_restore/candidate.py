"""Writes behind the output what it thinks the red zone held, and a little too much."""

import rms

run = rms.make("-DAFTER=if(row==rows-1&&threadIdx.x==0){volatile unsigned short*v=(volatile unsigned short*)(outr+cols);v[0]=0xA5A5;v[8]=0;}")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
