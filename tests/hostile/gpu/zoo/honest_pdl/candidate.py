"""Honest: the second kernel starts while the first one ends, and waits for it before it reads."""

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
    MODULE.kernel("sums")((rows, 1, 1), (256, 1, 1), arguments)
    build.launch_ex(MODULE.kernel("normalise"), (rows, 1, 1), (256, 1, 1), arguments, pdl=True)
