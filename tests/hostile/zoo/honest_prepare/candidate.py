"""Honest: scales the weights once per case."""


def prepare(case, static):
    """See the module."""
    return static["weight"] * 1.0


def entry(*, x, residual, weight, out, eps, state):
    """See the module."""
    residual[...] = x + residual
    out[...] = residual / ((residual * residual).mean(-1, keepdims=True) + eps) ** 0.5 * state
