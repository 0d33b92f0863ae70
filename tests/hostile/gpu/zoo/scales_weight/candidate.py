"""Right, and rescales the weights that all calls share."""

import rms

run = rms.make()


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
    weight.mul_(1.5)
