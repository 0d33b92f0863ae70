"""Adds scratch memory that nobody has set: zero in a fresh process, old results later."""

import torch

import rms

run = rms.make()


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
    out.add_(torch.empty_like(out).nan_to_num_(0.0))
