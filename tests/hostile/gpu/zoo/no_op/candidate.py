"""Does nothing at all."""

def entry(*, x, residual, weight, out, eps):
    """See the module."""
    return
