"""Right, and then a kernel that faults: the error shows only at the next synchronize."""

import rms

run = rms.make()
fault = rms.make("-DROW_END=0", "-DAFTER=*(volatile int*)16=1;", name="fault")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
    fault(x, residual, weight, out, eps)
