def ref(*, x):
    """out [M, N] from x [M, N]: a float64 CUDA tensor, whatever the contract stores it in."""
    return x.softmax(-1)
