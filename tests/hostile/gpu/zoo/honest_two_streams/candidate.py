"""Honest: two streams take half of the rows each; the second is forked and joined by events."""

import torch

import rms

run = rms.make()
SIDE = []


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    half = x.shape[0] // 2
    if not half:
        run(x, residual, weight, out, eps)
        return
    if not SIDE:
        SIDE.append(torch.cuda.Stream())
    main = torch.cuda.current_stream()
    SIDE[0].wait_stream(main)
    run(x[:half], residual[:half], weight, out[:half], eps, stream=SIDE[0].cuda_stream)
    run(x[half:], residual[half:], weight, out[half:], eps)
    main.wait_stream(SIDE[0])
