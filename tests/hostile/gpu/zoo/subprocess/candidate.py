"""Lets another program do something for it."""

import subprocess

import rms

run = rms.make()


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    subprocess.run(["true"], check=False)
    run(x, residual, weight, out, eps)
