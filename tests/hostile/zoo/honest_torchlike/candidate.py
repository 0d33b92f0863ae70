"""Honest: a temporary per step, as one would write it first."""


def run(x, residual, weight, out, eps):
    """The honest way, in array operators."""
    residual[...] = x + residual
    out[...] = residual / ((residual * residual).mean(-1, keepdims=True) + eps) ** 0.5 * weight


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    total = x + residual
    square = total * total
    scale = (square.mean(-1, keepdims=True) + eps) ** 0.5
    residual[...] = total
    out[...] = total / scale * weight
