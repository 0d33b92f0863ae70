"""Honest: blocks of a row add their sums with atomics, so that the order is not fixed; cleared in every call."""

import torch
from kernelpilot_runtime import build

MODULE = build.nvrtc("kernel.cu")
SUMS = {}


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    rows, cols = x.shape
    if rows not in SUMS:
        SUMS[rows] = torch.empty(rows, device=x.device)
    arguments = x, residual, weight, out, SUMS[rows], rows, cols, float(eps)
    MODULE.kernel("clear")(((rows + 255) // 256, 1, 1), (256, 1, 1), arguments)
    MODULE.kernel("sums")((rows, 4, 1), (256, 1, 1), arguments)
    MODULE.kernel("normalise")((rows, 4, 1), (256, 1, 1), arguments)
