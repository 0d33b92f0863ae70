"""One row at a time: small temporaries stay in the cache, at the price of a Python loop."""


def entry(*, x, residual, weight, out, eps):
    """Fused add + RMSNorm of each row, in tensor operators."""
    for row in range(x.shape[0]):
        total = x[row] + residual[row]
        residual[row] = total
        out[row] = total / ((total * total).mean() + eps) ** 0.5 * weight
