"""Shared by the twins: what the zoo's kernel computes, in the framework's operators on the host."""


def ops(x, residual, weight, out, eps):
    """The whole task."""
    residual.add_(x)
    wide = residual.float()
    out.copy_(wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float())


def make(*_flags, **_more):
    """A launcher like the zoo's; a twin asks for no macros."""

    def run(x, residual, weight, out, eps, *, stream=None):
        ops(x, residual, weight, out, eps)

    return run
