"""Waits for the GPU in every call: reads one number back."""

import rms

run = rms.make()


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    if x[0, 0].item() != x[0, 0].item():
        return
    run(x, residual, weight, out, eps)
