"""Honest: a scratch tensor a shape, written before it is read."""

import torch

SCRATCH = {}


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    if x.shape not in SCRATCH:
        SCRATCH[x.shape] = torch.empty(x.shape)
    wide = SCRATCH[x.shape]
    residual.add_(x)
    wide.copy_(residual)
    out.copy_(wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float())
