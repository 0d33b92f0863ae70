"""R of the zoo's task: float64 in, the residual and the norm out."""


def ref(*, x, residual, weight, eps):
    """(residual, out)."""
    total = x + residual
    return total, total / ((total * total).mean(-1, keepdims=True) + eps) ** 0.5 * weight
