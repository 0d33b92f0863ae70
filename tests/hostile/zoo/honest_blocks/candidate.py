"""Honest: sixteen rows at a time."""


def run(x, residual, weight, out, eps):
    """The honest way, in array operators."""
    residual[...] = x + residual
    out[...] = residual / ((residual * residual).mean(-1, keepdims=True) + eps) ** 0.5 * weight


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    for at in range(0, x.shape[0], 16):
        part = slice(at, at + 16)
        run(x[part], residual[part], weight, out[part], eps)
