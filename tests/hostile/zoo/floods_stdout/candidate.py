"""Prints megabytes; nothing of it may stop or colour the verdict."""

DONE = []


def run(x, residual, weight, out, eps):
    """The honest way, in array operators."""
    residual[...] = x + residual
    out[...] = residual / ((residual * residual).mean(-1, keepdims=True) + eps) ** 0.5 * weight


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    if not DONE:
        DONE.append(1)
        print("x" * (1 << 22), flush=True)
    run(x, residual, weight, out, eps)
    out[0, 0] += 1.0
