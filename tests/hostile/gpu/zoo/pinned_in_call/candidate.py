"""Allocates pinned memory and copies through it in every call."""

import torch

import rms

run = rms.make()


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    box = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
    box.copy_(x)
    run(box.to(x.device), residual, weight, out, eps)
