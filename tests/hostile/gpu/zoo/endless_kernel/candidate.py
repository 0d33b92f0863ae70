"""Never comes back."""

import rms

run = rms.make("-DBEFORE=while(rows>0)__nanosleep(1000);")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
