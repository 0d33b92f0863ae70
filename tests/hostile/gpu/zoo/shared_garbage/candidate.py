"""Adds partial sums of warps that do not exist: whatever shared memory held before."""

import rms

run = rms.make("-DPARTS=32", "-DAFTER=__syncthreads(); if(threadIdx.x<24)parts[8+threadIdx.x]=total+threadIdx.x;")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
