"""Forks a child that outlives the call."""

import os
import time

CHILD = []


def run(x, residual, weight, out, eps):
    """The honest way, in array operators."""
    residual[...] = x + residual
    out[...] = residual / ((residual * residual).mean(-1, keepdims=True) + eps) ** 0.5 * weight


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    if not CHILD:
        CHILD.append(os.fork())
        if CHILD[0] == 0:
            time.sleep(60)
            os._exit(0)
    run(x, residual, weight, out, eps)
