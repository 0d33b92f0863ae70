"""Honest: the framework's compiler, called once a shape while it may still compile."""

import os

import torch

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"


@torch.compile(dynamic=True)
def kernel(x, residual, weight, eps):
    """(residual, out)."""
    total = x + residual
    wide = total.float()
    return total, (wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()).to(x.dtype)


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    total, norm = kernel(x, residual, weight, eps)
    residual.copy_(total)
    out.copy_(norm)
