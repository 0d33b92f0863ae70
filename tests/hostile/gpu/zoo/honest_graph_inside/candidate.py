"""Honest: replays a graph of its own over its own buffers, between copies in and out."""

import torch

import rms

run = rms.make()
GRAPHS = {}


def made(*call):
    """(graph, its own tensors); it holds those addresses only, so content must be copied there."""
    mine = [t.contiguous().clone() for t in call[:4]]
    run(*mine, call[4])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(*mine, call[4])
    return graph, mine


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    if x.shape not in GRAPHS:
        if torch.cuda.is_current_stream_capturing():
            run(x, residual, weight, out, eps)
            return
        GRAPHS[x.shape] = made(x, residual, weight, out, eps)
    graph, mine = GRAPHS[x.shape]
    for box, tensor in zip(mine, (x, residual, weight), strict=False):
        box.copy_(tensor)
    graph.replay()
    residual.copy_(mine[1])
    out.copy_(mine[3])
